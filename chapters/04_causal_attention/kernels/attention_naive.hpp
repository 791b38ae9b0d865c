// Rung 0 of chapter 11's ladder of kernels: attention on a GPU, one kernel for each step of the
// formula.
#pragma once

#include "04_causal_attention/kernels/attention_call.hpp"

namespace t2t {

/// How many blocks a kernel is launched with, and how many threads each block has.
struct Launch {
  dim3 grid, block;
};
/// The launches of the three kernels, in their order.
struct NaiveLaunches {
  Launch scores, softmax, values;
};
NaiveLaunches naive_launches(const AttentionCall<float>& call);

/// Floats of device memory that attend_naive needs for its scores.
std::size_t naive_scores(const AttentionCall<float>& call);

/// scores must hold naive_scores(call) floats of device memory. Throws as expect_call does.
void attend_naive(const AttentionCall<float>& call, float* scores);

}  // namespace t2t
