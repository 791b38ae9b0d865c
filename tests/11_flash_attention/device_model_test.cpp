// What must be true of a whole model on a device; run on the stand-in, and on a GPU where one is.
#include "11_flash_attention/kernels/model/device_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "09_language_model/language_model.hpp"
#include "11_flash_attention/device_models.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "support/all_close.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/lists.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::device_model_test {

using namespace device_models;

static Model llama() { return model_of(config_of(Pairing::neighbours, false)); }

static Tensor<2> rows_of(const Tensor<2>& x, std::size_t from, std::size_t count) {
  return copy_of(ConstMatrix(x).rows_from(from, count));
}

/// The logits of all tokens, in one call.
static Tensor<2> all_logits(const Model& model, ModelState& state, const Ids& ids) {
  Tensor<2> logits = empty(ids.size(), model.config().V);
  forward_all(model, state, ids, logits);
  return logits;
}
/// The logits of each token, token by token.
static Tensor<2> step_by_step(const Model& model, ModelState& state, const Ids& ids) {
  Tensor<2> logits = empty(ids.size(), model.config().V);
  for (std::size_t t = 0; t < ids.size(); ++t)
    forward(model, state, std::span(ids).subspan(t, 1), row(logits, t));
  return logits;
}

/// Checks a text in one call, and again token by token.
static void agrees_with_the_formula(const Model& model, const Ids& ids) {
  const Tensor<2> want = language_model(ids, model);
  ModelState state = gpu_state(model, 40);
  CHECK(all_close(all_logits(model, state, ids), want, bound(model, want)));
  reset(state);
  CHECK(all_close(step_by_step(model, state, ids), want, bound(model, want)));
}

TEST_CASE("the model on a device agrees with the formula, for both pairings and heads") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const Model model = model_of(config_of(tied ? Pairing::halves : Pairing::neighbours, tied));
    agrees_with_the_formula(model, some_ids(21));
  }
}

TEST_CASE("heads of 128 channels, one group for all of them, and scaled frequencies") {
  Config config = config_of(Pairing::halves, true);
  config.block.H = 2, config.block.G = 1, config.block.D = 128;
  config.block.frequencies = rope_frequencies(128, 500);
  agrees_with_the_formula(model_of(config), some_ids(12));
}

TEST_CASE(
    "a prompt in chunks, whose logits come in pieces, and one whose last token alone has any" *
    doctest::test_suite("slow")) {
  const Model model = llama();
  const Ids ids = some_ids(150);
  const Tensor<2> want = language_model(ids, model);
  const double within = bound(model, want);
  ModelState at_once = gpu_state(model, 150);
  CHECK(all_close(all_logits(model, at_once, ids), want, within));
  ModelState in_chunks = gpu_state(model, 150, {.chunk = 40});
  CHECK(all_close(all_logits(model, in_chunks, ids), want, within));
  reset(in_chunks);
  Tensor<2> last = empty(1, model.config().V);
  forward(model, in_chunks, ids, row(last, 0));
  CHECK(all_close(last, rows_of(want, 149, 1), within));
}

TEST_CASE("a step has the same bits again after a cut, and other ones after another text") {
  const Model model = llama();
  const Ids ids = some_ids(9), other = some_ids(9, 5);
  ModelState state = gpu_state(model, 40);
  const Tensor<2> first = step_by_step(model, state, ids);
  CHECK(state.length() == 9);
  truncate(state, 4);
  CHECK(step_by_step(model, state, Ids(ids.begin() + 4, ids.end())) == rows_of(first, 4, 5));
  truncate(state, 4);
  const Ids rest(other.begin() + 4, other.end());
  Ids whole(ids.begin(), ids.begin() + 4);
  whole.insert(whole.end(), rest.begin(), rest.end());
  const Tensor<2> want = language_model(whole, model);
  CHECK(all_close(step_by_step(model, state, rest), rows_of(want, 4, 5), bound(model, want)));
}

TEST_CASE("two texts at once: what each gives alone, in any split of their tokens") {
  const Model model = llama();
  const Ids a = some_ids(14), b = some_ids(11, 5);
  const Tensor<2> want_a = language_model(a, model), want_b = language_model(b, model);
  const double within = bound(model, want_a);
  ModelState state = gpu_state(model, 20, {.chunk = 6, .sequences = 2});
  const std::span<const int> of_a = a, of_b = b;

  // A prompt of each, of which b's wants two rows of logits; then one token of each at once.
  Tensor<2> logits = empty(3, model.config().V);
  forward(model, state, std::vector<MoreTokens>{{1, of_b.first(9), 2}, {0, of_a.first(13)}},
          logits);
  CHECK(all_close(rows_of(logits, 0, 2), rows_of(want_b, 7, 2), within));
  CHECK(all_close(rows_of(logits, 2, 1), rows_of(want_a, 12, 1), within));
  CHECK(state.lengths == std::vector<std::size_t>{13, 9});
  Tensor<2> two = empty(2, model.config().V);
  forward(model, state, std::vector<MoreTokens>{{0, of_a.subspan(13)}, {1, of_b.subspan(9, 1)}},
          two);
  CHECK(all_close(rows_of(two, 0, 1), rows_of(want_a, 13, 1), within));
  CHECK(all_close(rows_of(two, 1, 1), rows_of(want_b, 9, 1), within));

  // The same step of b alone has the same bits, and the next one goes on after it.
  truncate(state, 9, 1);
  Tensor<2> one = empty(1, model.config().V);
  forward(model, state, std::vector<MoreTokens>{{1, of_b.subspan(9, 1)}}, one);
  CHECK(one == rows_of(two, 1, 1));
  truncate(state, 13, 0);
  forward(model, state, std::vector<MoreTokens>{{0, of_a.subspan(13)}}, one);
  CHECK(one == rows_of(two, 0, 1));
  forward(model, state, std::vector<MoreTokens>{{1, of_b.subspan(10)}}, one);
  CHECK(all_close(one, rows_of(want_b, 10, 1), within));

  // A prompt that is to go on wants no logits.
  reset(state);
  Tensor<2> none = empty(0, model.config().V);
  forward(model, state, std::vector<MoreTokens>{{0, of_a.first(1), 0}}, none);
  forward(model, state, std::vector<MoreTokens>{{0, of_a.subspan(1)}}, one);
  CHECK(all_close(one, rows_of(want_a, 13, 1), within));
}

TEST_CASE("a step over a long text, whose keys are cut into stretches") {
  const Model model = llama();
  const Ids ids = some_ids(70);
  const Tensor<2> want = language_model(ids, model);
  ModelState state = gpu_state(model, 300);  // room for two stretches
  Tensor<2> last = empty(1, model.config().V);
  forward(model, state, std::span(ids).first(69), row(last, 0));
  CHECK(all_close(last, rows_of(want, 68, 1), bound(model, want)));
  forward(model, state, std::span(ids).last(1), row(last, 0));
  CHECK(all_close(last, rows_of(want, 69, 1), bound(model, want)));
}

TEST_CASE("packed weights become the same bits on the device as floats") {
  const Config config = config_of(Pairing::halves, true);
  const Model model = model_of(config);
  ModelWeights packed = model.weights();
  for_each_tensor(packed, config, [](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0) tensor = doubled(tensor.floats());
  });
  const Model of_packed(config, std::move(packed));
  const Ids ids = some_ids(5);
  ModelState state = gpu_state(model, 8), from_packed = gpu_state(of_packed, 8);
  CHECK(all_logits(of_packed, from_packed, ids) == all_logits(model, state, ids));
}

TEST_CASE("a NaN in the weights reaches the logits") {
  Model model = llama();
  model.change_weights(
      [](ModelWeights& weights) { weights.blocks[1].w_v.floats()(70, 3) = std::nanf(""); });
  ModelState state = gpu_state(model, 8);
  const Tensor<2> logits = all_logits(model, state, some_ids(2));
  CHECK(std::ranges::all_of(logits, [](float logit) { return std::isnan(logit); }));
}

TEST_CASE("rows of a pass: entries in their order, cut where a chunk is full") {
  const Ids a = {10, 11, 12}, b = {20, 21};
  const std::vector<MoreTokens> more = {{1, a, 2}, {0, b, 1}};
  const std::vector<std::size_t> lengths = {7, 4};
  const std::vector<PlannedRows> chunks = plan_rows(more, lengths, 4);
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0].ids == std::vector<int>{10, 11, 12, 20});
  CHECK(chunks[0].positions == std::vector<int>{4, 5, 6, 7});
  CHECK(chunks[0].sequences == std::vector<int>{1, 1, 1, 0});
  CHECK(chunks[0].wanted == std::vector<int>{1, 2});
  REQUIRE(chunks[0].runs.size() == 2);
  CHECK(chunks[0].runs[1].position == 7);
  CHECK(chunks[1].ids == std::vector<int>{21});
  CHECK(chunks[1].positions == std::vector<int>{8});
  CHECK(chunks[1].wanted == std::vector<int>{0});
  CHECK(chunks[1].runs[0].sequence == 0);
}

static void make(Config config, StateOptions options = {}) {
  const Model model = model_of(config);
  gpu_state(model, 8, std::move(options));
}

TEST_CASE("a model that the kernels do not compute is refused, and so is a trace") {
  const Config good = config_of(Pairing::halves, true);
  const std::string without = "the model for a GPU: wanted one without ";
  Config c = good;
  c.block.window = 3;
  REFUSES(make(c), without + "a sliding window");
  c = good, c.logit_cap = 30;
  REFUSES(make(c), without + "capped logits");
  c = good, c.learned_positions = true;
  REFUSES(make(c), without + "learned positions");
  c = good, c.block.D = 32;
  REFUSES(make(c), "D: wanted 64 or 128, got 32");
  c = good, c.block.C = 76;
  REFUSES(make(c), "C: wanted a multiple of 8, got 76");
  c = good, c.block.F = 100;
  REFUSES(make(c), "F: wanted a multiple of 8, got 100");
  REFUSES(make(good, {.chunk = 0}), "chunk, the rows of a pass: wanted at least 1, got 0");
  REFUSES(make(good, {.chunk = 70000, .sequences = 10000}), "chunk: wanted 1 to 65535, got 70000");

  const Model model = model_of(good), another = model_of(good);
  ModelState state = gpu_state(model, 8);
  Tensor<1> logits = empty(good.V);
  const Ids one = {1};
  const Trace trace = [](Part, std::size_t, ConstMatrix) {};
  REFUSES(forward(model, state, one, row(logits), trace),
          "trace: wanted none, since this state's pass reports no intermediate results, got one");
  REFUSES(forward(another, state, one, row(logits)),
          "model: wanted the one whose weights are on the device, got another");
  CHECK(state.length() == 0);
}

}  // namespace t2t::device_model_test
