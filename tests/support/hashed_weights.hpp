// A block's or a model's tensors filled with numbers that need no file: what the fixtures' make.py
// computes too.
#pragma once

#include <map>
#include <string_view>

#include "08_block/block_weights.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

/// The seed of each tensor: make.py's. A model's own tensors and a block's may share one, since
/// base sets blocks apart.
inline std::uint32_t seed_of(std::string_view name) {
  static const std::map<std::string_view, std::uint32_t> seeds = {
      {"embedding", 1},
      {"positions", 2},
      {"head", 3},
      {"final_norm.gain", 4},
      {"final_norm.bias", 5},
      {"attention_norm.gain", 2},
      {"attention_norm.bias", 3},
      {"w_q", 4},
      {"w_k", 5},
      {"w_v", 6},
      {"w_o", 7},
      {"b_q", 8},
      {"b_k", 9},
      {"b_v", 10},
      {"b_o", 11},
      {"w_gate", 13},
      {"w_up", 14},
      {"w_down", 15},
      {"b_up", 16},
      {"b_down", 17},
      {"feed_forward_norm.gain", 18},
      {"feed_forward_norm.bias", 19},
      {"q_norm.gain", 20},
      {"k_norm.gain", 21},
      {"q_norm.bias", 22},
      {"k_norm.bias", 23},
      {"router", 24},
      {"post_attention_norm.gain", 25},
      {"post_attention_norm.bias", 26},
      {"post_feed_forward_norm.gain", 27},
      {"post_feed_forward_norm.bias", 28}};
  return seeds.at(name);
}

/// base is added to the seed: 100 for each layer of a model.
inline void fill_numbers(const TensorInfo& info, std::uint32_t base, Weight& w) {
  const bool table = info.role == Role::embedding || info.role == Role::positions;
  const float scale = info.name == "embedding" ? 2 : table ? 1 : 0.5f;
  if (info.size() > 0) w = numbers(base + seed_of(info.name), scale, 0, info.rows, info.cols);
}
inline void fill_numbers(const TensorInfo& info, std::uint32_t base, Tensor<1>& x) {
  x = numbers(base + seed_of(info.name), 1, info.role == Role::gain ? 1 : 0, info.rows);
}

}  // namespace t2t
