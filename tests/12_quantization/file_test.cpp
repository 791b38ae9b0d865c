// What must be true of blocks of 256, of the search for scales, of the importance of columns, and
// of model files that are written.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/small_file.hpp"
#include "12_quantization/formats/file_plan.hpp"
#include "12_quantization/formats/importance.hpp"
#include "12_quantization/formats/k_quantize.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/quantize_file.hpp"
#include "12_quantization/formats/scale_search.hpp"
#include "12_quantization/rounded.hpp"
#include "files/files.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

namespace t2t::file_test {

using std::size_t;

static constexpr TensorType k_types[] = {TensorType::q4_k, TensorType::q6_k};

/// A block of Q4_K whose scales and minima are whole: D is 1/2, M is 2, and each 32 numbers have
/// q = 0 and q = 15 among them.
static constexpr int whole_s[] = {1, 63, 2, 17, 45, 16, 62, 3};
static constexpr int whole_m[] = {0, 5, 63, 1, 33, 48, 2, 62};
static float whole_q(size_t j, size_t i) { return float((7 * i + j) % 16); }
static Tensor<2> whole_block_of_q4_k() {
  Tensor<2> x = empty(1, 256);
  for (size_t j = 0; j < 8; ++j)
    for (size_t i = 0; i < 32; ++i)
      x(0, 32 * j + i) = 0.5f * float(whole_s[j]) * whole_q(j, i) - 2 * float(whole_m[j]);
  return x;
}

TEST_CASE("by hand: a block of Q4_K whose scales and minima are whole multiples") {
  const Tensor<2> x = whole_block_of_q4_k();
  const std::vector<std::uint8_t> bytes = quantize_rows(TensorType::q4_k, x);
  REQUIRE(bytes.size() == 144);
  CHECK(half_at(bytes.data()) == 0.5f);
  CHECK(half_at(bytes.data() + 2) == 2);
  // s of the first 32 numbers is 1, of the fifth 45 = 32 + 13: its upper 2 bits stand above the 1.
  CHECK(int(bytes[4]) == (1 | 2 << 6));
  CHECK(int(bytes[5]) == (63 | 1 << 6));   // 63, and 16 = 1·16 + 0
  CHECK(int(bytes[8]) == (0 | 2 << 6));    // m: 0, and 33 = 2·16 + 1
  CHECK(int(bytes[12]) == (13 | 1 << 4));  // the lower 4 bits of the 45 and of the 33
  CHECK(int(bytes[13]) == 0);              // of 16 and of 48
  // Number 1 has q = 7, number 33 has q = 8; number 65 has 9, number 97 has 10.
  CHECK(int(bytes[16 + 1]) == (7 | 8 << 4));
  CHECK(int(bytes[16 + 32 + 1]) == (9 | 10 << 4));
  CHECK(all_close(there_and_back(TensorType::q4_k, x), x, 0));
}

TEST_CASE("by hand: q of Q4_K is computed with the scale that its integer gives") {
  Tensor<2> x = xt::zeros<float>({1, 256});
  x(0, 0) = -0.5f, x(0, 1) = 3.055f, x(0, 2) = 0.81f;  // s = 24 and m = 25, so 0.24 and −0.5
  x(0, 32) = -1.26f, x(0, 33) = 8.19f;                 // 0.63 and −1.26, the largest: D = 0.01
  // 1.31 is 5.46 steps of 0.24, but 5.53 of 0.237. D and M are off by 2^-11 of themselves at most.
  CHECK(std::abs(there_and_back(TensorType::q4_k, x)(0, 2) - 0.70) <= (1.2 + 0.5) * 0x1p-11);
}

TEST_CASE("by hand: a block of Q6_K whose scales are whole multiples") {
  // D is 1/4, and s has either sign; each 16 numbers have one of −32 steps.
  const int s[] = {-128, 1, 127, 5, -7, 64, -64, 3, 100, -1, 31, 32, 77, -90, 12, 13};
  const auto q = [](size_t g, size_t i) { return i == g ? -32 : int(5 * g + 11 * i) % 63 - 31; };
  Tensor<2> x = empty(1, 256);
  for (size_t g = 0; g < 16; ++g)
    for (size_t i = 0; i < 16; ++i) x(0, 16 * g + i) = 0.25f * float(s[g] * q(g, i));
  const std::vector<std::uint8_t> bytes = quantize_rows(TensorType::q6_k, x);
  REQUIRE(bytes.size() == 210);
  CHECK(half_at(bytes.data() + 208) == 0.25f);
  for (size_t g = 0; g < 16; ++g) CHECK(int(std::int8_t(bytes[192 + g])) == s[g]);
  // Number 1 has q = 11 − 31, stored as 12 = 0·16 + 12; number 65 (g = 4) has 31 − 31, stored as
  // 32 = 2·16 + 0. They share a byte of the lower bits.
  CHECK(int(bytes[1]) == (12 | 0 << 4));
  // Numbers 1, 33, 65 and 97 share a byte of the upper bits: 12, 22, 32 and 42.
  CHECK(int(bytes[128 + 1]) == (0 | 1 << 2 | 2 << 4 | 2 << 6));
  CHECK(all_close(there_and_back(TensorType::q6_k, x), x, 0));
}

/// The numbers of each part of a block of 256, and the bound of their error.
static void expect_near(TensorType type, const Tensor<2>& x) {
  const Tensor<2> back = there_and_back(type, x);
  const size_t numbers = type == TensorType::q4_k ? 32 : 16;
  for (size_t t = 0; t < x.shape(0); ++t)
    for (size_t b = 0; b < x.shape(1); b += 256) {
      std::vector<Fit> fits;
      const Grid grid = type == TensorType::q4_k ? grid_q4_k : grid_q6_k;
      for (size_t c = b; c < b + 256; c += numbers)
        fits.push_back(range_fit(row(x, t).subspan(c, numbers), grid));
      double scale = 0, minimum = 0;  // the largest
      for (const Fit& fit : fits) {
        scale = std::max(scale, double(std::abs(fit.scale)));
        minimum = std::max(minimum, double(-fit.minimum));
      }
      for (size_t i = 0; i < 256; ++i) {
        const double own = std::abs(fits[i / numbers].scale);
        // s is off by half of D, and the largest of the other sign by a whole one; the highest q,
        // 15 or 32, times that is what the range may lack. Then half a step; a number of Q6_K on
        // the far side has one step less. D and M are rounded to 11 bits.
        const double of_f16 = 1 + 0x1p-10;
        const double most =
            type == TensorType::q4_k
                ? 0.5 * (own + 0.5 * scale / 63) + 15 * 0.5 * scale / 63 + 0.5 * minimum / 63
                : own + scale / 128 + 32 * scale / 128;
        CHECK(std::abs(double(x(t, b + i)) - back(t, b + i)) <=
              most * of_f16 + (16 * scale + minimum) * 0x1p-11);
      }
    }
}

TEST_CASE("a number in a block of 256 is off by half a step, and by what its scale is off") {
  for (const TensorType type : k_types)
    for (const float size : {0.02f, 1.f, 500.f}) {
      CAPTURE(type_name(type));
      CAPTURE(size);
      Tensor<2> x = Random(5).normal<2>({5, 512}, size);
      expect_near(type, x);
      for (float& value : x) value = std::abs(value);  // minima of 0
      expect_near(type, x);
      for (float& value : x) value = -value;
      for (size_t c = 32; c < 64; ++c) x(0, c) *= 50;  // scales far apart
      expect_near(type, x);
    }
  // An error far below these bounds is usual: in 4 and 6 bits, of numbers from N(0, 1).
  const Tensor<2> x = Random(1).normal<2>({16, 512});
  for (const TensorType type : k_types) {
    double apart = 0;
    const Tensor<2> back = there_and_back(type, x);
    for (size_t i = 0; i < x.size(); ++i)
      apart += std::pow(double(x.data()[i]) - back.data()[i], 2) / double(x.size());
    CHECK(std::sqrt(apart) < (type == TensorType::q4_k ? 0.085 : 0.02));
  }
}

TEST_CASE("blocks of zeros, of equal numbers and of numbers too small for an F16 are near") {
  for (const TensorType type : k_types) {
    CAPTURE(type_name(type));
    for (const float value : {0.f, -3.f, 3.f, 1e-30f, -1e-9f}) {
      CAPTURE(value);
      const Tensor<2> x = xt::ones<float>({1, 256}) * value;
      CHECK(all_close(there_and_back(type, x), x, std::abs(value) * 0x1p-9 + 1e-8));
    }
  }
}

TEST_CASE("blocks of 256: bad input is refused, and the message names it") {
  const Tensor<2> x = Random(1).normal<2>({2, 288});
  REFUSES(quantize_rows(TensorType::q4_k, x), "columns: wanted whole blocks of 256, got 288");
  REFUSES(quantize_rows(TensorType::q5_k, x),
          "type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got Q5_K");
}

static RoundRows plainly() {
  return [](TensorType type, ConstMatrix x, std::string_view) { return quantize_rows(type, x); };
}

/// A folder of this process, removed at the end.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_quantization_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  size_t files() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

/// The file, or nothing when it can't be read, which is a failure.
static std::optional<GgufFile> opened(const std::filesystem::path& path) {
  try {
    return GgufFile::open(path);
  } catch (const std::runtime_error& error) {
    CHECK(error.what() == std::string("no error"));
    return std::nullopt;
  }
}

/// A small model in which the rows of w_down have 256 numbers, and all others 64.
static Config small_config() {
  Config config = tiny_config();
  config.block = llama_style(64, 4, 2, 256);
  return config;
}
static std::vector<std::uint8_t> small_model() {
  Random random(7);
  const Config config = small_config();
  return gguf_file(config, draw_model(config, random));
}

TEST_CASE("a file that was written holds each matrix as it was rounded, and all else as it was") {
  const Folder folder;
  const std::vector<std::uint8_t> bytes = small_model();
  const GgufFile in("in", bytes);
  struct Case {
    const char* name;
    TensorType rows_of_256, rows_of_64;
    std::int64_t file_type;
  };
  for (const Case& c : {Case{"q8_0", TensorType::q8_0, TensorType::q8_0, 7},
                        Case{"q4_0", TensorType::q4_0, TensorType::q4_0, 2},
                        Case{"q4_1", TensorType::q4_1, TensorType::q4_1, 3},
                        Case{"q4_k", TensorType::q4_k, TensorType::q4_1, 14},
                        Case{"q6_k", TensorType::q6_k, TensorType::q8_0, 18}}) {
    CAPTURE(c.name);
    const std::filesystem::path path = folder.path / c.name;
    size_t told = 0;
    const QuantizedFile written = quantize_file(in, rounded_type(c.name), path, plainly(),
                                                [&](size_t done) { CHECK(done == ++told); });
    CHECK(told == in.tensors().size());
    CHECK(folder.files() == 1);
    CHECK(written.bytes == std::filesystem::file_size(path));

    const std::optional<GgufFile> read = opened(path);
    if (!read) continue;
    const GgufFile& out = *read;
    REQUIRE(out.tensors().size() == in.tensors().size());
    std::uint64_t weights = 0, weight_bytes = 0;
    for (size_t i = 0; i < in.tensors().size(); ++i) {
      const GgufTensor &from = in.tensors()[i], &to = out.tensors()[i];
      CAPTURE(from.name);
      CHECK(to.name == from.name);
      CHECK(to.shape == from.shape);
      if (from.shape.size() == 1) {
        CHECK(to.type == from.type);
        CHECK(std::ranges::equal(to.bytes, from.bytes));
        continue;
      }
      const size_t rows = from.shape[0], cols = from.shape[1];
      CHECK(to.type == (cols == 256 ? c.rows_of_256 : c.rows_of_64));
      const Tensor<2> x = in.matrix(from.name, rows, cols);
      CHECK(std::ranges::equal(to.bytes, quantize_rows(to.type, x)));
      weights += rows * cols, weight_bytes += to.size;
    }
    CHECK(written.weights == weights);
    CHECK(written.weight_bytes == weight_bytes);
    CHECK(written.error > (c.file_type == 7 || c.file_type == 18 ? 0.002 : 0.03));
    CHECK(written.error < (c.file_type == 7 || c.file_type == 18 ? 0.02 : 0.13));

    // All entries of the metadata, of which two say how the file is quantized.
    CHECK(out.metadata().integer("general.file_type") == c.file_type);
    CHECK(out.metadata().integer("general.quantization_version") == 2);
    std::vector<GgufEntry> copied = in.metadata().entries();
    std::erase_if(copied, [](const GgufEntry& e) { return e.key == "general.file_type"; });
    CHECK(out.metadata().entries().size() == copied.size() + 2);
    for (size_t i = 0; i < copied.size(); ++i) {
      const GgufEntry &from = copied[i], &to = out.metadata().entries()[i];
      CAPTURE(from.key);
      CHECK(to.key == from.key);
      CHECK(to.type == from.type);
      CHECK(to.is_array == from.is_array);
      CHECK(to.count == from.count);
      CHECK(std::ranges::equal(to.bytes, from.bytes));
    }
    CHECK(read_model(out).config().V == small_config().V);
    std::filesystem::remove(path);
  }
}

TEST_CASE("a file in few bits is rounded again, and what has the type already stays") {
  const Folder folder;
  const std::vector<std::uint8_t> bytes = small_model();
  const std::filesystem::path once = folder.path / "once", twice = folder.path / "twice",
                              other = folder.path / "other";
  quantize_file(GgufFile("in", bytes), TensorType::q4_1, once, plainly());
  const std::optional<GgufFile> first = opened(once);
  if (!first) return;
  const GgufFile& in = *first;
  CHECK(quantize_file(in, TensorType::q4_1, twice, plainly()).error == 0);
  CHECK(read_file(once) == read_file(twice));
  // Metadata has both entries already, which are replaced.
  quantize_file(in, TensorType::q8_0, other, plainly());
  const std::optional<GgufFile> third = opened(other);
  if (!third) return;
  const GgufFile& out = *third;
  CHECK(out.metadata().entries().size() == in.metadata().entries().size());
  CHECK(out.metadata().integer("general.file_type") == 7);
  const Tensor<2> x = in.matrix("blk.1.attn_q.weight", 64, 64);
  CHECK(std::ranges::equal(out.tensor("blk.1.attn_q.weight").bytes,
                           quantize_rows(TensorType::q8_0, x)));
}

TEST_CASE("tensors begin at multiples of the file's own alignment") {
  const std::vector<std::uint8_t> bytes = small_model();
  const GgufFile in("in", bytes);
  for (const PlannedTensor& planned : plan_tensors(in, TensorType::q4_0))
    CHECK(planned.offset % 32 == 0);

  // The same with an entry more, and with more zeros before the first tensor.
  GgufBytes wide;
  wide.header(in.tensors().size(), in.metadata().entries().size() + 1);
  wide.entry("general.alignment", 256u);
  const std::span<const std::uint8_t> rest(bytes);
  const auto first =
      reinterpret_cast<const std::uint8_t*>(in.metadata().entries()[0].key.data()) - 8;
  const size_t head = size_t(first - bytes.data());
  const auto last = in.tensors().back().name.data() + in.tensors().back().name.size();
  const size_t directory = size_t(reinterpret_cast<const std::uint8_t*>(last) - bytes.data());
  // Behind the last name: the number of sizes, one size of 8 bytes for each, a type, an offset.
  const size_t end = directory + 4 + 8 * in.tensors().back().shape.size() + 4 + 8;
  wide.raw({reinterpret_cast<const char*>(&rest[head]), end - head}).pad(256);
  const size_t data = (end + 31) / 32 * 32;
  // The sizes of this model's tensors are multiples of 256 bytes, so that offsets can stay.
  for (const GgufTensor& tensor : in.tensors()) REQUIRE(tensor.offset % 256 == 0);
  wide.raw({reinterpret_cast<const char*>(&rest[data]), bytes.size() - data}).pad(256);

  const Folder folder;
  const std::filesystem::path path = folder.path / "wide";
  quantize_file(GgufFile("wide", wide.bytes), TensorType::q4_0, path, plainly());
  const std::optional<GgufFile> read = opened(path);
  if (!read) return;
  const GgufFile& out = *read;
  CHECK(out.metadata().integer("general.alignment") == 256);
  for (const GgufTensor& tensor : out.tensors()) CHECK(tensor.offset % 256 == 0);
  const Tensor<2> x = in.matrix("blk.0.ffn_up.weight", 256, 64);
  CHECK(std::ranges::equal(out.tensor("blk.0.ffn_up.weight").bytes,
                           quantize_rows(TensorType::q4_0, x)));
}

TEST_CASE("a matrix whose rows are no whole blocks of 32 stays as it is") {
  Random random(7);
  Config config = tiny_config();
  config.block = llama_style(48, 4, 2, 64);
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  const GgufFile in("in", bytes);
  for (const TensorType type : {TensorType::q4_0, TensorType::q4_k})
    for (const PlannedTensor& planned : plan_tensors(in, type)) {
      CAPTURE(planned.from->name);
      const bool of_64 = planned.from->name.ends_with("ffn_down.weight");
      CHECK(planned.is_matrix == (planned.from->shape.size() == 2));
      CHECK(planned.type == (!of_64                     ? TensorType::f32
                             : type == TensorType::q4_0 ? type
                                                        : TensorType::q4_1));
    }
}

TEST_CASE("what can't be written is refused by name, and no file is left") {
  using Bad = std::runtime_error;
  REFUSES(rounded_type("q5_k"), "--type: wanted q8_0, q4_0, q4_1, q4_k or q6_k, got q5_k");
  REFUSES(rounded_type(""), "--type: wanted q8_0, q4_0, q4_1, q4_k or q6_k, got none");

  const Folder folder;
  std::vector<std::uint8_t> bytes = small_model();
  const std::filesystem::path path = folder.path / "in", out = folder.path / "out";
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const GgufFile in("in", bytes);
  REFUSES(file_head(in, {}, TensorType::q5_k),
          "type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got Q5_K");
  // A number that is not finite, and one that 4 bits and an F16 as their scale can't hold.
  const GgufTensor& last = in.tensor("blk.1.ffn_down.weight");
  const size_t place = size_t(last.bytes.data() - bytes.data()) + last.size - 4;
  const auto put = [&](float value) { std::memcpy(&bytes[place], &value, 4); };
  const auto write = [&] { quantize_file(in, TensorType::q4_0, out, plainly()); };
  put(NAN);
  REFUSES_AS(write(), "in: blk.1.ffn_down.weight: x: wanted finite numbers, got nan", Bad);
  put(1e9f);
  REFUSES_AS(write(),
             "in: blk.1.ffn_down.weight: wanted weights that Q4_0 can hold, got larger ones", Bad);
  // A file that becomes shorter while it is read, a folder that is not there, a model without one
  // of its tensors.
  put(0);
  {
    const GgufFile cut = GgufFile::open(path);
    CHECK_THROWS_AS(quantize_file(cut, TensorType::q8_0, out, plainly(),
                                  [&](size_t done) {
                                    if (done == cut.tensors().size())
                                      std::filesystem::resize_file(path, bytes.size() - 1);
                                  }),
                    Bad);
  }
  CHECK_THROWS_AS(quantize_file(in, TensorType::q8_0, folder.path / "none" / "out", plainly()),
                  Bad);
  const std::vector<std::uint8_t> other = small_file();
  REFUSES_AS(plan_tensors(GgufFile("other", other), TensorType::q8_0),
             "other: has no llama.embedding_length, wanted an integer", Bad);
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that is cut while its bytes are copied is named, not the one that is written") {
  const Folder folder;
  const std::vector<std::uint8_t> bytes = small_model();
  const std::filesystem::path path = folder.path / "in";
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const GgufFile cut = GgufFile::open(path);
  // Behind this tensor comes one that is copied as it is.
  std::size_t before_copied = 1;
  const std::vector<PlannedTensor> plan = plan_tensors(cut, TensorType::q8_0);
  while (plan[before_copied].is_matrix) ++before_copied;
  REFUSES_AS(quantize_file(cut, TensorType::q8_0, folder.path / "out", plainly(),
                           [&](std::size_t done) {
                             if (done == before_copied) std::filesystem::resize_file(path, 0);
                           }),
             path.string() + ": became shorter while it was read", std::runtime_error);
  CHECK(folder.files() == 1);
}

static constexpr TensorType all_types[] = {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1,
                                           TensorType::q4_k, TensorType::q6_k};

/// The error of each block, with a weight for each column.
static std::vector<double> block_errors(TensorType type, const std::vector<std::uint8_t>& bytes,
                                        const Tensor<2>& x, const std::vector<float>& weights) {
  const Tensor<2> back = dequantized(type, bytes, x.shape(0), x.shape(1));
  const size_t numbers = block_layout(type).numbers;
  std::vector<double> errors(x.size() / numbers);
  for (size_t i = 0; i < x.size(); ++i)
    errors[i / numbers] +=
        weights[i % x.shape(1)] * std::pow(double(x.data()[i]) - back.data()[i], 2);
  return errors;
}
static double sum(const std::vector<double>& errors) {
  return std::accumulate(errors.begin(), errors.end(), 0.0);
}

TEST_CASE("by hand: least squares finds the scale that the range misses") {
  // 31 numbers of 1.05 and one of −8. The range gives steps of 1, and 1.05 is 0.05 off; with steps
  // of 1.05 each of the 31 is exact, and −8 becomes −8.4, which is worse by 0.4² = 0.16 than before
  // and better by 31 · 0.05² = 0.0775. Least squares lies between: (31·1.05 + 64) / (31 + 64).
  std::vector<float> x(32, 1.05f);
  x[5] = -8;
  const std::vector<float> ones(32, 1);
  const Grid grid = {-8, 7, Grid::none};
  CHECK(range_fit(x, grid).scale == 1);
  const Fit fit = search_fit(x, ones, grid);
  CHECK(fit.scale == doctest::Approx((31 * 1.05 + 64) / 95).epsilon(1e-6));
  CHECK(fit.minimum == 0);
  // Where the −8 does not matter, only the others count.
  std::vector<float> weights = ones;
  weights[5] = 0;
  const float steps = 1.05f / search_fit(x, weights, grid).scale;
  CHECK(std::abs(steps - std::round(steps)) < 1e-5f);
  // With a minimum: 0, 1 and 15.3 times 2 above −3.
  std::vector<float> y(32, -3);
  y[1] = -1, y[2] = 27.6f;
  const Fit with_minimum = search_fit(y, ones, {0, 15, Grid::any});
  // q = 0, 1 and 15: Σ q = 16, Σ q² = 226, Σ y = 26.6 − 90, Σ q·y = 413, and two equations.
  const double n = 32, q = 16, qq = 226, sum_y = -90 - 1 + 27.6, qy = -1 + 15 * 27.6;
  CHECK(with_minimum.scale == doctest::Approx((n * qy - q * sum_y) / (n * qq - q * q)));
  CHECK(with_minimum.minimum == doctest::Approx((sum_y * qq - qy * q) / (n * qq - q * q)));
}

TEST_CASE("the search errs in no block more than the range, and in sum less, weighted or not") {
  const Tensor<2> x = Random(11).normal<2>({6, 512});
  std::vector<float> ones(512, 1), weights(512);
  for (size_t c = 0; c < 512; ++c) weights[c] = c % 37 == 0 ? 100.f : 0.1f + float(c % 5);
  for (const TensorType type : all_types) {
    CAPTURE(type_name(type));
    const auto plain = quantize_rows(type, x), searched = search_rows(type, x),
               weighted = search_rows(type, x, weights);
    for (const auto* of : {&ones, &weights}) {
      const std::vector<double> before = block_errors(type, plain, x, *of),
                                after =
                                    block_errors(type, of == &ones ? searched : weighted, x, *of);
      for (size_t b = 0; b < before.size(); ++b) {
        CAPTURE(b);
        CHECK(after[b] <= before[b]);
      }
      CHECK(sum(after) < (of == &ones ? 0.91 : 0.8) * sum(before));
    }
    // Each is best at what it was made for.
    CHECK(sum(block_errors(type, searched, x, ones)) < sum(block_errors(type, weighted, x, ones)));
    CHECK(sum(block_errors(type, weighted, x, weights)) <
          sum(block_errors(type, searched, x, weights)));
    CHECK(search_rows(type, x, ones) == searched);
  }
}

TEST_CASE("the search leaves what is exact, and bears zeros, equal numbers and weights of 0") {
  const Tensor<2> exact = whole_block_of_q4_k();
  CHECK(search_rows(TensorType::q4_k, exact) == quantize_rows(TensorType::q4_k, exact));
  for (const TensorType type : all_types) {
    CAPTURE(type_name(type));
    const std::vector<float> none(256, 0);
    const Tensor<2> x = Random(12).normal<2>({2, 256});
    CHECK(search_rows(type, x, none) == quantize_rows(type, x));
    for (const float value : {0.f, 3.f, -3.f, 1e-30f}) {
      const Tensor<2> equal = xt::ones<float>({1, 256}) * value;
      CHECK(all_close(dequantized(type, search_rows(type, equal), 1, 256), equal,
                      std::abs(value) * 0x1p-9 + 1e-8));
    }
  }
  const Tensor<2> x = Random(12).normal<2>({2, 64});
  REFUSES(search_rows(TensorType::q4_0, x, std::vector<float>(32, 1)),
          "importance: wanted shape [64], got [32]");
  std::vector<float> bad(64, 1);
  bad[3] = -2;
  REFUSES(search_rows(TensorType::q4_0, x, bad),
          "importance: wanted numbers of at least 0, got -2");
}

TEST_CASE("the importance of a column is the mean square of its inputs") {
  Random random(7);
  const Config config = small_config();
  const ModelWeights weights = draw_model(config, random);
  const std::vector<std::uint8_t> bytes = gguf_file(config, weights);
  const GgufFile file("in", bytes);
  const std::vector<int> ids = {72, 101, 108, 108, 111, 44, 32, 119, 111, 114};
  size_t windows = 0;
  const Importance importance = importance_of(file, ids, 5, [&](const Perplexity&) { ++windows; });
  CHECK(windows == 2);
  CHECK(importance.size() == 1 + 7 * config.L);  // the embedding is the head, too
  for (const auto& of_matrix : importance) {
    const std::string& name = of_matrix.first;
    const std::vector<float>& columns = of_matrix.second;
    CAPTURE(name);
    CHECK(columns.size() == file.tensor(name).shape.back());
    for (const float column : columns) CHECK(column > 0);
  }
  // The first block's q, k and v see the tokens' embeddings, normalized.
  std::vector<double> want(64);
  for (const int id : ids) {
    double all = 0;
    for (size_t c = 0; c < 64; ++c) all += std::pow(weights.embedding.floats()(id, c), 2) / 64;
    for (size_t c = 0; c < 64; ++c)
      want[c] += std::pow(weights.embedding.floats()(id, c), 2) / (all + config.block.eps) / 10;
  }
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"})
    for (size_t c = 0; c < 64; ++c)
      CHECK(importance.at(name)[c] == doctest::Approx(want[c]).epsilon(1e-4));
  // A column that is never used counts a thousandth of the mean.
  ModelWeights unused = weights;
  for (size_t v = 0; v < config.V; ++v) unused.embedding.floats()(v, 3) = 0;
  const std::vector<std::uint8_t> other = gguf_file(config, unused);
  const std::vector<float> columns =
      importance_of(GgufFile("other", other), ids, 5).at("blk.0.attn_q.weight");
  CHECK(columns[3] ==
        doctest::Approx(1e-3 * std::accumulate(columns.begin(), columns.end(), 0.0) / 64.001));
}

TEST_CASE("reference: blocks of 32 are the bytes that the format's own package writes") {
  const GgufFile file = GgufFile::open(T2T_FIXTURES "/rounded.gguf");
  const Tensor<2> x = file.matrix("x", 5, 96);
  for (const std::string name : {"q8_0", "q4_0", "q4_1"}) {
    CAPTURE(name);
    INFO("bytes: ",
         first_difference(quantize_rows(rounded_type(name), x), file.tensor(name).bytes));
    CHECK(std::ranges::equal(quantize_rows(rounded_type(name), x), file.tensor(name).bytes));
  }
}

}  // namespace t2t::file_test
