// Attention with sinks as a model runs it, from a cache: chapter 06's kernel for a group of heads,
// then the factor that a sink takes.
//
//   out[t, h] = attention of the keys that query t sees · sigmoid(lse − σ_h)
//
// attend_stretch returns lse = ln Σ e^score beside its result, so the sink needs no other kernel.
// Equal to grouped_sink_attention, its formula.
#pragma once

#include <span>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "25_sinks/layers/shared_caches.hpp"

namespace t2t {

/// Each query and group of heads is a task, for which a thread needs a row of `scores` with at
/// least H/G·S floats. Under a causal mask the queries belong to the last T of the S positions.
/// Throws std::invalid_argument as expect_grouped does, unless out is [T, H·D] and there are H
/// sinks, and when there is less room; all before anything is written.
void sink_attention_rows(ConstMatrix q,               // [T, H·D]
                         const KeyValueHeads& heads,  // G heads of [S, D]
                         const ScoreRule& rule,
                         ConstRow sinks,  // [H]
                         Matrix out,      // [T, H·D]; must not overlap what is read
                         Tensor<2>& scores);

/// The kernel of a model, for SharedCaches of up to S positions. Throws std::invalid_argument
/// unless there are sinks for each layer, one a query head, none of them NaN or +infinity.
LayerKernel sink_kernel(std::span<const BlockSettings> layers, std::vector<Tensor<1>> sinks,
                        std::size_t S);

}  // namespace t2t
