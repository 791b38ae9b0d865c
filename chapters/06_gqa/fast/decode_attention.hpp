// Decode: one token's queries over a long cache, whose keys are cut into stretches.
//
//   a stretch p of the keys:  out[p] = softmax(q·k[p]ᵀ / √D)·v[p]
//                             log_sum[p] = log Σ exp(q·k[p]ᵀ / √D)
//   all stretches joined:     out = Σ exp(log_sum[p])·out[p] / Σ exp(log_sum[p])
//
// All query heads of a group use a row of keys while it is in the processor's nearest cache, so
// that it comes from memory once. The stretches give every core work when G is small
// ("Flash-Decoding", Dao et al. 2023). Chapter 11 joins in the same way, for many queries at once.
#pragma once

#include <span>

#include "04_causal_attention/fast/score_rule.hpp"
#include "tensor.hpp"

namespace t2t {

/// The most keys in a stretch. With D = 64 its keys and values take 2·512·64·4 bytes, 256 KiB,
/// which a second-level cache of 512 KiB or more holds.
constexpr std::size_t stretch_keys = 512;

/// P = ⌈S / 512⌉, the number of stretches that S keys are cut into. Each has ⌈S / P⌉ keys, at most
/// 512, and the last one has the rest, at least one key. Fewer keys may have longer stretches: 513
/// keys have two of at most 257, and 512 keys have one of 512.
std::size_t stretch_count(std::size_t S);

/// Keys of one head with their values, in the order of their positions.
struct KeyPiece {
  ConstMatrix k;  // [keys, D], at least one key
  ConstMatrix v;  // [keys, D]
};

/// Attention over one stretch of s keys, for the N query heads of a group. The keys may lie in
/// several pieces, such as the pages of chapter 15; where it is cut changes no bit of the result.
/// It checks nothing and never throws, so that parallel loops may call it: the caller has checked
/// the shapes. If all scores of a head have overflowed to −infinity, its log-sum is NaN and so is
/// what join_stretches makes of it, even where other stretches have finite scores.
void attend_stretch(ConstMatrix q,                     // [N, D]
                    std::span<const KeyPiece> pieces,  // s keys in all, at least 1
                    Matrix scores,                     // [N, s], scratch: left holding the weights
                    Matrix out,                        // [N, D]
                    Matrix log_sums,                   // [N, 1], of the scores
                    const ScoreRule& rule = Mask::none);  // its mask is not read: all keys are seen
/// The same for keys that lie in one piece.
void attend_stretch(ConstMatrix q,  // [N, D]
                    ConstMatrix k,  // [s, D]
                    ConstMatrix v,  // [s, D]
                    Matrix scores, Matrix out, Matrix log_sums, const ScoreRule& rule = Mask::none);

/// Joins one head's outputs of P stretches, P at least 1. It checks nothing and never throws
/// either. The first log-sum must be above −infinity. A later one may be −infinity: if that
/// stretch's elements are finite, they count for nothing. A log-sum that is NaN makes all of out
/// NaN.
void join_stretches(ConstMatrix stretches,  // [P, D]
                    ConstRow log_sums,      // [P]
                    Row out);               // [D]

}  // namespace t2t
