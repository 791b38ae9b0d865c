#include "14_mixture_of_experts/model/mixture_network.hpp"

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

Mixture mixture_of(const BlockWeights& weights, const BlockSettings& s, Scoring scoring,
                   ConstRow bias) {
  return {
      weights.router,
      weights.experts,
      s.activation,
      {s.chosen, scoring, s.normalized},
      bias,
      {s.shared > 0 ? &weights.shared : nullptr, s.shared_gate ? &weights.shared_gate : nullptr}};
}

/// For up to so many tokens of a block with these settings.
static ExpertsScratch scratch_of(const BlockSettings& s, std::size_t rows) {
  return {rows, s.C, std::max(s.F, s.shared), s.experts, s.chosen, s.activation};
}

MakeNetwork experts_network(Scoring scoring) {
  return [=](std::span<const BlockSettings> layers, std::size_t rows) -> FeedForward {
    expect(!layers.empty(), "layers", "at least 1", 0);
    const BlockSettings& s = layers[0];
    for (const BlockSettings& other : layers)
      if (other.F != s.F || other.experts != s.experts || other.chosen != s.chosen ||
          other.activation != s.activation || other.shared != s.shared)
        throw std::invalid_argument(
            "layers: wanted the same F, E, k, activation and shared network in all");
    const auto scratch = std::make_shared<ExpertsScratch>(scratch_of(s, rows));
    return [=](const Block& block, ConstMatrix x, Matrix y, const Trace&) {
      experts_rows(x, mixture_of(block.weights(), block.settings(), scoring), *scratch, y);
    };
  };
}

TrainedExperts::TrainedExperts(std::size_t L, std::size_t E, Scoring scoring, Balance balance)
    : scoring_(scoring),
      balance_(balance),
      loads_(xt::zeros<float>({L, E})),
      bias_(xt::zeros<float>({L, E})),
      routed_(L) {}

Mixture TrainedExperts::mixture(const Block& block) const {
  return mixture_of(block.weights(), block.settings(), scoring_,
                    balance_.bias_rate > 0 ? row(bias_, block.layer()) : ConstRow());
}

void TrainedExperts::forward(const Block& block, ConstMatrix x, Matrix y) {
  const BlockSettings& s = block.settings();
  const Mixture mixture = this->mixture(block);
  Routed& routed = routed_.at(block.layer());
  routed = choices_of(x, mixture, balance_);
  xt::row(loads_, long(block.layer())) = loads_of(routed.experts, s.experts);
  if (!scratch_ || scratch_->p.shape(0) < x.rows)
    scratch_ = std::make_unique<ExpertsScratch>(scratch_of(s, x.rows));
  run_choices(x, mixture, routed.experts, routed.weights, *scratch_, y);
}

TrainedNetwork TrainedExperts::network() {
  return {
      [this](const Block& block, ConstMatrix x, Matrix y, const Trace&) { forward(block, x, y); },
      [this](const NetworkCall& call) {
        return experts_backward(call.x, mixture(call.block), routed_.at(call.block.layer()),
                                balance_, call.dy, call.dx,
                                {call.gradients.router, call.gradients.experts,
                                 call.gradients.shared, call.gradients.shared_gate});
      }};
}

double TrainedExperts::dropped() const {
  std::size_t dropped = 0, all = 0;
  for (const Routed& routed : routed_) {
    dropped += std::size_t(std::ranges::count(routed.weights, 0.0f));
    all += routed.weights.size();
  }
  return all == 0 ? 0 : double(dropped) / double(all);
}

void TrainedExperts::after_step() {
  if (balance_.bias_rate == 0) return;
  for (std::size_t l = 0; l < loads_.shape(0); ++l) {
    Tensor<1> bias = xt::row(bias_, long(l));
    adjust_bias(Tensor<1>(xt::row(loads_, long(l))), balance_.bias_rate, bias);
    xt::row(bias_, long(l)) = bias;
  }
}

}  // namespace t2t
