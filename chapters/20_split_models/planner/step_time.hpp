// How long a training step takes, by formula: the time of its products, and the bytes that a rank
// sends, divided by the bandwidth of the links between its group's ranks.
//
//   tensor     two all-reduces a block, forward and backward (Shoeybi et al. 2019, arXiv
//   1909.08053) context    all ranks gather a block's keys and values, and add up their gradients
//   (Llama Team
//              2024, arXiv 2407.21783)
//   pipeline   a bubble of (p − 1)/(m·v) of the work (Narayanan et al. 2021, arXiv 2104.04473)
//   data       a reduce-scatter of gradients and an all-gather of weights; ZeRO-3: two all-gathers
//   and a
//              reduce-scatter in each micro-batch
//   experts    an all-to-all there and back (Lepikhin et al. 2020, "GShard", arXiv 2006.16668)
//
// Not counted: latencies, what pipeline stages send, uneven loads of experts.
#pragma once

#include "20_split_models/planner/cluster.hpp"
#include "20_split_models/planner/layout.hpp"
#include "20_split_models/planner/model_shape.hpp"

namespace t2t {

/// Seconds of a step. All but `data` are those of all micro-batches.
struct StepTime {
  double products;  // of matrices, and attention
  double tensor, context, experts;
  double bubble;  // a pipeline's first and last micro-batches, when stages wait
  double data;    // the part that is not hidden behind products
};

/// If the job overlaps, gradients are sent during the last micro-batch's backward pass, weights
/// during the first one's forward pass, and ZeRO-3's weights and gradients during all products.
/// What takes longer than these products remains in `data`.
StepTime step_time(const ModelShape& model, const Cluster& cluster, const Job& job,
                   const Layout& layout);
double total(const StepTime& time);
/// As if all messages were sent beside products: a step takes as long as the longer of the two.
double with_messages_hidden(const StepTime& time);

/// FLOPs of a step in all devices: 2 for each active weight and token, and as many for attention as
/// chapter 09 counts; a backward pass is two forward passes, and recomputation one more.
double step_flops(const ModelShape& model, const Job& job, bool recompute);

/// The share of its peak that a device reaches in products of width C: 0.597 / (1 + 600/C), with
/// both constants fitted to two published trainings (published.hpp).
double product_efficiency(std::size_t C);

}  // namespace t2t
