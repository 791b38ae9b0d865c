#include "09_language_model/language_model.hpp"

#include <string>

#include "09_language_model/fast/forward.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> language_model(std::span<const int> ids, const Model& model,
                         const ReferenceNetwork& network) {
  const Config& config = model.config();
  const std::size_t T = ids.size();
  expect(T >= 1 && T <= config.T_max, "T, the tokens",
         "1 to T_max = " + std::to_string(config.T_max), T);

  Tensor<2> x = empty(T, config.block.C);  // [T, C]
  embed_tokens(model, ids, 0, x);
  for (std::size_t l = 0; l < config.L; ++l) {
    const BlockSettings& settings = settings_of(config, l);
    x = block(x, model.weights().blocks[l], settings, block_rope_table(settings, T), network);
  }
  x = norm(x, model.weights().final_norm, config.block.norm, config.block.eps);
  const Tensor<2> logits = config.logit_scale * matmul_bt(x, model.head());  // [T, V]
  const float cap = config.logit_cap;
  return cap > 0 ? Tensor<2>(cap * xt::tanh(logits / cap)) : logits;
}

}  // namespace t2t
