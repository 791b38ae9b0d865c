#include "20_split_models/expert_parallel/run_experts.hpp"

namespace t2t {

/// A normalized weight of a single choice is 1, whatever its score: the router learns nothing here.
static Mixture with_one_choice(std::span<const FeedForwardWeights> own, Activation activation,
                               const Weight& router) {
  return {router, own, activation, {.k = 1}};
}

Tensor<2> run_own_experts(std::span<const FeedForwardWeights> own, Activation activation,
                          std::span<const std::size_t> experts, const Tensor<2>& rows) {
  const std::size_t N = rows.shape(0), C = rows.shape(1);
  Tensor<2> results = empty(N, C);
  if (N == 0) return results;
  const Weight no_router;
  ExpertsScratch scratch(N, C, own[0].w_up.rows(), own.size(), 1, activation);
  const Tensor<2> weights = xt::ones<float>({N, std::size_t(1)});
  run_choices(rows, with_one_choice(own, activation, no_router), experts, weights, scratch,
              results);
  return results;
}

Tensor<2> own_experts_backward(std::span<const FeedForwardWeights> own, Activation activation,
                               std::span<const std::size_t> experts, const Tensor<2>& rows,
                               const Tensor<2>& dresults, std::span<FeedForwardWeights> gradients) {
  const std::size_t N = rows.shape(0), C = rows.shape(1), E = own.size();
  Tensor<2> drows = empty(N, C);
  if (N == 0) return drows;
  const Tensor<2> scores = xt::zeros<float>({N, E});
  const Routed routed = {
      scores, scores, {experts.begin(), experts.end()}, xt::ones<float>({N, std::size_t(1)})};
  const Weight router(xt::zeros<float>({E, C}));
  Weight drouter = router, no_gate;
  FeedForwardWeights no_shared;
  experts_backward(rows, with_one_choice(own, activation, router), routed, {}, dresults, drows,
                   {drouter, gradients, no_shared, no_gate});
  return drows;
}

}  // namespace t2t
