#include "22_grid/experts/grid_experts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "19_ranks/collectives/values.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "shapes.hpp"

namespace t2t {

GridExperts::GridExperts(const Communicator& line, const ShardGroup& shards,
                         const MixtureSizes& sizes, const GridBalance& balance, Added added)
    : line_(line),
      shards_(shards),
      sizes_(sizes),
      balance_(balance),
      added_(std::move(added)),
      kept_(sizes.slots * sizes.layers.size()),
      counts_(sizes.layers.size() * sizes.E),
      losses_(sizes.own_parts * sizes.layers.size()) {}

void GridExperts::begin_step() {
  std::ranges::fill(counts_, 0.0);
  rows_ = 0, sent_before_ = line_.sent_by_rank(), counted_ = {};
}

Mixture GridExperts::own_mixture(const Block& block) const {
  Mixture mixture = mixture_of(block.weights(), block.settings());
  const Range own = own_experts(sizes_.E, line_.ranks().size, line_.ranks().rank);
  mixture.experts = mixture.experts.subspan(own.begin, own.size());
  return mixture;
}

KeptExperts& GridExperts::kept_of(std::size_t layer) {
  const std::size_t slot = part_ % sizes_.slots;
  return kept_.at(slot * sizes_.layers.size() + layer);
}

void GridExperts::forward(const Block& block, ConstMatrix x, Matrix y) {
  const std::size_t layer = block.layer() - sizes_.layers.begin;
  const Mixture mixture = own_mixture(block);
  Routed routed = route_each(x, mixture);
  for (const std::size_t e : routed.experts) counts_[layer * sizes_.E + e] += 1;
  KeptExperts& kept = kept_of(layer);
  kept = mixture_forward(line_, x, mixture, std::move(routed), y);
  const std::size_t rank = line_.ranks().rank;
  rows_ += kept.exchange.sent() - kept.exchange.to[rank];
  rows_ += kept.exchange.received() - kept.exchange.from[rank];
}

void GridExperts::share_counts(const Communicator& replicas) {
  const Sent before = sent();
  counts_ = sum_of_values(replicas, counts_);
  counted_ += sent() - before;
}

double switch_loss(const Routed& routed, const Tensor<1>& loads, float factor, Tensor<2>& dp) {
  const std::size_t T = routed.p.shape(0), E = routed.p.shape(1);
  expect_shape("loads", loads, {E});
  expect_shape("dp", dp, {T, E});
  const Tensor<1> P = xt::mean(routed.p, {0});      // [E]
  const float each = factor * float(E) / float(T);  // p[t,e] is one T-th of P[e]
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t e = 0; e < E; ++e) dp(t, e) += each * loads(e);
  return double(factor) * double(E) * double(xt::sum(loads * P)());
}

/// Of the batch, if all ranks' counts are known, or of this micro-batch.
Tensor<1> GridExperts::loads_of_loss(const Routed& routed, std::size_t layer) const {
  if (balance_.loads == LoadsOf::micro_batch) return loads_of(routed.experts, sizes_.E);
  Tensor<1> loads = empty(sizes_.E);
  const auto counts = std::span(counts_).subspan(layer * sizes_.E, sizes_.E);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (std::size_t e = 0; e < sizes_.E; ++e) loads(e) = float(counts[e] / all);
  return loads;
}

/// A micro-batch's share of the losses: all have equally many tokens.
double GridExperts::add_losses(const Routed& routed, std::size_t layer, Tensor<2>& dscores) const {
  const float share = 1 / float(sizes_.parts);
  double loss = 0;
  if (balance_.switch_loss > 0) {
    Tensor<2> dp = xt::zeros_like(routed.p);  // [T, E]
    loss += switch_loss(routed, loads_of_loss(routed, layer), balance_.switch_loss * share, dp);
    dscores += scores_backward(routed.p, Scoring::softmax, dp);
  }
  if (balance_.z_loss > 0) loss += z_loss(routed, balance_.z_loss * share, dscores);
  return loss;
}

void GridExperts::backward(const NetworkCall& call) {
  const std::size_t layer = call.block.layer() - sizes_.layers.begin;
  const Range own = own_experts(sizes_.E, line_.ranks().size, line_.ranks().rank);
  const KeptExperts& kept = kept_of(layer);
  const auto added = [&](std::size_t sender) { added_(call.block.layer(), sender, part_); };
  const auto losses = [&](Tensor<2>& dscores) {
    losses_[part_ * sizes_.layers.size() + layer] = add_losses(kept.routed, layer, dscores);
  };
  mixture_backward(
      line_, shards_, call.x, own_mixture(call.block),
      {kept, call.dy, call.dx, call.gradients.router,
       std::span(call.gradients.experts).subspan(own.begin, own.size()), added, losses});
}

TrainedNetwork GridExperts::network() {
  return {
      [this](const Block& block, ConstMatrix x, Matrix y, const Trace&) { forward(block, x, y); },
      [this](const NetworkCall& call) {
        backward(call);
        return 0.0;  // the losses are known by layer and micro-batch
      }};
}

double GridExperts::loss(std::size_t layer, std::size_t part) const {
  return losses_.at(part * sizes_.layers.size() + layer);
}

}  // namespace t2t
