// Decode: one token's queries against a long cache, at the speed at which memory is read.
//
//   a stretch p of the keys:  out[p] = softmax(q·k[p]ᵀ / √D)·v[p]
//                             log_sum[p] = log Σ exp(q·k[p]ᵀ / √D)
//   all stretches joined:     out = Σ exp(log_sum[p])·out[p] / Σ exp(log_sum[p])
//
// All query heads of a group meet a key row while it is in the nearest cache, so that it comes from
// memory once. Stretches give every core work when G is small ("Flash-Decoding", Dao et al. 2023).
// Chapter 11 joins the same way, for many queries at once.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Keys in a stretch at most: their scores and values stay in a core's own cache.
constexpr std::size_t stretch_keys = 512;

/// P, the number of stretches that S keys are cut into: ⌈S/P⌉ keys each, the last what is left.
std::size_t stretch_count(std::size_t S);

/// One stretch, for the N query heads of a group. Never throws, so that parallel loops may call it:
/// the caller has checked the shapes.
void attend_stretch(ConstMatrix q,     // [N, D]
                    ConstMatrix k,     // [s, D], s at least 1
                    ConstMatrix v,     // [s, D]
                    Matrix scores,     // [N, s], scratch
                    Matrix out,        // [N, D]
                    Matrix log_sums);  // [N, 1]

/// One head's P stretches made one. Never throws either.
void join_stretches(ConstMatrix stretches,  // [P, D]
                    ConstRow log_sums,      // [P]
                    Row out);               // [D]

}  // namespace t2t
