// Accounts: a model's parameters, FLOPs and bytes, counted from its Config alone. No weights are
// made, so models of any size can be counted.
//
//   each element of a weight matrix is multiplied and added once per token: 2 FLOPs
//   a query and a key that it sees: 2·D FLOPs for the score, and 2·D for the value
//
// The FLOPs of norms, activations and RoPE are left out: they are few compared with those of the
// products. Kaplan et al. 2020, "Scaling Laws for Neural Language Models", has the rules of thumb
// that main.cpp compares with these counts.
#pragma once

#include <cstddef>

#include "09_language_model/config.hpp"

namespace t2t {

struct Parameters {
  std::size_t embedding;     // V·C
  std::size_t positions;     // T_max·C, learned positions only
  std::size_t attention;     // q, k, v and o of all blocks
  std::size_t feed_forward;  // of all blocks
  std::size_t norms;         // two in each block, and the final one
  std::size_t head;          // V·C, 0 when tied
};
/// Throws as expect_config does; so do all below.
Parameters count_parameters(const Config& config);
std::size_t total(const Parameters& parameters);

/// FLOPs of a forward pass over the last T of S tokens, with logits for `scored` of them.
struct Flops {
  double projections;   // q, k, v and o
  double attention;     // scores, and the weighted sums of values
  double feed_forward;  // gate (if there is one), up and down
  double head;          // for the tokens that get logits
};
/// Throws also when T is 0 or above S, and when scored is above T. S may be above T_max.
Flops count_flops(const Config& config, std::size_t T, std::size_t S, std::size_t scored);
double total(const Flops& flops);

/// Bytes to generate with a context of S tokens.
struct InferenceMemory {
  double weights;
  double cache;    // 2·L·G·D·S elements
  double scratch;  // of one token: the stream, a block's intermediate results, the logits
};
InferenceMemory inference_memory(const Config& config, std::size_t S, double bytes_per_element);

/// Bytes to train with AdamW on B sequences of T tokens. With bytes_per_element = 2 weights and
/// gradients have 16 bits and the optimizer also keeps 32-bit weights; with 4 everything has 32
/// bits.
struct TrainingMemory {
  double weights;    // that the forward and backward passes read
  double gradients;  // one for each weight
  double optimizer;  // in 32 bits: two running means per weight, and the weight itself if it has 16
  double activations;        // what the backward pass reads, without the next line
  double attention_weights;  // B·L·H·T·T elements, which chapter 11 recomputes instead
};
TrainingMemory training_memory(const Config& config, std::size_t B, std::size_t T,
                               double bytes_per_element);

}  // namespace t2t
