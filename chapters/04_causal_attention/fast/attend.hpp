// Attention of one head as a model runs it: in place, a block of queries at a time. The tests
// compare it with the formula in attention.hpp.
//
//   out = softmax(q·kᵀ / √D + mask) · v
//
// A block's scores fill a buffer of the caller's; keys that the mask hides from all of a block are
// not read. attention_rows.hpp runs it for many heads on all threads. Chapter 06 has another form
// for one query; chapter 11 stores no scores at all.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/fast/score_rule.hpp"

namespace t2t {

/// The keys that at least one of the queries t … t + count − 1 sees. If these queries and these
/// keys are taken as all there are, each query sees the same keys as before under the same mask.
/// count must be at least 1.
KeyRange keys_seen(std::size_t t, std::size_t count, std::size_t T, std::size_t S, Mask mask);

/// The number of pairs of a query and a key that it sees.
double pairs_seen(std::size_t T, std::size_t S, Mask mask);

/// How many queries the row kernel processes at once. Their scores lie in the scratch memory. A
/// larger block computes more scores that a causal mask hides; a smaller one makes the products
/// smaller.
constexpr std::size_t query_block = 64;

/// Floats of scratch memory that attend needs for T queries and S keys: min(T, query_block)·S.
std::size_t attend_floats(std::size_t T, std::size_t S);

/// The row kernel for one head. It reads q, k and v in place (inside [T, H·D], or from the used
/// part of a cache) and processes one block of queries after the other, so that it skips most of
/// what the mask hides. Allocates nothing. Throws std::invalid_argument when shapes disagree, D is
/// 0 or scratch is too small, and as expect_mask does. Where q·k overflows to −infinity for all
/// keys that a query sees, the formula throws, and here the query's row of out has no finite
/// element.
void attend(ConstMatrix q,  // [T, D]
            ConstMatrix k,  // [S, D]
            ConstMatrix v,  // [S, D]
            const ScoreRule& rule,
            Matrix out,    // [T, D]; must not overlap q, k or v
            Row scratch);  // [attend_floats(T, S)] or more

}  // namespace t2t
