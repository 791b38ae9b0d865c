#include "20_split_models/expert_parallel/expert_network.hpp"

#include <utility>

#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"

namespace t2t {

ParallelExperts::ParallelExperts(const Communicator& ranks, std::size_t L, Scoring scoring,
                                 const ExpertCapacity& capacity)
    : ranks_(ranks), scoring_(scoring), capacity_(capacity), kept_(L) {}

Mixture ParallelExperts::own_mixture(const Block& block) const {
  Mixture mixture = mixture_of(block.weights(), block.settings(), scoring_);
  const Range own = own_experts(mixture.E(), ranks_.size, ranks_.rank);
  mixture.experts = mixture.experts.subspan(own.begin, own.size());
  return mixture;
}

TrainedNetwork ParallelExperts::network() {
  return {
      [this](const Block& block, ConstMatrix x, Matrix y, const Trace&) {
        const Mixture mixture = own_mixture(block);
        Routed routed = route_each(x, mixture);
        limit_choices(ranks_, capacity_, routed);
        kept_.at(block.layer()) = parallel_experts_rows(ranks_, x, mixture, std::move(routed), y);
      },
      [this](const NetworkCall& call) {
        BlockWeights& gradients = call.gradients;
        const Range own = own_experts(gradients.experts.size(), ranks_.size, ranks_.rank);
        parallel_experts_backward(
            ranks_, call.x, own_mixture(call.block), kept_.at(call.block.layer()), call.dy, call.dx,
            {gradients.router, std::span(gradients.experts).subspan(own.begin, own.size()),
             gradients.shared, gradients.shared_gate});
        return 0.0;
      }};
}

}  // namespace t2t
