// Shows what is computed with the cache and without, what concatenation copies, the measured times,
// and how much memory a cache takes. For this chapter's program.
#pragma once

#include <array>
#include <vector>

#include "05_kv_cache/babbler/babbler.hpp"

namespace t2t {

/// What generating T bytes cost, summed over the steps.
struct Cost {
  std::size_t T;
  std::size_t kv_rows = 0;  // tokens whose keys and values were computed
  double flops = 0;         // multiplications and additions of the matrix products
};

constexpr std::array<std::size_t, 5> lengths = {10, 25, 50, 100, 200};

/// The cost of each of `lengths`, when the first step saw a single token.
std::vector<Cost> costs(const std::vector<Step>& steps, std::size_t C);

void show_count(const std::vector<Cost>& without, const std::vector<Cost>& with, std::size_t C);

/// Feeds T random tokens one by one to each kind of cache and counts the bytes written.
void show_concatenated();

void show_memory();

void show_speed(Babbler& babbler, const std::vector<int>& first, const std::vector<Cost>& without,
                const std::vector<Cost>& with, int threads);

}  // namespace t2t
