// gpt-oss's experts: a mixture as in chapter 14, with biases and another gated activation.
//
//   scores = x·routerᵀ + b     chosen = the k largest scores     weights = softmax(chosen scores)
//   gate = min(x·w_gateᵀ + b_gate, 7)           up = x·w_upᵀ + b_up, but at most 7 and at least −7
//   hidden = gate · sigmoid(1.702·gate) · (up + 1)       y = Σ weight · (hidden·w_downᵀ + b_down)
//
// Softmax of the chosen scores alone is chapter 14's softmax of all, divided by the sum of the
// chosen: its route_row chooses. The gate is clamped from above only, since a very negative one
// gives almost 0 anyway. 1.702 makes z·sigmoid(1.702·z) an approximation of GELU, and + 1 lets the
// gate pass while up is 0. OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card".
#pragma once

#include <span>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "14_mixture_of_experts/experts.hpp"
#include "weight.hpp"

namespace t2t {

struct ClampedGate {
  float slope = 1.702f, limit = 7;
};
/// An element of the hidden values.
float clamped_gate(float gate, float up, const ClampedGate& settings = {});

/// One expert's network.
struct ClampedExpert {
  Weight w_gate, w_up;     // [F, C]
  Weight w_down;           // [C, F]
  Tensor<1> b_gate, b_up;  // [F]
  Tensor<1> b_down;        // [C]
};
/// The experts of a block, and what chooses among them.
struct ClampedExperts {
  Weight router;                       // [E, C], floats
  Tensor<1> b_router;                  // [E], part of the scores
  std::vector<ClampedExpert> experts;  // [E]
  std::size_t chosen = 4;              // k
  ClampedGate gate = {};
};
/// Throws std::invalid_argument, naming the tensor and both shapes, unless all fit each other and
/// C.
void expect_clamped_experts(const ClampedExperts& mixture, std::size_t C);

/// The formula, token by token: [T, C]. Throws as expect_clamped_experts does, and for scores that
/// are not finite.
Tensor<2> clamped_experts(const Tensor<2>& x,  // [T, C]
                          const ClampedExperts& mixture);

/// Memory for the rows of up to max_rows tokens, of all layers.
struct ClampedScratch {
  Tensor<2> p;                       // [max_rows, E]
  std::vector<std::size_t> experts;  // [max_rows·k]
  Tensor<2> weights;                 // [max_rows, k]
  Assignment assignment;             // chapter 14's: which rows go to which expert
  Tensor<2> gathered, results;       // [max_rows·k, C]
  Tensor<2> gate, up;                // [max_rows, F]

  ClampedScratch(std::size_t max_rows, const ClampedExperts& mixture, std::size_t C);
};
/// The row kernel, expert by expert: an expert's weights are read once for all of its tokens. A
/// token's scores are a product of their own, so that no other token changes its choice. Throws as
/// clamped_experts does, and when the scratch is too small; y is unchanged then.
void clamped_experts_rows(ConstMatrix x,  // [T, C]
                          const ClampedExperts& mixture, ClampedScratch& scratch,
                          Matrix y);  // [T, C]

}  // namespace t2t
