#include "13_training/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "10_pretrained/gguf_bytes.hpp"
#include "files.hpp"

namespace t2t {

/// A tensor of the file and where its numbers are.
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

/// A row for each step. Losses are shown with 6 digits, which float has.
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

static LossCurve curve_of(const Tensor<2>& numbers) {
  LossCurve curve;
  for (std::size_t i = 0; i < numbers.shape(0); ++i)
    curve.push_back(
        {{i + 1, numbers(i, 0), numbers(i, 2), numbers(i, 3), numbers(i, 4)}, numbers(i, 1)});
  return curve;
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
  f("training.seed", o.seed);
}
// [/options]

static void put(GgufBytes& head, const char* key, std::uint64_t value) {
  head.text(key).put(10u).put(value);
}
static void put(GgufBytes& head, const char* key, double value) {
  head.text(key).put(12u).put(value);
}
static void put(GgufBytes& head, const char* key, float value) { head.entry(key, value); }

static constexpr std::size_t alignment = 32;

static std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void save_checkpoint(const std::filesystem::path& file, Trainer& trainer, const LossCurve& curve) {
  Tensor<2> points = numbers_of(curve);
  std::vector<NamedNumbers> all = numbers_of(trainer);
  if (!curve.empty())
    all.push_back({"curve", {points.shape(0), points.shape(1)}, {points.data(), points.size()}});

  GgufBytes head;
  std::size_t options = 0, offset = 0;
  for_each_option(trainer.options(), [&](const char*, auto) { ++options; });
  head.header(all.size(), options + 1);
  put(head, "training.step", std::uint64_t(trainer.steps_done()));
  for_each_option(trainer.options(), [&](const char* key, auto value) { put(head, key, value); });
  for (const NamedNumbers& tensor : all) {
    head.tensor(tensor.name, {tensor.shape.rbegin(), tensor.shape.rend()}, 0, offset);
    offset += aligned(tensor.numbers.size_bytes());
  }
  head.pad(alignment);

  write_file(file, [&](const WriteBytes& write) {
    write({reinterpret_cast<const char*>(head.bytes.data()), head.bytes.size()});
    for (const NamedNumbers& tensor : all) {
      const std::size_t bytes = tensor.numbers.size_bytes();
      write({reinterpret_cast<const char*>(tensor.numbers.data()), bytes});
      write(std::string(aligned(bytes) - bytes, '\0'));
    }
  });
}

[[noreturn]] static void fail(const GgufFile& file, std::string_view what) {
  throw std::runtime_error(fmt::format("{}: {}", file.name(), what));
}

static constexpr std::int64_t most = 1'000'000'000;  // of any count

static void read(const GgufFile& file, const char* key, std::uint64_t& value) {
  const std::int64_t got = file.metadata().integer(key);
  if (got < 0 || got > most) fail(file, fmt::format("{}: wanted 0 to {}, got {}", key, most, got));
  value = std::uint64_t(got);
}
static void read(const GgufFile& file, const char* key, double& value) {
  value = file.metadata().real(key);
  if (!(value >= 0 && value < 1e9))
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

LossCurve read_checkpoint(const GgufFile& file, Trainer& trainer) {
  std::uint64_t steps = 0;
  read(file, "training.step", steps);
  const std::vector<NamedNumbers> all = numbers_of(trainer);
  if (file.tensors().size() != all.size() + (steps > 0 ? 1 : 0))
    fail(file, fmt::format("wanted {} tensors, got {}", all.size() + (steps > 0 ? 1 : 0),
                           file.tensors().size()));
  for (const NamedNumbers& tensor : all) {
    const bool vector = tensor.shape.size() == 1;
    const std::size_t rows = tensor.shape[0], cols = vector ? 1 : tensor.shape[1];
    const GgufTensor& stored =
        vector ? file.tensor(tensor.name, {rows}) : file.tensor(tensor.name, {rows, cols});
    if (stored.type != TensorType::f32)
      fail(file, fmt::format("{}: wanted F32, got {}", tensor.name, type_name(stored.type)));
    const Tensor<2> numbers = floats_of(stored, rows, cols);
    for (const float x : numbers)
      if (!std::isfinite(x)) fail(file, tensor.name + ": a number is not finite");
    std::ranges::copy(numbers, tensor.numbers.begin());
  }
  trainer.continue_from(steps);
  return steps > 0 ? curve_of(file.matrix("curve", steps, columns_of_curve)) : LossCurve{};
}

}  // namespace t2t
