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

/// Floats of device memory that the scores need: B·H·T·S.
std::size_t naive_scores(const AttentionCall<float>& call);

/// The three kernels, one after another. scores must hold naive_scores(call) floats of device
/// memory. Throws as expect_call does, and std::invalid_argument when T is above 524280.
void attend_naive(const AttentionCall<float>& call, float* scores);

/// Each kernel alone, with the same memory and the same errors: the first writes scores
/// [B, H, T, S], the second turns them into weights in place, and the third writes call.out.
void launch_naive_scores(const AttentionCall<float>& call, float* scores);
void launch_naive_softmax(const AttentionCall<float>& call, float* scores);
void launch_naive_values(const AttentionCall<float>& call, float* weights);

}  // namespace t2t
