// What must be true of a run that can be stopped at any time: its checkpoint has all of it, and
// what is damaged is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "13_training/cases.hpp"
#include "13_training/text/training_text.hpp"
#include "13_training/trainer/checksum.hpp"
#include "13_training/trainer/run_folder.hpp"
#include "files/files.hpp"
#include "random.hpp"
#include "support/apart.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::run_test {

using std::size_t;
using Bad = std::runtime_error;
using Bytes = std::vector<std::uint8_t>;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static const double not_measured = std::nan("");

/// A model for bytes whose gains, of 80 bytes, do not end where the next tensor may begin.
static Config tiny() {
  return {.block = llama_style(20, 2, 1, 28), .L = 1, .V = 257, .T_max = 12, .tied = true};
}
static Model drawn(std::uint64_t seed = 3) {
  Random random(seed);
  return Model(tiny(), draw_model(tiny(), random));
}
static Ids text_ids() {
  Ids ids;
  for (int i = 0; i < 300; ++i) ids.push_back(97 + i * i % 23);
  return ids;
}
static TrainingOptions options(size_t parts = 1) {
  return {.B = 3, .T = 12, .parts = parts, .schedule = {5e-3f, 1e-3f, 4, 12}, .seed = 9};
}

static void steps(Trainer& trainer, LossCurve& curve, int count) {
  for (int i = 0; i < count; ++i) curve.push_back({trainer.step()});
}
static void check_same_bits(Trainer& got, Trainer& want) {
  const auto check = [](const std::vector<ListedTensor>& a, const std::vector<ListedTensor>& b) {
    CHECK(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(full_name(a[i].info));
      CHECK(std::memcmp(a[i].numbers.data(), b[i].numbers.data(), a[i].numbers.size_bytes()) == 0);
    }
  };
  check(got.weights(), want.weights());
  check(got.means(), want.means());
  check(got.squares(), want.squares());
  CHECK(got.steps_done() == want.steps_done());
}
static std::vector<double> losses_of(const LossCurve& curve) {
  std::vector<double> losses;
  for (const LossPoint& point : curve) losses.push_back(point.step.loss);
  return losses;
}

TEST_CASE("a run that is stopped after 5 steps goes on with the bits of one that was not") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "state.gguf";
  const Ids ids = text_ids();
  for (const size_t parts : {1, 2})
    for (const bool measured : {false, true}) {
      CAPTURE(parts);
      CAPTURE(measured);
      Trainer whole(drawn(), options(parts), ids), first(drawn(), options(parts), ids);
      LossCurve want, curve;
      steps(whole, want, 10);
      steps(first, curve, 5);
      if (measured) want[4].held_out = curve[4].held_out = first.loss_of(ids);
      save_checkpoint(path, first, curve);
      if (measured) first.loss_of(ids, 2);

      // Other weights and other options: all of them come from the file.
      const std::optional<GgufFile> file = tried([&] { return GgufFile::open(path); });
      if (!file) continue;
      const auto read = tried([&] { return read_options(*file); });
      if (!read) continue;
      Trainer second(drawn(4), *read, ids);
      if (measured) second.loss_of(ids);
      std::optional<LossCurve> got = tried([&] { return read_checkpoint(*file, second); });
      if (!got) continue;
      check_same_bits(second, first);
      CHECK(csv_of(*got) == csv_of(curve));

      steps(second, *got, 2);
      if (measured) second.loss_of(ids);
      steps(second, *got, 3);
      steps(first, curve, 5);
      check_same_bits(second, whole);
      check_same_bits(first, whole);  // and the one that was saved and not stopped
      CHECK(csv_of(*got) == csv_of(want));
      CHECK(svg_of(*got) == svg_of(want));
      const std::vector<double> a = losses_of(*got), b = losses_of(want);
      CHECK(std::equal(a.begin() + 5, a.end(), b.begin() + 5, b.end()));
    }
}

TEST_CASE("a checkpoint is a GGUF file of float32 tensors with plain names") {
  const Folder folder;
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  LossCurve curve;
  steps(trainer, curve, 2);
  curve[1].held_out = 5.25;
  save_checkpoint(folder.path / "x", trainer, curve);
  CHECK(folder.files() == 1);
  const std::optional<GgufFile> file = tried([&] { return GgufFile::open(folder.path / "x"); });
  if (!file) return;
  CHECK(file->metadata().integer("training.step") == 2);
  CHECK(file->metadata().entries().size() == 16);
  const size_t tensors = trainer.means().size();
  CHECK(file->tensors().size() == 3 * tensors + 1);
  for (const GgufTensor& tensor : file->tensors()) {
    CHECK(tensor.type == TensorType::f32);
    CHECK(tensor.offset % 32 == 0);
  }
  CHECK(file->tensors()[tensors].name == "m embedding");
  CHECK(file->tensors()[2 * tensors].name == "s embedding");
  CHECK(file->has_tensor("w layer 0: w_down"));
  CHECK(file->tensor("w layer 0: w_down").shape == std::vector<size_t>{20, 28});
  CHECK(file->tensor("w final_norm.gain").shape == std::vector<size_t>{20});
  const Tensor<2> points = file->matrix("curve", 2, 5);
  CHECK(points(0, 0) == float(curve[0].step.loss));
  CHECK(std::isnan(points(0, 1)));
  CHECK(points(1, 1) == 5.25f);
  CHECK(points(1, 2) == float(curve[1].step.gradient_norm));
  CHECK(points(1, 3) == curve[1].step.rate);
  CHECK(points(1, 4) == float(curve[1].step.update_ratio));
}

TEST_CASE("every option comes back exactly; held-out losses stay where they were measured") {
  const Folder folder;
  const Ids ids = text_ids();
  TrainingOptions all{.B = 2, .T = 7, .parts = 3, .schedule = {3e-3f, 1.7e-7f, 17, 123456}};
  all.adamw = {.beta1 = 0.8f, .beta2 = 0.99f, .eps = 1e-6f, .decay = 0.03f};
  all.clip = 0.7, all.dropout = 0.25f, all.seed = 1'000'000'000;
  Trainer trainer(drawn(), all, ids);
  save_checkpoint(folder.path / "x", trainer, {});
  const std::optional<GgufFile> file = tried([&] { return GgufFile::open(folder.path / "x"); });
  if (!file) return;
  const auto read = tried([&] { return read_options(*file); });
  if (!read) return;
  CHECK(read->B == 2);
  CHECK(read->T == 7);
  CHECK(read->parts == 3);
  CHECK(read->schedule.peak == 3e-3f);
  CHECK(read->schedule.floor == 1.7e-7f);
  CHECK(read->schedule.warmup == 17);
  CHECK(read->schedule.steps == 123456);
  CHECK(read->adamw.beta1 == 0.8f);
  CHECK(read->adamw.beta2 == 0.99f);
  CHECK(read->adamw.eps == 1e-6f);
  CHECK(read->adamw.decay == 0.03f);
  CHECK(read->clip == 0.7);
  CHECK(read->dropout == 0.25f);
  CHECK(read->seed == 1'000'000'000);
  CHECK(!file->has_tensor("curve"));
  const auto empty_curve = tried([&] { return read_checkpoint(*file, trainer); });
  if (empty_curve) CHECK(empty_curve->empty());
  CHECK(trainer.steps_done() == 0);

  LossCurve curve;
  steps(trainer, curve, 3);
  curve[1].held_out = 5.1;
  save_checkpoint(folder.path / "y", trainer, curve);
  const auto got =
      tried([&] { return read_checkpoint(GgufFile::open(folder.path / "y"), trainer); });
  if (!got) return;
  CHECK(got->size() == 3);
  for (size_t i = 0; i < got->size(); ++i) CHECK((*got)[i].step.n == i + 1);
  CHECK(std::isnan((*got)[0].held_out));
  CHECK((*got)[1].held_out == double(5.1f));
  CHECK(std::isnan((*got)[2].held_out));
}

TEST_CASE("what could not be read back is not written") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "x";
  write_file(path, "the last one");
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  LossCurve curve;
  steps(trainer, curve, 2);
  curve.pop_back();
  REFUSES(save_checkpoint(path, trainer, curve),
          "curve: wanted a point for each of 2 steps, got 1");
  TrainingOptions large = options();
  large.seed = 1'000'000'001;
  Trainer other(drawn(), large, ids);
  REFUSES(save_checkpoint(path, other, {}),
          "training.seed: wanted 0 to 1000000000, got 1000000001");
  CHECK(read_file(path) == "the last one");
  CHECK(folder.files() == 1);
}

#if !defined(__SANITIZE_THREAD__)  // which does not let a copy of a process with threads go on
TEST_CASE("on a full disk the last checkpoint stays, and nothing half-written") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "state.gguf";
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  save_checkpoint(path, trainer, {});
  const std::string old = read_file(path);
  LossCurve curve;
  steps(trainer, curve, 2);
  const auto save_within = [&](size_t bytes) {
    return ending_apart([&] {
      std::signal(SIGXFSZ, SIG_IGN);  // the write then fails, as it does on a full disk
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      save_checkpoint(path, trainer, curve);
    });
  };
  const size_t enough = old.size() + 2048;
  for (const size_t bytes : {size_t(0), size_t(1), size_t(1000), old.size() / 2, old.size()}) {
    CHECK(save_within(bytes) == "threw: " + path.string() + ": can't be written: File too large");
    CHECK((read_file(path) == old));
    CHECK(folder.files() == 1);
  }
  CHECK(save_within(enough) == "returned");
  CHECK((read_file(path) != old));
  CHECK(folder.files() == 1);
}
#endif

namespace {
/// A GGUF file taken apart, to be changed and put together again.
struct Parts {
  struct Value {
    std::uint32_t type;
    Bytes bytes;
  };
  struct Stored {
    std::vector<size_t> shape;
    std::uint32_t type;
    Bytes bytes;
  };
  std::map<std::string, Value> values;
  std::map<std::string, Stored> tensors;

  explicit Parts(const GgufFile& file) {
    for (const GgufEntry& entry : file.metadata().entries())
      values[std::string(entry.key)] = {std::uint32_t(entry.type),
                                        {entry.bytes.begin(), entry.bytes.end()}};
    for (const GgufTensor& tensor : file.tensors())
      tensors[std::string(tensor.name)] = {
          tensor.shape, std::uint32_t(tensor.type), {tensor.bytes.begin(), tensor.bytes.end()}};
  }
  template <class Number>
  void set(const std::string& key, std::uint32_t type, Number value) {
    values[key] = {type, GgufBytes().put(value).bytes};
  }
  void set_number(const std::string& tensor, size_t i, double value) {
    const float x = float(value);
    std::memcpy(&tensors.at(tensor).bytes[4 * i], &x, 4);
  }
  Bytes together() const {
    GgufBytes file;
    file.header(tensors.size(), values.size());
    for (const auto& [key, value] : values) file.key(key, value.type).raw(text(value.bytes));
    std::uint64_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
      file.tensor(name, {tensor.shape.rbegin(), tensor.shape.rend()}, tensor.type, offset);
      offset += (tensor.bytes.size() + 31) / 32 * 32;
    }
    file.pad();
    for (const auto& [name, tensor] : tensors) file.raw(text(tensor.bytes)).pad();
    return file.bytes;
  }
  static std::string_view text(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// A whole checkpoint of two steps, and a trainer to read others into.
struct Checkpoint {
  Ids ids = text_ids();
  Trainer trainer{drawn(), options(), ids};
  Bytes bytes;

  Checkpoint() {
    const Folder folder;
    LossCurve curve;
    steps(trainer, curve, 2);
    curve[1].held_out = 5.25;
    save_checkpoint(folder.path / "x", trainer, curve);
    const std::string text = read_file(folder.path / "x");
    bytes.assign(text.begin(), text.end());
  }
  /// Reads the options after this change, and makes nothing of them.
  void read_only_options(const std::function<void(Parts&)>& change) {
    Parts parts(GgufFile("x", bytes));
    change(parts);
    const Bytes changed = parts.together();
    read_options(GgufFile("x", changed));
  }
  /// Reads it all after this change. The file's name is x.
  void read(const std::function<void(Parts&)>& change) {
    Parts parts(GgufFile("x", bytes));
    change(parts);
    const Bytes changed = parts.together();
    const GgufFile file("x", changed);
    const TrainingOptions options = read_options(file);
    read_checkpoint(file, trainer);
    Trainer(drawn(), options, ids);
  }
};
}  // namespace

TEST_CASE("a checkpoint that ends early is refused, wherever it ends") {
  Checkpoint whole;
  const auto opened = tried([&] { return GgufFile("x", whole.bytes); });
  if (!opened) return;
  const GgufFile& file = *opened;
  const size_t head = size_t(file.tensors()[0].bytes.data() - whole.bytes.data());
  const size_t needed = size_t(file.tensors().back().bytes.data() - whole.bytes.data()) +
                        file.tensors().back().bytes.size();
  size_t refused = 0, tried = 0;
  const auto cut = [&](size_t length) {
    ++tried;
    try {
      const std::span<const std::uint8_t> bytes(whole.bytes.data(), length);
      read_checkpoint(GgufFile("x", bytes), whole.trainer);
    } catch (const Bad& error) {
      refused += std::string(error.what()).starts_with("x: ");
    }
  };
  for (size_t length = 0; length < head; ++length) cut(length);
  for (size_t length = head; length < needed; length += 131) cut(length);
  cut(needed - 1);
  CHECK(refused == tried);
}

TEST_CASE("a changed byte in the head is refused, or changes nothing but an option's value" *
          doctest::test_suite("slow")) {
  Checkpoint whole;
  const auto opened = tried([&] { return GgufFile("x", whole.bytes); });
  if (!opened) return;
  const GgufFile& file = *opened;
  const size_t head = size_t(file.tensors()[0].bytes.data() - whole.bytes.data());
  // The values with their types: an integer can be of several, where its bits allow it.
  std::set<size_t> values;
  for (const GgufEntry& entry : file.metadata().entries()) {
    const size_t at = size_t(entry.bytes.data() - whole.bytes.data());
    const size_t key = entry.key == checksum_key ? entry.key.size() : 0;  // which is not read here
    for (size_t i = at - 4 - key; i < at + entry.bytes.size(); ++i) values.insert(i);
  }
  const std::string last_name(file.tensors().back().name);
  const size_t name_at =
      size_t(file.tensors().back().name.data() - reinterpret_cast<const char*>(whole.bytes.data()));
  const size_t directory_end = name_at + last_name.size() + 4 + 2 * 8 + 4 + 8;  // then padding
  std::set<size_t> accepted, unseen;
  size_t other_errors = 0;
  for (size_t at = 0; at < head; ++at)
    for (const std::uint8_t flip : {0x01, 0x08, 0x80, 0xff}) {
      Bytes changed = whole.bytes;
      changed[at] ^= flip;
      try {
        const GgufFile damaged("x", changed);
        read_options(damaged);
        read_checkpoint(damaged, whole.trainer);
        accepted.insert(at);
        expect_checksum(damaged);
        unseen.insert(at);
      } catch (const Bad& error) {
        other_errors += !std::string(error.what()).starts_with("x: ");
      }
    }
  CHECK(other_errors == 0);
  for (const size_t at : accepted) {
    CAPTURE(at);
    CHECK((values.contains(at) || at >= directory_end));
  }
  CHECK((unseen.empty() || *unseen.begin() >= directory_end));  // the checksum sees the values too
}

TEST_CASE("tensors that are missing, surplus, of another shape or type are refused by name") {
  Checkpoint whole;
  CHECK_NOTHROW(whole.read([](Parts&) {}));
  const size_t count = 3 * whole.trainer.means().size() + 1;
  const std::string wanted = fmt::format("x: wanted {} tensors, got ", count);
  REFUSES_AS(whole.read([](Parts& p) { p.tensors.erase("m layer 0: w_q"); }),
             wanted + std::to_string(count - 1), Bad);
  REFUSES_AS(whole.read([](Parts& p) { p.tensors["more"] = p.tensors.at("m layer 0: w_q"); }),
             wanted + std::to_string(count + 1), Bad);
  REFUSES_AS(whole.read([](Parts& p) { p.tensors.erase("curve"); }),
             wanted + std::to_string(count - 1), Bad);
  REFUSES_AS(whole.read([](Parts& p) {
    p.tensors["other"] = p.tensors.at("s layer 0: w_q");
    p.tensors.erase("s layer 0: w_q");
  }),
             "x: s layer 0: w_q: there is no such tensor", Bad);
  REFUSES_AS(
      whole.read([](Parts& p) { std::ranges::reverse(p.tensors.at("w layer 0: w_k").shape); }),
      "x: w layer 0: w_k: wanted shape [10, 20], got [20, 10]", Bad);
  REFUSES_AS(whole.read([](Parts& p) {
    p.tensors.at("w embedding").shape = {256, 20};
    p.tensors.at("w embedding").bytes.resize(256 * 20 * 4);
  }),
             "x: w embedding: wanted shape [257, 20], got [256, 20]", Bad);
  REFUSES_AS(whole.read([](Parts& p) {
    p.tensors.at("w layer 0: w_k").type = std::uint32_t(TensorType::f16);
    p.tensors.at("w layer 0: w_k").bytes.resize(10 * 20 * 2);
  }),
             "x: w layer 0: w_k: wanted F32, got F16", Bad);
  REFUSES_AS(whole.read([](Parts& p) {
    p.tensors.at("curve").type = std::uint32_t(TensorType::f16);
    p.tensors.at("curve").bytes.resize(2 * 5 * 2);
  }),
             "x: curve: wanted F32, got F16", Bad);
}

TEST_CASE("numbers that are not finite are refused, and squares below 0") {
  Checkpoint whole;
  for (const std::string letter : {"w", "m", "s"})
    for (const std::string tensor : {" embedding", " final_norm.gain", " layer 0: w_down"})
      for (const double bad : {not_measured, infinity, -infinity}) {
        const std::string name = letter + tensor;
        REFUSES_AS(whole.read([&](Parts& p) { p.set_number(name, 7, bad); }),
                   "x: " + name + ": an element is not finite", Bad);
      }
  REFUSES_AS(whole.read([](Parts& p) { p.set_number("s embedding", 7, -0.5); }),
             "x: s embedding: wanted squares, got -0.5", Bad);
  CHECK_NOTHROW(whole.read([](Parts& p) { p.set_number("m embedding", 7, -0.5); }));
}

TEST_CASE("a curve of another length, or with losses that are none, is refused") {
  Checkpoint whole;
  const auto shape = [](size_t rows) {
    return [rows](Parts& p) {
      p.tensors.at("curve").shape = {rows, 5};
      p.tensors.at("curve").bytes.resize(rows * 5 * 4);
    };
  };
  REFUSES_AS(whole.read([](Parts& p) { p.set("training.step", 11, std::int64_t(-1)); }),
             "x: training.step: wanted 0 to 1000000000, got -1", Bad);
  REFUSES_AS(whole.read(shape(1)), "x: curve: wanted shape [2, 5], got [1, 5]", Bad);
  REFUSES_AS(whole.read(shape(3)), "x: curve: wanted shape [2, 5], got [3, 5]", Bad);
  REFUSES_AS(whole.read([](Parts& p) { p.set("training.step", 10, std::uint64_t(3)); }),
             "x: curve: wanted shape [3, 5], got [2, 5]", Bad);
  const size_t count = 3 * whole.trainer.means().size();
  REFUSES_AS(whole.read([](Parts& p) { p.set("training.step", 10, std::uint64_t(0)); }),
             fmt::format("x: wanted {} tensors, got {}", count, count + 1), Bad);
  const auto point = [](size_t i, double value) {
    return [=](Parts& p) { p.set_number("curve", i, value); };
  };
  REFUSES_AS(whole.read(point(5, not_measured)), "x: curve: wanted losses, got nan", Bad);
  REFUSES_AS(whole.read(point(0, infinity)), "x: curve: wanted losses, got inf", Bad);
  REFUSES_AS(whole.read(point(0, 1e30)), "x: curve: wanted losses, got 1e+30", Bad);
  REFUSES_AS(whole.read(point(6, -infinity)), "x: curve: wanted losses, got -inf", Bad);
  CHECK_NOTHROW(whole.read(point(6, not_measured)));  // a held-out loss that was not measured
}

TEST_CASE("options out of range are refused, with their key or what they are for") {
  Checkpoint whole;
  const auto integer = [](const char* key, std::int64_t value) {
    return [=](Parts& p) { p.set(key, 11, value); };
  };
  const auto real = [](const char* key, double value) {
    return [=](Parts& p) { p.set(key, 12, value); };
  };
  for (const std::string key : {"windows", "tokens", "parts", "steps", "warmup", "seed"})
    for (const std::int64_t value : {std::int64_t(-1), std::int64_t(1'000'000'000'000),
                                     std::numeric_limits<std::int64_t>::min()})
      REFUSES_AS(whole.read_only_options(integer(("training." + key).c_str(), value)),
                 fmt::format("x: training.{}: wanted 0 to 1000000000, got {}", key, value), Bad);
  for (const std::string key :
       {"rate", "floor", "beta1", "beta2", "eps", "decay", "clip", "dropout"}) {
    const std::string name = "training." + key;
    for (const double value : {-1.0, 1e9, infinity, not_measured})
      REFUSES_AS(whole.read_only_options(real(name.c_str(), value)),
                 fmt::format("x: {}: wanted a number from 0 on, got {}", name, value), Bad);
    REFUSES_AS(whole.read_only_options([&](Parts& p) { p.values.erase(name); }),
               "x: has no " + name + ", wanted a real number", Bad);
    REFUSES_AS(whole.read_only_options(integer(name.c_str(), 1)),
               "x: " + name + ": wanted a real number, got 1", Bad);
  }
  REFUSES_AS(whole.read_only_options(real("training.windows", 3)),
             "x: training.windows: wanted an integer, got 3", Bad);

  // What the numbers are used for has bounds of its own.
  REFUSES(whole.read(real("training.beta2", 2)),
          "beta, the share that a running mean keeps: wanted at least 0 and below 1, got 2");
  REFUSES(whole.read(real("training.beta1", 1 - 1e-12)),  // 1 as a float
          "beta, the share that a running mean keeps: wanted at least 0 and below 1, got 1");
  REFUSES(whole.read(real("training.eps", 0)), "eps: wanted more than 0, got 0");
  REFUSES(whole.read(real("training.eps", 1e-60)), "eps: wanted more than 0, got 0");
  REFUSES(whole.read(integer("training.windows", 0)),
          "B, the sequences of a batch: wanted at least 1, got 0");
  REFUSES(whole.read(integer("training.parts", 0)), "parts of a batch: wanted at least 1, got 0");
  REFUSES(whole.read(integer("training.tokens", 0)),
          "T, the tokens of a window: wanted at least 1, got 0");
  REFUSES(whole.read(integer("training.tokens", 13)),
          "T, the tokens of a sequence: wanted 1 to T_max = 12, got 13");
  REFUSES(whole.read(integer("training.tokens", 1'000'000'000)),
          "ids, the text's tokens: wanted at least 2·T + 1 = 2000000001, got 300");
}

TEST_CASE("a run's folder: the model beside the checkpoint has its bits and its tokenizer") {
  const Folder folder;
  const RunFolder run{folder.path};
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  LossCurve curve;
  steps(trainer, curve, 3);
  save_run(run, trainer, byte_tokenizer(), curve);
  CHECK(folder.files() == 4);
  CHECK(read_file(folder.path / "loss.csv") == csv_of(curve));
  CHECK(read_file(folder.path / "loss.svg") == svg_of(curve));

  const std::optional<GgufFile> file = tried([&] { return GgufFile::open(run.model()); });
  if (!file) return;
  CHECK(model_name(*file) == "trained for 3 steps");
  const std::optional<Model> model = tried([&] { return read_model(*file); });
  if (model) {
    const std::vector<StoredTensor> got = stored_tensors(model->weights(), tiny());
    const std::vector<ListedTensor> want = trainer.weights();
    CHECK(got.size() == want.size());
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
      CAPTURE(full_name(want[i].info));
      const ConstRow numbers = got[i].pieces.at(0);
      CHECK(std::memcmp(numbers.data(), want[i].numbers.data(), numbers.size_bytes()) == 0);
    }
  }
  const std::optional<Bpe> bpe = tried([&] { return read_tokenizer(*file); });
  if (bpe) {
    CHECK(bpe->size() == 257);
    CHECK(bpe->encode("aé") == Ids{97, 0xc3, 0xa9});
    CHECK(bpe->eos() == 256);
  }
}

TEST_CASE("the checkpoint is written last: without it, the last one repeats all of the rest") {
  const Folder folder;
  const RunFolder run{folder.path};
  const Ids ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  save_run(run, trainer, byte_tokenizer(), {});
  const std::string old = read_file(run.state());
  std::filesystem::remove(folder.path / "loss.svg");
  std::filesystem::create_directory(folder.path / "loss.svg");  // which can't be replaced
  LossCurve curve;
  steps(trainer, curve, 1);
  CHECK_THROWS_AS(save_run(run, trainer, byte_tokenizer(), curve), Bad);
  CHECK((read_file(run.state()) == old));
}

TEST_CASE("what a killed program left behind is removed, and nothing else") {
  const Folder folder;
  for (const char* name : {".partial-a1B2c3", "state.gguf", ".partially", "x.partial-a1B2c3"})
    write_file(folder.path / name, "x");
  remove_partial_files(folder.path);
  CHECK_FALSE(std::filesystem::exists(folder.path / ".partial-a1B2c3"));
  CHECK(folder.files() == 3);
}

}  // namespace t2t::run_test
