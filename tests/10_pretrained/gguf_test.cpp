// What must be true of reading GGUF files: their metadata, and their tensors as floats.
#include "10_pretrained/file/gguf.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "10_pretrained/small_file.hpp"
#include "files/npy.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/apart.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

namespace t2t::gguf_test {

static GgufFile parse(const std::vector<std::uint8_t>& bytes) { return GgufFile("x", bytes); }
static GgufFile parse(const GgufBytes& file) { return parse(file.bytes); }

TEST_CASE("metadata is read by the types that the file gives") {
  const std::vector<std::uint8_t> bytes = small_file();
  const GgufFile file = parse(bytes);
  const GgufMetadata& metadata = file.metadata();
  CHECK(metadata.text("general.architecture") == "llama");
  CHECK(metadata.integer("llama.block_count") == 30);
  CHECK(metadata.integer("none", 7) == 7);
  CHECK(metadata.real("eps") == double(1e-5f));
  CHECK(metadata.real("none", 0.5) == 0.5);
  CHECK(metadata.truth("flag", false));
  CHECK(metadata.texts("tokenizer.ggml.tokens") ==
        std::vector<std::string_view>{"a", "b", "ab", "<|im_end|>"});
  CHECK(metadata.integers("tokenizer.ggml.token_type") == std::vector<std::int64_t>{1, 1, 1, 3});
  CHECK(metadata.entries().size() == 9);
  CHECK(value_text(metadata.entries()[1]) == "30");
  CHECK(value_text(metadata.entries()[6]) == "4 strings");
  CHECK(value_text(metadata.entries()[7]) == "4 numbers");
}

TEST_CASE("integers of all sizes and signs are read; one of more than 63 bits is refused") {
  GgufBytes file;
  file.header(0, 10);
  file.text("u8").put(0u).put(std::uint8_t(200)).text("i8").put(1u).put(std::int8_t(-5));
  file.text("u16").put(2u).put(std::uint16_t(60000)).text("i16").put(3u).put(std::int16_t(-300));
  file.text("i32").put(5u).put(-70000).text("u64").put(10u).put(std::uint64_t(1) << 40);
  file.text("i64").put(11u).put(std::int64_t(-1)).text("f64").put(12u).put(0.1);
  file.text("zero").put(10u).put(std::uint64_t(0));
  file.text("huge").put(10u).put(~std::uint64_t(0));
  const GgufFile parsed = parse(file);
  const GgufMetadata& metadata = parsed.metadata();
  CHECK(metadata.integer("u8") == 200);
  CHECK(metadata.integer("i8") == -5);
  CHECK(metadata.integer("u16") == 60000);
  CHECK(metadata.integer("i16") == -300);
  CHECK(metadata.integer("i32") == -70000);
  CHECK(metadata.integer("u64") == std::int64_t(1) << 40);
  CHECK(metadata.integer("i64") == -1);
  CHECK(metadata.integer("zero") == 0);
  CHECK(metadata.real("f64") == 0.1);
  REFUSES_AS(metadata.integer("huge"), "x: huge: wanted an integer, got 18446744073709551615",
             std::runtime_error);
}

TEST_CASE("by hand: numbers begin where the directory ends, or at the next multiple of 32") {
  for (const std::size_t length : {7, 8, 9}) {  // the directory takes 56 bytes and the name
    const std::string name(length, 'n');
    GgufBytes file;
    file.header(1, 0).tensor(name, {1}, 0, 0).pad().put(3.0f);
    Tensor<1> x;
    REQUIRE_NOTHROW(x = parse(file).vector(name, 1));
    CHECK(x(0) == 3);
  }
}

TEST_CASE("by hand: half precision") {
  CHECK(half_to_float(0x3c00) == 1);
  CHECK(half_to_float(0xc000) == -2);
  CHECK(half_to_float(0x7bff) == 65504);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0x7c00) == std::numeric_limits<float>::infinity());
  CHECK(half_to_float(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(half_to_float(0x7e00)));
  CHECK(std::signbit(half_to_float(0x8000)));
}

/// The numbers of a block of these bytes.
static std::vector<float> numbers_of(TensorType type, std::string_view bytes) {
  const std::size_t count = block_layout(type).numbers;
  Tensor<1> values = empty(count);
  dequantize_rows(type, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                  Matrix(values.data(), 1, count, count));
  return {values.begin(), values.end()};
}

static constexpr TensorType types[] = {TensorType::f32,  TensorType::f16,  TensorType::q4_0,
                                       TensorType::q4_1, TensorType::q5_0, TensorType::q5_1,
                                       TensorType::q8_0, TensorType::q4_k, TensorType::q5_k,
                                       TensorType::q6_k, TensorType::bf16};

/// Three rows of two blocks in the middle of a wider matrix, which is 7 elsewhere. The bytes are
/// below 64, so that no number is infinite or NaN.
static Tensor<2> in_the_middle(TensorType type, const std::vector<std::uint8_t>& bytes) {
  const std::size_t cols = 2 * block_layout(type).numbers;
  Tensor<2> wide = 7 * xt::ones<float>({std::size_t(3), cols + 3});
  dequantize_rows(type, bytes, Matrix(wide).cols_from(2, cols));
  return wide;
}

TEST_CASE(
    "of every type, rows of two blocks are read one by one, and a view's other columns stay") {
  for (const TensorType type : types) {
    CAPTURE(type_name(type));
    const BlockLayout block = block_layout(type);
    const std::size_t cols = 2 * block.numbers, row_bytes = 2 * block.bytes;
    Random random(3);
    std::vector<std::uint8_t> bytes(3 * row_bytes);
    for (std::uint8_t& byte : bytes) byte = std::uint8_t(64 * random.next_uniform());
    const std::string ending = ending_apart([&] { in_the_middle(type, bytes); });
    CHECK(ending == "returned");
    if (ending != "returned") continue;

    const Tensor<2> wide = in_the_middle(type, bytes);
    for (std::size_t t = 0; t < 3; ++t) {
      for (const std::size_t c : {std::size_t(0), std::size_t(1), cols + 2}) CHECK(wide(t, c) == 7);
      for (std::size_t b = 0; b < 2; ++b) {  // each block as it is alone
        const auto* first = reinterpret_cast<const char*>(&bytes[(2 * t + b) * block.bytes]);
        const std::vector<float> want = numbers_of(type, {first, block.bytes});
        const ConstRow got = row(wide, t).subspan(2 + b * block.numbers, block.numbers);
        CAPTURE(t);
        CAPTURE(b);
        INFO(first_difference(got, want));
        CHECK(std::ranges::equal(got, want));
      }
    }
  }
}

TEST_CASE("rows that are no whole blocks, too few or too many bytes, and other types are refused") {
  Tensor<2> x = empty(1, 33), long_row = empty(1, 288), two = empty(2, 32);
  const auto of_bytes = [](std::size_t count) { return std::vector<std::uint8_t>(count); };
  REFUSES(dequantize_rows(TensorType::q8_0, of_bytes(34), x),
          "columns: wanted whole blocks of 32, got 33");
  REFUSES(dequantize_rows(TensorType::q4_k, of_bytes(144), long_row),
          "columns: wanted whole blocks of 256, got 288");
  REFUSES(dequantize_rows(TensorType::q8_0, of_bytes(67), two),
          "bytes: wanted 68 for 2 rows, got 67");
  REFUSES(dequantize_rows(TensorType::q8_0, of_bytes(69), two),
          "bytes: wanted 68 for 2 rows, got 69");
  std::vector<int> types = {5, 31, 77};  // an unused number, and two unknown ones
  // This type is not read, but has a name, Q2_K: a message in other words may say either.
  if (!in_own_words()) types.push_back(10);
  for (const int type : types)
    REFUSES(dequantize_rows(TensorType(type), of_bytes(68), two),
            fmt::format("tensor type: wanted one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, "
                        "Q5_K, Q6_K, BF16, got {}",
                        type));
  CHECK_THROWS_AS(dequantize_rows(TensorType(10), of_bytes(68), two), std::invalid_argument);
}

/// A block whose scale is 0.5, its minimum, if any, -1, and whose first byte holds 3 and 10.
static std::vector<float> block_of(TensorType type, std::string_view head, char fill) {
  std::string bytes(block_layout(type).bytes, fill);
  std::copy(head.begin(), head.end(), bytes.begin());
  return numbers_of(type, bytes);
}

TEST_CASE("by hand: low halves of a block's bytes come first, then the high ones") {
  const std::vector<float> q4_0 = block_of(TensorType::q4_0, std::string("\x00\x38\xa3", 3), 0x08);
  CHECK(q4_0[0] == 0.5f * (3 - 8));
  CHECK(q4_0[16] == 0.5f * (10 - 8));
  CHECK(q4_0[1] == 0);
  CHECK(q4_0[17] == 0.5f * -8);
  const std::vector<float> q4_1 =
      block_of(TensorType::q4_1, std::string("\x00\x38\x00\xbc\xa3", 5), 0);
  CHECK(q4_1[0] == 0.5f * 3 - 1);
  CHECK(q4_1[16] == 0.5f * 10 - 1);
  CHECK(q4_1[31] == -1);
  const std::vector<float> q8_0 = block_of(TensorType::q8_0, std::string("\x00\x38\x80", 3), 0x7f);
  CHECK(q8_0[0] == 0.5f * -128);
  CHECK(q8_0[31] == 0.5f * 127);
}

TEST_CASE("by hand: fifth bit i belongs to number i") {
  const std::vector<float> q5_0 =
      block_of(TensorType::q5_0, std::string("\x00\x38\x01\x00\x00\x00\xa3", 7), 0);
  CHECK(q5_0[0] == 0.5f * (19 - 16));
  CHECK(q5_0[16] == 0.5f * (10 - 16));
  CHECK(q5_0[1] == 0.5f * -16);
  const std::vector<float> q5_1 =
      block_of(TensorType::q5_1, std::string("\x00\x38\x00\xbc\x00\x00\x01\x00\xa3", 9), 0);
  CHECK(q5_1[0] == 0.5f * 3 - 1);
  CHECK(q5_1[16] == 0.5f * 26 - 1);
  CHECK(q5_1[31] == -1);
}

using Bytes = std::vector<std::pair<std::size_t, int>>;  // each with its place
/// A block that is zero but for these bytes.
static std::vector<float> zeros_but(TensorType type, const Bytes& head, const Bytes& rest) {
  std::string block(block_layout(type).bytes, 0);
  for (const Bytes& bytes : {head, rest})
    for (const auto& [place, byte] : bytes) block[place] = char(byte);
  return numbers_of(type, block);
}

TEST_CASE("by hand: each 32 numbers of a Q4_K or Q5_K block have a scale and a minimum of 6 bits") {
  // Scale 0.5, minimum 0.25. s0 = 3 and m0 = 8; s4 = 2·16 + 5 and m4 = 1·16 + 6 lie in three bytes.
  const Bytes head = {{1, 0x38}, {3, 0x34}, {4, 0x83}, {5, 1}, {8, 0x48}, {12, 0x65}};
  const std::vector<float> q4_k = zeros_but(TensorType::q4_k, head, {{16, 0xa3}, {80, 0x0c}});
  CHECK(q4_k[0] == 0.5f * 3 * 3 - 0.25f * 8);
  CHECK(q4_k[1] == -0.25f * 8);
  CHECK(q4_k[32] == 0.5f * 1 * 10);
  CHECK(q4_k[128] == 0.5f * 37 * 12 - 0.25f * 22);
  CHECK(q4_k[159] == -0.25f * 22);
  CHECK(q4_k[160] == 0);
  // The same, and a fifth bit of number 128: bit 4 of the first byte of those.
  const std::vector<float> q5_k =
      zeros_but(TensorType::q5_k, head, {{16, 0x10}, {48, 0xa3}, {112, 0x0c}});
  CHECK(q5_k[0] == 0.5f * 3 * 3 - 0.25f * 8);
  CHECK(q5_k[32] == 0.5f * 1 * 10);
  CHECK(q5_k[128] == 0.5f * 37 * 28 - 0.25f * 22);
}

TEST_CASE("by hand: each 16 numbers of a Q6_K block have a scale, and q is 4 bits and 2") {
  // s0 = 2, s1 = 1, s4 = -128; the scale stands last.
  const std::vector<float> q6_k = zeros_but(
      TensorType::q6_k, {{192, 2}, {193, 1}, {196, 0x80}, {209, 0x38}}, {{0, 0xa3}, {128, 0x13}});
  CHECK(q6_k[0] == 0.5f * 2 * (3 * 16 + 3 - 32));
  CHECK(q6_k[1] == 0.5f * 2 * -32);
  CHECK(q6_k[16] == 0.5f * 1 * -32);
  CHECK(q6_k[64] == 0.5f * -128 * (1 * 16 + 10 - 32));
  CHECK(q6_k[32] == 0);
}

TEST_CASE("each type equals the format's own package exactly, also at odd shapes") {
  const GgufFile odd = GgufFile::open(T2T_FIXTURES "/tensors.gguf"),
                 later = GgufFile::open(T2T_FIXTURES "/types.gguf");
  CHECK(odd.tensors().size() == 8);
  CHECK(later.tensors().size() == 5);
  // A number is rounded once at most: scale · s · q is of 24 bits or fewer.
  for (const GgufFile* file : {&odd, &later})
    for (const GgufTensor& tensor : file->tensors()) {
      if (tensor.name == "gain") continue;
      CAPTURE(tensor.name);
      const Tensor<2> want = load_npy<2>(fmt::format(T2T_FIXTURES "/{}.npy", tensor.name));
      const Tensor<2> got = file->matrix(tensor.name, want.shape(0), want.shape(1));
      // Equality, not distance: infinity has none to itself. A zero may have either sign.
      std::size_t others = 0;
      for (std::size_t i = 0; i < want.size(); ++i) others += !(got.data()[i] == want.data()[i]);
      CHECK(others == 0);
    }
  CHECK(all_close(odd.vector("gain", 9), load_npy<1>(T2T_FIXTURES "/gain.npy"), 0));
}

TEST_CASE("rows that threads share are in their places; a view's other columns stay") {
  const std::size_t rows = 300, cols = 96;
  Random random(3);
  std::vector<std::uint8_t> bytes(rows * cols / 32 * 34);
  for (std::uint8_t& byte : bytes) byte = std::uint8_t(64 * random.next_uniform());
  Tensor<2> wide = xt::zeros<float>({rows, cols + 3});
  dequantize_rows(TensorType::q8_0, bytes, Matrix(wide).cols_from(2, cols));
  for (const std::size_t t : {std::size_t(0), std::size_t(151), rows - 1})
    for (const std::size_t c : {std::size_t(0), std::size_t(37), cols - 1}) {
      const std::uint8_t* block = &bytes[(t * cols + c) / 32 * 34];
      const float scale = half_to_float(std::uint16_t(block[0] | block[1] << 8));
      CHECK(wide(t, c + 2) == scale * float(block[2 + c % 32]));
    }
  for (std::size_t t = 0; t < rows; ++t)
    CHECK(std::abs(wide(t, 0)) + std::abs(wide(t, 1)) + std::abs(wide(t, cols + 2)) == 0);
}

TEST_CASE("a refused look-up names the file, the key and what was found") {
  const std::vector<std::uint8_t> bytes = small_file();
  const GgufFile file = parse(bytes);
  const GgufMetadata& metadata = file.metadata();
  REFUSES_AS(metadata.integer("none"), "x: has no none, wanted an integer", std::runtime_error);
  REFUSES_AS(metadata.integer("eps"), "x: eps: wanted an integer, got 1e-05", std::runtime_error);
  REFUSES_AS(metadata.real("llama.block_count"),
             "x: llama.block_count: wanted a real number, got 30", std::runtime_error);
  REFUSES_AS(metadata.text("flag"), "x: flag: wanted a string, got true", std::runtime_error);
  REFUSES_AS(metadata.truth("eps", true), "x: eps: wanted true or false, got 1e-05",
             std::runtime_error);
  REFUSES_AS(metadata.integers("tokenizer.ggml.merges"),
             "x: tokenizer.ggml.merges: wanted an array of integers, got 1 strings",
             std::runtime_error);
  REFUSES_AS(metadata.texts("general.architecture"),
             "x: general.architecture: wanted an array of strings, got \"llama\"",
             std::runtime_error);
  REFUSES_AS(file.tensor("q"), "x: q: there is no such tensor", std::runtime_error);
  REFUSES_AS(file.matrix("w", 32, 2), "x: w: wanted shape [32, 2], got [2, 32]",
             std::runtime_error);
  REFUSES_AS(file.vector("w", 64), "x: w: wanted shape [64], got [2, 32]", std::runtime_error);
  REFUSES_AS(file.vector("gain", 4), "x: gain: wanted shape [4], got [3]", std::runtime_error);
  CHECK_NOTHROW(file.matrix("gain", 1, 3));
}

}  // namespace t2t::gguf_test
