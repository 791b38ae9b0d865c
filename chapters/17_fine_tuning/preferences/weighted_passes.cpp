#include "17_fine_tuning/preferences/weighted_passes.hpp"

namespace t2t {

WeightedPasses::WeightedPasses(const Config& config, std::size_t B, std::size_t T)
    : loss_(B * T), passes_(config, B, T, loss_.functions()) {}

const std::vector<double>& WeightedPasses::log_p(const Model& model, const Batch& batch) {
  loss_.begin(batch);
  passes_.loss(model, batch);
  return loss_.log_p();
}

double WeightedPasses::add(const Model& model, const Batch& batch, ConstRow weights,
                           ModelWeights& gradients) {
  loss_.begin(batch, weights);
  return passes_.add(model, batch, 1, gradients);
}

}  // namespace t2t
