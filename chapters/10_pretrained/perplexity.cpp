#include "10_pretrained/perplexity.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "09_language_model/loss.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

Perplexity perplexity_of(std::span<const int> ids, const Model& model, std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window) {
  const Config& config = model.config();
  expect(window >= 2 && window <= config.T_max, "window",
         "2 to T_max = " + std::to_string(config.T_max), double(window));
  expect(ids.size() >= 2, "T, the tokens of the text", "at least 2", double(ids.size()));
  const std::size_t S = std::min(window, ids.size());
  expect_memory(sizeof(float) * double(S) * double(config.V), "the logits of a window",
                "make --window smaller");
  ModelState state(config, S);
  Tensor<2> logits = empty(S, config.V);  // [S, V]

  double nats = 0;
  std::size_t scored = 0;
  for (std::size_t from = 0; from + 1 < ids.size(); from += window) {
    const std::span<const int> part = ids.subspan(from, std::min(window, ids.size() - from));
    const Matrix said = Matrix(logits).rows_from(0, part.size());  // [T, V]
    reset(state);
    forward_all(model, state, part, said);
    nats += next_token_loss(said, part) * double(part.size() - 1);
    scored += part.size() - 1;
    if (std::isnan(nats))
      throw std::runtime_error("perplexity: the model's logits are no numbers (nan)");
    if (after_window) after_window({scored, std::exp(nats / double(scored))});
  }
  return {scored, std::exp(nats / double(scored))};
}

}  // namespace t2t
