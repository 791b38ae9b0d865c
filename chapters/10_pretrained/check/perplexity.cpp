#include "10_pretrained/check/perplexity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "09_language_model/loss.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

/// exp(nats), which must be a number.
static double finite_perplexity(double nats) {
  if (std::isnan(nats))
    throw std::runtime_error("perplexity: the model's logits are not numbers (NaN)");
  if (!std::isfinite(std::exp(nats)))
    throw std::runtime_error(
        fmt::format("perplexity: wanted a loss of at most 709 nats per token, got {:.3g}: the "
                    "model's logits are far too large",
                    nats));
  return std::exp(nats);
}

Perplexity perplexity_of(std::span<const int> ids, const Model& model, std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window,
                         const MakeState& make_state) {
  const Config& config = model.config();
  expect(window >= 2 && window <= config.T_max, "window",
         "2 to T_max = " + std::to_string(config.T_max), window);
  expect(ids.size() >= 2, "T, the tokens of the text", "at least 2", ids.size());
  const std::size_t S = std::min(window, ids.size());
  expect_memory(sizeof(float) * double(S) * double(config.V), "the logits of a window",
                "make --window smaller");
  ModelState state = make_state(model, S);
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
    if (after_window) after_window({scored, finite_perplexity(nats / double(scored))});
  }
  return {scored, finite_perplexity(nats / double(scored))};
}

namespace {
/// Reads a text from its beginning, a few tokens at a time, and adds up −ln p of each.
class TextReader {
 public:
  TextReader(const Model& model, std::size_t S, std::size_t step, const MakeState& make_state)
      : model_(model), state_(make_state(model, S)), logits_(empty(step + 1, model.config().V)) {}

  void begin() { reset(state_); }

  /// The sum of −ln p of these tokens. Of a text's very first, which nothing predicts, 0.
  double read(std::span<const int> text, std::size_t from, std::size_t count) {
    const Matrix said = Matrix(logits_).rows_from(1, count);
    // Row 0 is what the last call's last token predicts: this call's first token.
    if (from > 0) std::ranges::copy(last_, row(logits_, 0).begin());
    forward_all(model_, state_, text.subspan(from, count), said);
    last_.assign(said.row(count - 1).begin(), said.row(count - 1).end());
    const std::size_t skip = from > 0 ? 0 : 1, rows = count + 1 - skip;
    if (rows < 2) return 0;
    return double(rows - 1) * next_token_loss(Matrix(logits_).rows_from(skip, rows),
                                              text.subspan(from + skip - 1, rows));
  }

 private:
  const Model& model_;
  ModelState state_;
  Tensor<2> logits_;         // [step + 1, V]
  std::vector<float> last_;  // [V], the logits of the last token read
};
}  // namespace

std::vector<AtPositions> perplexity_by_position(
    std::span<const int> ids, const Model& model, std::size_t bucket, Before before,
    const std::function<void(std::size_t read)>& after_step, const MakeState& make_state) {
  const Config& config = model.config();
  const bool whole = before == Before::whole_text;
  expect(ids.size() >= 2, "T, the tokens of the text", "at least 2", ids.size());
  expect(bucket >= 2 && (whole || bucket <= config.T_max), "bucket",
         "2 to T_max = " + std::to_string(config.T_max), bucket);
  const std::size_t S = whole ? ids.size() : std::min(bucket, ids.size());
  const std::size_t step = std::min<std::size_t>(256, std::min(bucket, ids.size()));
  expect_memory(sizeof(float) * double(step + 1) * double(config.V), "the logits of a step",
                "make --window smaller");
  TextReader reader(model, S, step, make_state);

  std::vector<AtPositions> buckets;
  for (std::size_t from = 0; from < ids.size(); from += bucket) {
    const std::size_t to = std::min(from + bucket, ids.size());
    const std::size_t origin = whole ? 0 : from;  // where the text that is read begins
    const std::size_t scored = to - from - (from == origin ? 1 : 0);
    if (scored == 0) break;
    if (from == origin) reader.begin();
    double nats = 0;
    for (std::size_t at = from; at < to; at += step) {
      const std::size_t count = std::min(step, to - at);
      nats += reader.read(ids.subspan(origin), at - origin, count);
      if (after_step) after_step(at + count);
    }
    buckets.push_back({from, to, finite_perplexity(nats / double(scored))});
  }
  return buckets;
}

}  // namespace t2t
