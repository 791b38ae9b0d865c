// Accounts: what a model of these sizes holds, computes and takes in memory, counted from its
// Config alone, so that a model that no machine here could hold is counted as exactly as a small
// one.
//
//   a number of a matrix is multiplied and added once for each token: 2 FLOPs
//   a query meets the keys up to its own: 2·D FLOPs each, and as many for their values
//
// Norms, activations and RoPE are left out of the FLOPs: they are additions to matrix products of
// hundreds to thousands of times their size. Kaplan et al. 2020, "Scaling Laws for Neural Language
// Models", has the rules of thumb that main.cpp holds against these. Chapter 13 trains by them.
#pragma once

#include <cstddef>

#include "09_language_model/config.hpp"

namespace t2t {

struct Parameters {
  std::size_t embedding;     // V·C
  std::size_t positions;     // T_max·C, learned positions only
  std::size_t attention;     // q, k, v and o of all blocks
  std::size_t feed_forward;  // of all blocks
  std::size_t norms;         // two a block, and the final one
  std::size_t head;          // V·C, 0 when tied
};
/// Throws as expect_config does; so do all below.
Parameters count_parameters(const Config& config);
std::size_t total(const Parameters& parameters);

/// Of a forward pass over T tokens, the last of S, with logits for `scored` of them.
struct Flops {
  double projections;   // q, k, v and o
  double attention;     // queries with keys, weights with values
  double feed_forward;  // gate (if there is one), up and down
  double head;          // of the tokens that are scored
};
/// Throws also when T is 0 or above S, or scored above T. S may be above T_max: it is only counted.
Flops count_flops(const Config& config, std::size_t T, std::size_t S, std::size_t scored);
double total(const Flops& flops);

/// Bytes to generate with a context of S tokens.
struct InferenceMemory {
  double weights;
  double cache;    // 2·L·G·D·S numbers
  double scratch;  // of one token: the stream, a block's parts and the logits
};
InferenceMemory inference_memory(const Config& config, std::size_t S, double bytes_a_number);

/// Bytes to train with AdamW on B texts of T tokens: 16-bit numbers where bytes_a_number is 2, with
/// 32-bit weights beside them, or 32-bit ones throughout.
struct TrainingMemory {
  double weights;            // as the passes read them
  double gradients;          // as many numbers
  double optimizer;          // 32-bit: two means a number, and the weights if the others are 16-bit
  double activations;        // what the backward pass reads again, but for the next line
  double attention_weights;  // B·L·H·T·T, which chapter 11 computes again instead
};
TrainingMemory training_memory(const Config& config, std::size_t B, std::size_t T,
                               double bytes_a_number);

}  // namespace t2t
