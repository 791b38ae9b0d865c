#include "13_training/trainer/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "10_pretrained/file/write_gguf.hpp"
#include "13_training/trainer/checksum.hpp"
#include "shapes.hpp"

namespace t2t {

/// A tensor of the file and where its elements are.
struct NamedNumbers {
  std::string name;
  std::vector<std::size_t> shape;
  Row numbers;
};

/// All tensors of a trainer: "w layer 3: w_q", and with m and s its running mean and square.
static std::vector<NamedNumbers> numbers_of(Trainer& trainer) {
  std::vector<NamedNumbers> all;
  const auto add = [&](const char* letter, const std::vector<ListedTensor>& tensors) {
    for (const auto& [info, numbers] : tensors) {
      const bool vector = info.cols == 1;
      all.push_back({fmt::format("{} {}", letter, full_name(info)),
                     vector ? std::vector{info.rows} : std::vector{info.rows, info.cols}, numbers});
    }
  };
  add("w", trainer.weights());
  add("m", trainer.means());
  add("s", trainer.squares());
  return all;
}

static constexpr std::size_t columns_of_curve = 5;

/// A row for each step. Floats have the digits that are shown.
static Tensor<2> numbers_of(const LossCurve& curve) {
  Tensor<2> numbers = empty(curve.size(), columns_of_curve);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const StepReport& step = curve[i].step;
    const double columns[] = {step.loss, curve[i].held_out, step.gradient_norm, double(step.rate),
                              step.update_ratio};
    for (std::size_t c = 0; c < columns_of_curve; ++c) numbers(i, c) = float(columns[c]);
  }
  return numbers;
}

// [options]
/// Calls f(key, value) for each option of a run, in the order in which they are stored.
template <class Options, class F>
static void for_each_option(Options& o, F f) {
  f("training.windows", o.B);
  f("training.tokens", o.T);
  f("training.parts", o.parts);
  f("training.steps", o.schedule.steps);
  f("training.warmup", o.schedule.warmup);
  f("training.rate", o.schedule.peak);
  f("training.floor", o.schedule.floor);
  f("training.beta1", o.adamw.beta1);
  f("training.beta2", o.adamw.beta2);
  f("training.eps", o.adamw.eps);
  f("training.decay", o.adamw.decay);
  f("training.clip", o.clip);
  f("training.dropout", o.dropout);
  f("training.seed", o.seed);
}
// [/options]

static constexpr std::uint64_t most = 1'000'000'000;  // of any count
static constexpr double too_much = 1e9;               // of any other number

static void put(GgufBytes& entries, const char* key, std::uint64_t value) {
  expect(value <= most, key, fmt::format("0 to {}", most), value);
  entries.key(key, 10).put(value);
}
static void expect_number(const char* key, double value) {
  expect(value >= 0 && value < too_much, key, "a number from 0 to below 1e9", value);
}
static void put(GgufBytes& entries, const char* key, double value) {
  expect_number(key, value);
  entries.key(key, 12).put(value);
}
static void put(GgufBytes& entries, const char* key, float value) {
  expect_number(key, value);
  entries.entry(key, value);
}

static bool is_loss(double x) { return std::abs(x) < too_much; }

void expect_finite(Trainer& trainer, const LossCurve& curve) {
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(
        fmt::format("step {}: {}; wanted a lower rate, less decay or more warm-up",
                    trainer.steps_done(), what));
  };
  for (const NamedNumbers& tensor : numbers_of(trainer))
    if (!std::ranges::all_of(tensor.numbers, [](float x) { return std::isfinite(x); }))
      refuse(tensor.name + " is not finite");
  for (const auto& [step, held_out] : curve) {
    if (!is_loss(step.loss)) refuse(fmt::format("the loss is {:.3g}", step.loss));
    if (!is_loss(held_out) && !std::isnan(held_out))
      refuse(fmt::format("the held-out loss is {:.3g}", held_out));
  }
}

void save_checkpoint(const std::filesystem::path& file, Trainer& trainer, const LossCurve& curve,
                     const GgufBytes& more) {
  expect_finite(trainer, curve);
  expect(curve.size() == trainer.steps_done(), "curve",
         fmt::format("a point for each of {} steps", trainer.steps_done()), curve.size());
  const Tensor<2> points = numbers_of(curve);
  std::vector<StoredTensor> tensors;
  for (const NamedNumbers& of : numbers_of(trainer))
    tensors.push_back({of.name, of.shape, {of.numbers}});
  if (!curve.empty())
    tensors.push_back(
        {"curve", {points.shape(0), points.shape(1)}, {{points.data(), points.size()}}});

  GgufBytes entries;
  put(entries, "training.step", std::uint64_t(trainer.steps_done()));
  for_each_option(trainer.options(),
                  [&](const char* key, auto value) { put(entries, key, value); });
  entries.raw({reinterpret_cast<const char*>(more.bytes.data()), more.bytes.size()});
  entries.entries += more.entries;
  entries.entry(checksum_key, checkpoint_checksum(entries, tensors));
  save_gguf(file, entries, tensors);
}

[[noreturn]] static void fail(const GgufFile& file, std::string_view what) {
  throw std::runtime_error(fmt::format("{}: {}", file.name(), what));
}

static void read(const GgufFile& file, const char* key, std::uint64_t& value) {
  const std::int64_t got = file.metadata().integer(key);
  if (got < 0 || std::uint64_t(got) > most)
    fail(file, fmt::format("{}: wanted 0 to {}, got {}", key, most, got));
  value = std::uint64_t(got);
}
static void read(const GgufFile& file, const char* key, double& value) {
  value = file.metadata().real(key);
  if (!(value >= 0 && value < too_much))
    fail(file, fmt::format("{}: wanted a number from 0 on, got {}", key, value));
}
static void read(const GgufFile& file, const char* key, float& value) {
  double number = 0;
  read(file, key, number);
  value = float(number);
}

TrainingOptions read_options(const GgufFile& file) {
  TrainingOptions options;
  for_each_option(options, [&](const char* key, auto& value) { read(file, key, value); });
  return options;
}

static Tensor<2> read_floats(const GgufFile& file, const GgufTensor& stored, std::size_t rows,
                             std::size_t cols) {
  if (stored.type != TensorType::f32)
    fail(file, fmt::format("{}: wanted F32, got {}", stored.name, type_name(stored.type)));
  return floats_of(stored, rows, cols);
}

/// Where the held-out loss was not measured, it is NaN.
static LossCurve read_curve(const GgufFile& file, std::size_t steps) {
  if (steps == 0) return {};
  const Tensor<2> numbers = read_floats(file, file.tensor("curve", {steps, columns_of_curve}),
                                        steps, columns_of_curve);  // [steps, 5]
  LossCurve curve;
  for (std::size_t i = 0; i < steps; ++i) {
    const float loss = numbers(i, 0), held_out = numbers(i, 1);
    for (const float x : {loss, std::isnan(held_out) ? loss : held_out})
      if (!is_loss(x)) fail(file, fmt::format("curve: wanted losses, got {}", x));
    curve.push_back({{i + 1, loss, numbers(i, 2), numbers(i, 3), numbers(i, 4)}, held_out});
  }
  return curve;
}

/// Reads the elements of one tensor. The root of a square below 0 would be NaN.
static void read(const GgufFile& file, const NamedNumbers& tensor) {
  const bool vector = tensor.shape.size() == 1, square = tensor.name.starts_with("s ");
  const std::size_t rows = tensor.shape[0], cols = vector ? 1 : tensor.shape[1];
  const GgufTensor& stored =
      vector ? file.tensor(tensor.name, {rows}) : file.tensor(tensor.name, {rows, cols});
  const Tensor<2> numbers = read_floats(file, stored, rows, cols);
  for (const float x : numbers) {
    if (!std::isfinite(x)) fail(file, tensor.name + ": an element is not finite");
    if (square && x < 0) fail(file, fmt::format("{}: wanted squares, got {}", tensor.name, x));
  }
  std::ranges::copy(numbers, tensor.numbers.begin());
}

LossCurve read_checkpoint(const GgufFile& file, Trainer& trainer) {
  std::uint64_t steps = 0;
  read(file, "training.step", steps);
  const std::vector<NamedNumbers> all = numbers_of(trainer);
  const std::size_t wanted = all.size() + (steps > 0 ? 1 : 0);  // the curve
  if (file.tensors().size() != wanted)
    fail(file, fmt::format("wanted {} tensors, got {}", wanted, file.tensors().size()));
  for (const NamedNumbers& tensor : all) read(file, tensor);
  LossCurve curve = read_curve(file, steps);
  trainer.continue_from(steps);
  return curve;
}

}  // namespace t2t
