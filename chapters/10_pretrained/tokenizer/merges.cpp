#include "10_pretrained/tokenizer/merges.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace t2t {

static std::uint64_t pair_of(int left, int right) {
  return std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right);
}

/// Mixes the bits of the pair, so that each one affects all bits of the hash.
std::size_t MergeTable::Hash::operator()(std::uint64_t pair) const {
  pair = (pair ^ (pair >> 32) ^ seed) * 0x9e3779b97f4a7c15;
  pair = (pair ^ (pair >> 29) ^ seed) * 0xbf58476d1ce4e5b9;
  return pair ^ (pair >> 32);
}

bool MergeTable::add(int left, int right, Merge merge) {
  return table_.emplace(pair_of(left, right), merge).second;
}

const Merge* MergeTable::find(int left, int right) const {
  const auto found = table_.find(pair_of(left, right));
  return found == table_.end() ? nullptr : &found->second;
}

/// The merge of the symbol that begins at left with the one after it.
const Merge* PairMerger::find(const std::vector<int>& symbols, std::uint32_t left) {
  const std::size_t right = std::size_t(other_end_[left]) + 1;
  if (right >= symbols.size()) return nullptr;
  ++lookups_;
  return merges_.find(symbols[left], symbols[right]);
}

/// Puts the merge of this symbol with the next one, if there is one, into the heap.
void PairMerger::wait(const std::vector<int>& symbols, std::uint32_t left) {
  const Merge* merge = find(symbols, left);
  if (merge) waiting_.push_back(std::uint64_t(merge->rank) << 32 | left);
}

/// Joins the symbol at left with the one after it, and looks up both new pairs.
void PairMerger::join(std::vector<int>& symbols, std::uint32_t left, int result) {
  const std::uint32_t right = other_end_[left] + 1, last = other_end_[right];
  symbols[left] = result;
  symbols[right] = -1;  // gone: merges that wait for it will be skipped
  other_end_[left] = last;
  other_end_[last] = left;

  const auto push = [&](std::uint32_t at) {
    const std::size_t before = waiting_.size();
    wait(symbols, at);
    if (waiting_.size() > before) std::ranges::push_heap(waiting_, std::greater());
  };
  push(left);
  if (left > 0) push(other_end_[left - 1]);
}

void PairMerger::check_size(std::size_t bytes) {
  constexpr std::size_t most = 1 << 22;
  if (bytes > most)
    throw std::runtime_error(fmt::format("a word of {} bytes, wanted at most {}", bytes, most));
}

void PairMerger::run(std::vector<int>& symbols) {
  check_size(symbols.size());

  // Each symbol is one byte long, so it begins and ends at its own index.
  other_end_.resize(symbols.size());
  std::iota(other_end_.begin(), other_end_.end(), 0);
  waiting_.clear();
  for (std::uint32_t i = 0; i < symbols.size(); ++i) wait(symbols, i);
  std::ranges::make_heap(waiting_, std::greater());

  // The lowest rank first; among equal ranks the leftmost.
  while (!waiting_.empty()) {
    std::ranges::pop_heap(waiting_, std::greater());
    const std::uint32_t rank = waiting_.back() >> 32, left = std::uint32_t(waiting_.back());
    waiting_.pop_back();
    const Merge* merge = symbols[left] < 0 ? nullptr : find(symbols, left);
    if (merge && merge->rank == rank) join(symbols, left, merge->result);
  }
  std::erase(symbols, -1);
}

}  // namespace t2t
