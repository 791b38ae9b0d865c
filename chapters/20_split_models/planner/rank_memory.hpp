// What a rank of a training stores: weights and gradients in 16 bits, and the optimizer's two means
// and weights in 32 bits (Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054, section 3).
#pragma once

#include "20_split_models/planner/layout.hpp"
#include "20_split_models/planner/model_shape.hpp"

namespace t2t {

/// Bytes of the rank that stores most, on the first stage of the pipeline.
struct RankMemory {
  double weights, gradients, optimizer;
  double activations;  // that the backward pass reads, of all micro-batches in flight
};

/// The weights of that rank, without what ZeRO-3 saves: its blocks, and embedding or head.
double rank_parameters(const ModelShape& model, const Layout& layout);

/// Norms' inputs are divided among a tensor group, as by sequence parallelism (Korthikanti et al.
/// 2022, arXiv 2205.05198), and attention's scores are recomputed, as flash attention does.
RankMemory rank_memory(const ModelShape& model, const Job& job, const Layout& layout);
double total(const RankMemory& memory);

}  // namespace t2t
