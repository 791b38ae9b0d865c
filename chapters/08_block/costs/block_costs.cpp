#include "08_block/costs/block_costs.hpp"

#include "04_causal_attention/fast/attend.hpp"

namespace t2t {

PartCost total(const BlockCosts& costs) {
  PartCost sum = {0, 0};
  for (const PartCost& part : {costs.attention_norm, costs.projections, costs.attention,
                               costs.output, costs.feed_forward_norm, costs.feed_forward}) {
    sum.parameters += part.parameters;
    sum.flops += part.flops;
  }
  return sum;
}

BlockCosts block_costs(const BlockSettings& settings, std::size_t T, std::size_t S) {
  expect_settings(settings);
  const std::size_t C = settings.C, F = settings.F;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  const std::size_t qkv_bias = settings.biases != Biases::none,
                    bias = settings.biases == Biases::all;
  const std::size_t up_matrices = is_gated(settings.activation) + 1;
  const std::size_t of_a_norm = settings.norm == Norm::layer ? 2 : 1;
  const std::size_t norms = settings.norm_place == NormPlace::both ? 2 : 1;  // of a sublayer
  const PartCost norm = {norms * of_a_norm * C, 0};
  const std::size_t normed = settings.heads_together ? HD + GD : 2 * settings.D;
  const std::size_t head_norms = settings.head_norms ? of_a_norm * normed : 0;

  const auto product = [&](std::size_t out, std::size_t in) { return 2.0 * double(T * out * in); };
  const double seen = pairs_seen(T, S, Mask::sliding(settings.window));
  const std::size_t network_biases = F > 0 ? bias * (F + C) : 0;
  const std::size_t network = up_matrices * F * C + C * F + network_biases;
  const double of_network = product(up_matrices * F, C) + product(C, F);
  const std::size_t E = settings.experts, k = settings.chosen;
  const std::size_t shared = (up_matrices + 1) * settings.shared * C + settings.shared_gate * C;
  return {.attention_norm = norm,
          .projections = {(HD + 2 * GD) * (C + qkv_bias) + head_norms, product(HD + 2 * GD, C)},
          .attention = {0, 4 * seen * double(HD)},
          .output = {C * (HD + bias), product(C, HD)},
          .feed_forward_norm = norm,
          .feed_forward =
              E == 0 ? PartCost{network, of_network}
                     : PartCost{E * (network + C) + shared,
                                double(k) * of_network + product(E, C) + 2 * double(T * shared)}};
}

}  // namespace t2t
