// What must be true of the trainer, which puts a step together.
#include "13_training/trainer/trainer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "09_language_model/cases.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "13_training/cases.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t::trainer_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// A model for bytes, and a text that it can learn.
static Config tiny() {
  return {.block = llama_style(32, 4, 2, 48), .L = 2, .V = 257, .T_max = 16, .tied = true};
}
/// The same with GPT-2's parts: biases, positions and LayerNorm.
static Config tiny_gpt2() {
  Config config = tiny();
  config.block = gpt2_style(32, 4), config.learned_positions = true;
  return config;
}
static Ids text_ids() {
  Ids ids;
  for (int i = 0; i < 600; ++i) ids.push_back(97 + i * i % 23);
  return ids;
}
static Model drawn(std::uint64_t seed = 3, const Config& config = tiny()) {
  Random random(seed);
  return Model(config, draw_model(config, random));
}
static TrainingOptions options(size_t B = 4, size_t parts = 1) {
  return {.B = B, .T = 16, .parts = parts, .schedule = {5e-3f, 1e-3f, 5, 200}, .seed = 9};
}
/// The first B texts of T tokens.
static Batch first_of(const Ids& ids, size_t B, size_t T) {
  Batch batch = make_batch(B, T);
  fill_in_order(batch, ids, 0);
  return batch;
}

/// All numbers of some tensors, one after the other.
static Tensor<1> joined(std::initializer_list<std::vector<ListedTensor>> lists) {
  std::vector<float> all;
  for (const std::vector<ListedTensor>& list : lists)
    for (const ListedTensor& tensor : list)
      all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
  Tensor<1> x = empty(all.size());
  std::ranges::copy(all, x.begin());
  return x;
}
/// Weights, means and squares.
static Tensor<1> state_of(Trainer& trainer) {
  return joined({trainer.weights(), trainer.means(), trainer.squares()});
}
static bool same_bits(const Tensor<1>& a, const Tensor<1>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
static double largest(const Tensor<1>& x) {
  double most = 0;
  for (const float value : x) most = std::max(most, std::abs(double(value)));
  return most;
}
static void copy_numbers(const std::vector<ListedTensor>& from,
                         const std::vector<ListedTensor>& to) {
  for (size_t i = 0; i < from.size(); ++i)
    std::ranges::copy(from[i].numbers, to[i].numbers.begin());
}

/// make_training.py's model and text.
static Case reference_case() {
  const BlockSettings block{.C = 20, .H = 4, .G = 2, .D = 6, .F = 27, .theta = 500};
  return {"training", {.block = block, .L = 2, .V = 37, .T_max = 12}, 0};
}
static Ids reference_ids() {
  Ids ids;
  for (const float x : numbers(77, 1, 0, 400)) ids.push_back(int((double(x) + 0.5) * 37));
  return ids;
}
static TrainingOptions reference_options(size_t B, size_t parts) {
  return {
      .B = B, .T = 12, .parts = parts, .schedule = {0.01f, 0.001f, 5, 30}, .clip = 0.5, .seed = 9};
}

TEST_CASE("30 steps of a model are those of PyTorch in float64: each loss, norm, rate and move") {
  const Tensor<2> want = reference("steps");
  const Tensor<1> sizes = reference_row("sizes");
  const Ids ids = reference_ids();
  for (const size_t parts : {1, 2, 4}) {
    CAPTURE(parts);
    Trainer trainer(reference_case().model(), reference_options(4 / parts, parts), ids);
    Tensor<1> losses = empty(30), norms = losses, rates = losses, ratios = losses, got = sizes;
    for (size_t i = 0; i < 30; ++i) {
      const StepReport step = trainer.step();
      CHECK(step.n == i + 1);
      losses(i) = float(step.loss), norms(i) = float(step.gradient_norm);
      rates(i) = step.rate, ratios(i) = float(step.update_ratio);
    }
    const std::vector<ListedTensor> weights = trainer.weights();
    REQUIRE(weights.size() == sizes.size());
    for (size_t i = 0; i < weights.size(); ++i) got(i) = float(gradient_norm({weights[i]}));

    // By roundings alone PyTorch's float32 ends up to 4.2e-7, 3.4e-7, 4.7e-9 and 8.1e-7 away from
    // its float64. Four times as much is allowed, and here and in the file a rounding to a float.
    CHECK(all_close(losses, column(want, 0), 4 * 4.2e-7 + 2 * 8 * u));
    CHECK(all_close(norms, column(want, 1), 4 * 3.4e-7 + 2 * 4 * u));
    CHECK(all_close(rates, column(want, 2), 4 * 0.01 * u));
    CHECK(all_close(ratios, column(want, 3), 4 * 4.7e-9 + 2 * u / 32));
    CHECK(all_close(got, sizes, 4 * 8.1e-7 + 2 * 16 * u));
  }
}

TEST_CASE("one batch is learned by heart" * doctest::test_suite("slow")) {
  for (const Config& config : {tiny(), tiny_gpt2()}) {
    const Ids ids = text_ids();
    Trainer trainer(drawn(3, config), options(), ids);
    const Batch batch = first_of(ids, 4, 16);
    const double first = trainer.step_on(batch).loss;
    CHECK(first == doctest::Approx(std::log(257)).epsilon(0.02));  // nothing is known yet
    double loss = 0;
    for (int i = 0; i < 200; ++i) loss = trainer.step_on(batch).loss;
    CHECK(loss < 0.05);
    CHECK(trainer.loss_of(std::span(ids).first(65)) <= loss);
    CHECK(trainer.steps_done() == 201);
  }
}

TEST_CASE("a batch in two parts is one batch") {
  const Ids ids = text_ids();
  Trainer whole(drawn(), options(4, 1), ids), parts(drawn(), options(2, 2), ids);
  const StepReport a = whole.step(), b = parts.step();
  // Sums of the same 64 tokens in another order: a relative error of some roundings.
  CHECK(b.loss == doctest::Approx(a.loss).epsilon(1e-6));
  CHECK(b.gradient_norm == doctest::Approx(a.gradient_norm).epsilon(1e-5));
  const Tensor<1> means = joined({whole.means()});
  CHECK(all_close(joined({parts.means()}), means, 1e-5 * largest(means)));
  CHECK(whole.memory().weights == parts.memory().weights);
  CHECK(whole.memory().kept == 2 * parts.memory().kept);
}

TEST_CASE("all tensors' gradients are clipped by one factor, which their norm decides") {
  const Ids ids = text_ids();
  TrainingOptions clipped = options(), free = options(), wide = options();
  clipped.clip = 0.25, free.clip = 0, wide.clip = 1000;
  Trainer a(drawn(), clipped, ids), b(drawn(), free, ids), c(drawn(), wide, ids);
  const StepReport step = a.step();
  CHECK(step.gradient_norm == b.step().gradient_norm);  // that before clipping
  c.step();
  CHECK(step.gradient_norm > 0.5);
  CHECK(same_bits(state_of(b), state_of(c)));
  // After the first step a mean is a tenth of the gradient, and a square a twentieth of its square.
  const double factor = 0.25 / step.gradient_norm;
  const Tensor<1> means = joined({a.means()}), squares = joined({a.squares()});
  const Tensor<1> want = joined({b.means()}) * factor;
  const Tensor<1> want_squares = joined({b.squares()}) * factor * factor;
  CHECK(gradient_norm(a.means()) == doctest::Approx(0.1 * 0.25).epsilon(1e-6));
  CHECK(all_close(means, want, 4 * u * 0.025));
  CHECK(all_close(squares, want_squares, 8 * u * 0.05 * 0.25 * 0.25));
}

TEST_CASE("the update ratio is the matrices' step as a share of their size") {
  for (const Config& config : {tiny(), tiny_gpt2()}) {
    const Ids ids = text_ids();
    Trainer trainer(drawn(3, config), options(), ids);
    // At the first step AdamW moves each number by the rate, here a fifth of 5e-3, and the decay
    // adds a tenth of the rate times the number itself, which is small beside 1. So the ratio is
    // the rate over the root mean square of the weights, 1 part in 100 or so apart: for weights of
    // size 1 it would be about the rate.
    double numbers = 0, squares = 0;
    for (const ListedTensor& tensor : trainer.weights())
      if (decays(tensor.info.role))
        for (const float x : tensor.numbers) numbers += 1, squares += double(x) * double(x);
    std::vector<ListedTensor> weights = trainer.weights();
    for (int n = 1; n <= 3; ++n) {
      std::vector<std::vector<float>> before;
      for (const ListedTensor& tensor : weights)
        before.emplace_back(tensor.numbers.begin(), tensor.numbers.end());
      const StepReport step = trainer.step();
      double moved = 0, size = 0;
      for (size_t i = 0; i < weights.size(); ++i)
        for (size_t j = 0; decays(weights[i].info.role) && j < before[i].size(); ++j) {
          const double was = double(before[i][j]);
          moved += std::pow(double(weights[i].numbers[j]) - was, 2), size += was * was;
        }
      CHECK(step.update_ratio == doctest::Approx(std::sqrt(moved / size)).epsilon(1e-4));
      if (n == 1)
        CHECK(step.update_ratio ==
              doctest::Approx(1e-3 / std::sqrt(squares / numbers)).epsilon(0.02));
    }
  }
}

TEST_CASE("gains and biases do not decay; matrices and tables do") {
  for (const Config& config : {tiny(), tiny_gpt2()}) {
    const Ids ids = text_ids();
    TrainingOptions with = options(), without = options();
    with.adamw.decay = 0.5f, without.adamw.decay = 0;
    Trainer a(drawn(3, config), with, ids), b(drawn(3, config), without, ids);
    const std::vector<ListedTensor> x = a.weights(), y = b.weights();
    for (const auto& list : {x, y})  // biases begin at 0, from where no decay would be seen
      for (const ListedTensor& tensor : list)
        if (tensor.info.role == Role::bias) std::ranges::fill(tensor.numbers, 0.25f);
    a.step(), b.step();
    for (size_t i = 0; i < x.size(); ++i) {
      CAPTURE(full_name(x[i].info));
      const bool vector = x[i].info.cols == 1;
      CHECK(std::ranges::equal(x[i].numbers, y[i].numbers) == vector);
    }
  }
}

TEST_CASE("a trainer that is given another's state goes on with the same bits") {
  const Ids ids = text_ids();  // an epoch of 36 windows: nine steps
  for (const size_t parts : {1, 2}) {
    CAPTURE(parts);
    TrainingOptions o = options(4 / parts, parts);
    o.dropout = 0.1f;
    Trainer whole(drawn(), o, ids);
    for (int i = 0; i < 7; ++i) whole.step();
    Trainer second(drawn(4), o, ids);
    copy_numbers(whole.weights(), second.weights());
    copy_numbers(whole.means(), second.means());
    copy_numbers(whole.squares(), second.squares());
    second.continue_from(whole.steps_done());
    CHECK(second.steps_done() == 7);
    for (int i = 0; i < 6; ++i) {
      const StepReport a = whole.step(), b = second.step();
      CHECK(b.n == size_t(8 + i));
      CHECK(b.loss == a.loss);
      CHECK(b.gradient_norm == a.gradient_norm);
      CHECK(b.rate == doctest::Approx(rate_at(options().schedule, b.n)).epsilon(1e-6));
      CHECK(b.update_ratio == a.update_ratio);
    }
    CHECK(same_bits(state_of(second), state_of(whole)));
  }
}

TEST_CASE("what is not to be learned stays as it is, and all else moves as it would") {
  const Ids ids = text_ids();
  const Config config = tiny_gpt2();
  TrainingOptions o = options();
  o.clip = 0;  // by a norm that the table's gradient is part of
  const auto learned = [](const TensorInfo& info) { return info.name != "positions"; };
  Trainer some(drawn(3, config), o, ids, {.learned = learned}), all(drawn(3, config), o, ids);
  CHECK(some.step().loss == all.step().loss);
  const auto positions = [](const Model& model) { return model.weights().positions.floats(); };
  CHECK(all_close(positions(some.model()), positions(drawn(3, config)), 0));
  CHECK(!all_close(positions(all.model()), positions(some.model()), 0));
  std::vector<ListedTensor> others = all.weights();
  std::erase_if(others, [](const ListedTensor& tensor) { return tensor.info.name == "positions"; });
  CHECK(others.size() + 1 == all.weights().size());
  CHECK(same_bits(joined({some.weights()}), joined({others})));
  CHECK(some.means().size() == others.size());
  CHECK(some.squares().size() == others.size());
}

TEST_CASE("each step is on its own windows, as step_on with the same ones") {
  const Ids ids = text_ids();
  Trainer by_itself(drawn(), options(), ids), given(drawn(), options(), ids);
  Windows windows(ids, 16, 9);
  Batch batch = make_batch(4, 16);
  for (std::uint64_t n = 0; n < 12; ++n) {
    windows.fill(batch, 4 * n);
    CHECK(given.step_on(batch).loss == by_itself.step().loss);
  }
  CHECK(same_bits(state_of(given), state_of(by_itself)));
}

TEST_CASE("of a batch with targets that are not learned, the mean is over the others") {
  const Ids ids = text_ids();
  Trainer some(drawn(), options(2), ids), alone(drawn(), options(1), ids);
  Batch batch = first_of(ids, 2, 16);
  std::fill(batch.targets.begin() + 16, batch.targets.end(), not_learned);
  const StepReport a = some.step_on(batch), b = alone.step_on(first_of(ids, 1, 16));
  CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-6));
  CHECK(a.gradient_norm == doctest::Approx(b.gradient_norm).epsilon(1e-5));
  std::ranges::fill(batch.targets, not_learned);
  REFUSES(some.step_on(batch), "targets that are to be learned: wanted at least 1, got 0");
  CHECK(some.steps_done() == 1);
}

TEST_CASE("a step allocates nothing, nor does measuring") {
  for (Config config : {tiny(), tiny_gpt2()}) {
    const Ids ids = text_ids();
    TrainingOptions o = options(2, 2);
    o.dropout = 0.1f;
    Trainer trainer(drawn(3, config), o, ids);
    trainer.step();
    CHECK(allocates_nothing(10, [&] { trainer.step(); }));  // the next epoch begins
    CHECK(allocates_nothing(1, [&] { trainer.loss_of(ids); }));
  }
}

TEST_CASE("loss_of: chapter 09's loss of each window of the text, the last one shorter") {
  const Ids ids = text_ids();
  constexpr size_t T = 12;
  const Model model = drawn();
  std::vector<double> sums;  // of the windows
  for (size_t first = 0; first + 1 < ids.size(); first += T) {
    const size_t count = std::min(T + 1, ids.size() - first);
    const std::span<const int> window = std::span(ids).subspan(first, count);
    sums.push_back(next_token_loss(language_model(window, model), window) * double(count - 1));
  }
  CHECK(sums.size() == 50);  // 49 of 12 targets, and one of 11
  const auto mean = [&](size_t windows, size_t targets) {
    double sum = 0;
    for (size_t i = 0; i < windows; ++i) sum += sums[i];
    return sum / double(targets);
  };
  for (const size_t B : {1, 3, 7}) {
    CAPTURE(B);
    TrainingOptions with_windows = options(B);
    with_windows.T = T;
    Trainer trainer(drawn(), with_windows, ids);
    // Logits have a relative error of some roundings, and so have losses of about 5.5.
    CHECK(std::abs(trainer.loss_of(ids) - mean(50, 599)) < 1e-6);
    for (const size_t windows : {1, 2, 10, 49}) {
      CAPTURE(windows);
      CHECK(std::abs(trainer.loss_of(ids, windows) - mean(windows, windows * T)) < 1e-6);
    }
    CHECK(trainer.loss_of(ids, 50) == trainer.loss_of(ids));
    CHECK(trainer.loss_of(ids, 1000) == trainer.loss_of(ids));
    REFUSES(trainer.loss_of(std::span(ids).first(1)),
            "ids, a text to measure: wanted at least 2 tokens, got 1");
    REFUSES(trainer.loss_of({}), "ids, a text to measure: wanted at least 2 tokens, got 0");
  }
}

TEST_CASE("measuring between steps changes no bit of the training") {
  const Ids ids = text_ids();
  Trainer plain(drawn(), options(2, 2), ids), measured(drawn(), options(2, 2), ids);
  for (int i = 0; i < 3; ++i) {
    plain.step();
    measured.loss_of(ids);
    measured.step();
    measured.loss_of(ids, 1);
  }
  CHECK(same_bits(state_of(measured), state_of(plain)));
  CHECK(measured.steps_done() == 3);
}

/// Whether step() throws as it should when a gradient is not finite.
static std::string said_by_step(Trainer& trainer) {
  try {
    trainer.step();
    return "nothing";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

/// Whether this is what is said when a step cannot be done, or, in other words, names the tensor,
/// or the gradients if all tensors together are meant.
static bool says_not_finite(const std::string& said, int step, const std::string& tensor) {
  const std::string ours =
      fmt::format("step {}: the gradient of {} is not finite (loss ", step, tensor);
  if (!in_own_words())
    return said.starts_with(ours) && said.ends_with("); wanted a lower rate or more warm-up");
  return said.find(tensor == "all tensors together" ? "gradient" : tensor) != said.npos;
}

TEST_CASE("a NaN in any tensor ends the step, which names a tensor and leaves all as it was") {
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids), undisturbed(drawn(), options(), ids);
  trainer.step(), undisturbed.step();
  for (const ListedTensor& tensor : trainer.weights()) {
    CAPTURE(full_name(tensor.info));
    float& number = tensor.numbers[tensor.numbers.size() / 2];
    const float was = number;
    number = std::nanf("");
    const Tensor<1> before = state_of(trainer);
    const std::string said = said_by_step(trainer);
    CHECK(says_not_finite(said, 2, "embedding"));
    CHECK(same_bits(state_of(trainer), before));
    CHECK(trainer.steps_done() == 1);
    number = was;
  }
  // Nothing of the steps that failed is left.
  CHECK(trainer.step().loss == undisturbed.step().loss);
  CHECK(same_bits(state_of(trainer), state_of(undisturbed)));
}

TEST_CASE(
    "gradients whose squares are too large for floats end the step, or are added as doubles") {
  // Logits are as they would be with neither factor, but the head's gradients have the gain's.
  const Ids ids = reference_ids();
  Trainer trainer(reference_case().model(), reference_options(4, 1), ids);
  for (const ListedTensor& tensor : trainer.weights())
    for (float& x : tensor.numbers)
      x *= tensor.info.name == "head" ? 1e-22f : tensor.info.name == "final_norm.gain" ? 1e22f : 1;
  const Tensor<1> before = state_of(trainer);
  const std::string said = said_by_step(trainer);
  if (said == "nothing") {  // squares that are added up as doubles are not too large
    for (const float number : state_of(trainer)) CHECK(std::isfinite(number));
    return;
  }
  CHECK(says_not_finite(said, 1, "all tensors together"));
  CHECK(same_bits(state_of(trainer), before));
}

TEST_CASE("options and texts that no run can have are refused") {
  const Ids ids = text_ids();
  const auto refused = [&](auto change, const char* message) {
    TrainingOptions o = options();
    change(o);
    REFUSES(Trainer(drawn(), o, ids), message);
  };
  refused([](auto& o) { o.parts = 0; }, "parts of a batch: wanted at least 1, got 0");
  refused([](auto& o) { o.dropout = 1; }, "dropout: wanted a probability from 0 to below 1, got 1");
  refused([](auto& o) { o.B = 0; }, "B, the sequences of a batch: wanted at least 1, got 0");
  refused([](auto& o) { o.T = 0; }, "T, the tokens of a window: wanted at least 1, got 0");
  refused([](auto& o) { o.T = 17; }, "T, the tokens of a sequence: wanted 1 to T_max = 16, got 17");
  refused([](auto& o) { o.T = 300; },
          "ids, the text's tokens: wanted at least 2·T + 1 = 601, got 600");
  const char* beta =
      "beta, the share that a running mean keeps: wanted at least 0 and below 1, got ";
  for (const float bad : {1.0f, -0.5f, 2.0f, std::nanf("")}) {
    const std::string message = beta + fmt::format("{}", double(bad));
    refused([&](auto& o) { o.adamw.beta1 = bad; }, message.c_str());
    refused([&](auto& o) { o.adamw.beta2 = bad; }, message.c_str());
  }
  refused([](auto& o) { o.adamw.eps = 0; }, "eps: wanted more than 0, got 0");
  refused([](auto& o) { o.adamw.eps = -1; }, "eps: wanted more than 0, got -1");

  const Ids outside(600, 257);
  Trainer trainer(drawn(), options(), outside);
  REFUSES(trainer.step(), "ids: token 0 is 257, outside [0, 257), the vocabulary");
  CHECK(trainer.steps_done() == 0);
  REFUSES(trainer.step_on(first_of(ids, 3, 16)),
          "batch: wanted B = 4, T = 16 with 64 ids and targets, got B = 3, T = 16 with 48 and 48");
}

}  // namespace t2t::trainer_test
