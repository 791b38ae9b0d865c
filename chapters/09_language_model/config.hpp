// What a model is, in sizes and choices: one Config tells everything but the numbers learned.
//
//   tokens [T]  →  embedding [V, C]  →  L blocks of width C  →  final norm  →  head [V, C]
//   →  logits [T, V]
//
// Chapter 08's BlockSettings say what a block is. The presets are published models (Radford et al.
// 2019, "Language Models are Unsupervised Multitask Learners"; Touvron et al. 2023, "LLaMA 2";
// Allal et al. 2025, "SmolLM2") and one small enough to train here. accounts.hpp counts from a
// Config alone; forward.hpp runs it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "08_block/block_settings.hpp"

namespace t2t {

struct Config {
  BlockSettings block;  // of all blocks, unless `layers` is given; C and the final norm's, always
  std::size_t L;        // blocks
  std::size_t V;        // vocabulary
  std::size_t T_max;    // longest text: what it was, or will be, trained for

  bool tied = false;                       // whether the embedding's table serves as the head too
  bool learned_positions = false;          // a row of a table is added to each token, once (GPT-2)
  std::vector<BlockSettings> layers = {};  // where blocks differ: one for each of the L
};

/// What block l is made by, and all L of them.
const BlockSettings& settings_of(const Config& config, std::size_t l);
std::vector<BlockSettings> settings_of_all(const Config& config);

/// "foundry-small", "gpt2", "smollm2-135m" and "llama2-7b": small to large.
std::span<const std::string_view> preset_names();
/// Throws std::invalid_argument, with the names there are, for any other.
Config preset(std::string_view name);

/// Throws std::invalid_argument with every reason at once, unless a model can be made so: sizes of
/// 0, what no block can have (reasons_against), layers that are not L or not of one width, or more
/// numbers than can be counted.
void expect_config(const Config& config);

/// Sizes that replace a preset's; 0 keeps what is there.
struct Sizes {
  std::size_t C = 0, L = 0, H = 0, G = 0, D = 0, F = 0, V = 0, T_max = 0;
  bool operator==(const Sizes&) const = default;
};
/// A preset resized, with all its blocks alike. Where C or H changes and D is not given, D = C / H
/// (0, which expect_config refuses, when H does not divide C); where C changes and F is not given,
/// F is 8·C/3, rounded down, with a gate and 4·C without.
Config resized(Config config, const Sizes& sizes);

}  // namespace t2t
