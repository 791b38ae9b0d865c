// What must be true of tiny files of gpt-oss and SmolLM3: PyTorch's logits, and refusals.
#include "files/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "12_quantization/formats/relative_error.hpp"
#include "25_sinks/gpt_oss/load_gpt_oss.hpp"
#include "25_sinks/layers/load_smollm3.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::sink_files_test {

using std::size_t;
using Bad = std::runtime_error;
using Bytes = std::vector<std::uint8_t>;

static const std::filesystem::path fixtures = T2T_FIXTURES;

/// The ids of make.py.
static std::vector<int> ids_of(size_t T, size_t V) {
  std::vector<int> ids(T);
  for (size_t t = 0; t < T; ++t) ids[t] = int((11 * t + 3) % V);
  return ids;
}

/// The logits of make.py's ids, in calls of these numbers of tokens, which repeat.
static Tensor<2> logits_in_steps(const Model& model, ModelState& state, size_t T,
                                 const std::vector<size_t>& steps) {
  const std::vector<int> ids = ids_of(T, model.config().V);
  Tensor<2> logits = empty(T, model.config().V);
  for (size_t from = 0, i = 0; from < T; ++i) {
    const size_t count = std::min(steps[i % steps.size()], T - from);
    forward_all(model, state, std::span(ids).subspan(from, count),
                Matrix(logits).rows_from(from, count));
    from += count;
  }
  return logits;
}

TEST_CASE("gpt_oss.gguf: the logits of transformers in float64, for a prompt and for each token") {
  const GptOss gpt_oss = read_gpt_oss(GgufFile::open(fixtures / "gpt_oss.gguf"));
  const Tensor<2> want = load_npy<2>(fixtures / "gpt_oss_logits.npy");
  for (const std::vector<size_t>& steps : {std::vector<size_t>{40}, {1}, {17, 1, 1, 6}}) {
    ModelState state = gpt_oss_state(gpt_oss, 48);
    CHECK(all_close(logits_in_steps(gpt_oss.model, state, want.shape(0), steps), want, 1e-4));
  }
}

TEST_CASE("gpt_oss.gguf: experts as integers in Q8_0 are off by 8-bit activations alone") {
  const GptOss gpt_oss =
      read_gpt_oss(GgufFile::open(fixtures / "gpt_oss.gguf"), ExpertProducts::integers);
  CHECK(gpt_oss.layers[2].experts.experts[5].w_up.bytes() == 32 * 2 * 34);
  const Tensor<2> want = load_npy<2>(fixtures / "gpt_oss_logits.npy");
  ModelState state = gpt_oss_state(gpt_oss, 48);
  const Tensor<2> got = logits_in_steps(gpt_oss.model, state, want.shape(0), {17, 1, 1, 6});
  // A rounded activation may change a token's choice of experts: the median of all tokens tells.
  std::vector<double> errors;
  for (size_t t = 0; t < want.shape(0); ++t)
    errors.push_back(
        relative_error(ConstMatrix(got).rows_from(t, 1), ConstMatrix(want).rows_from(t, 1)));
  std::ranges::nth_element(errors, errors.begin() + 20);
  CHECK(errors[20] > 1e-5);
  CHECK(errors[20] < 0.05);  // two roundings a layer, each of up to 1/254 of a half block's largest
}

TEST_CASE("gpt_oss.gguf: its sizes, and weights that stay packed") {
  const GptOss gpt_oss = read_gpt_oss(GgufFile::open(fixtures / "gpt_oss.gguf"));
  const Config& config = gpt_oss.model.config();
  CHECK(config.L == 3);
  CHECK(config.block.D == 16);
  CHECK(config.block.window == 0);
  CHECK(settings_of(config, 0).window == 8);
  CHECK(settings_of(config, 1).window == 0);
  CHECK(settings_of(config, 2).window == 8);
  CHECK(config.block.pairing == Pairing::halves);
  const ClampedExperts& experts = gpt_oss.layers[2].experts;
  CHECK(experts.experts.size() == 6);
  CHECK(experts.chosen == 2);
  CHECK(experts.experts[5].w_up.bytes() == 32 * 2 * 17);
  CHECK(gpt_oss.model.weights().embedding.bytes() == 61 * 64 * 2);
}

TEST_CASE("smollm3.gguf: the logits of transformers in float64, for a prompt and for each token") {
  const Model model = read_smollm3(GgufFile::open(fixtures / "smollm3.gguf"));
  for (size_t l = 0; l < 4; ++l) CHECK(settings_of(model.config(), l).uses_rope == (l != 3));
  const Tensor<2> want = load_npy<2>(fixtures / "smollm3_logits.npy");
  for (const std::vector<size_t>& steps : {std::vector<size_t>{30}, {1}, {11, 1, 1}}) {
    ModelState state(model.config(), 32);
    CHECK(all_close(logits_in_steps(model, state, want.shape(0), steps), want, 1e-4));
  }
}

/// A fixture's bytes, with the first `from` behind `after` replaced by `to`, of the same length.
static Bytes changed(const char* file, std::string_view after, std::string_view from,
                     std::string_view to) {
  std::string text = read_file(fixtures / file);
  const size_t at = text.find(from, text.find(after));
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return Bytes(text.begin(), text.end());
}

/// A fixture's bytes with another value of a key that holds 32 bits.
template <class Value>
static Bytes with_value(const char* file, std::string_view key, Value value) {
  std::string text = read_file(fixtures / file);
  const size_t at = text.find(key);
  REQUIRE(at != std::string::npos);
  std::memcpy(&text[at + key.size() + 4], &value, 4);  // behind the value's type
  return Bytes(text.begin(), text.end());
}

static void load(const Bytes& bytes) { (void)read_gpt_oss(GgufFile("x", bytes)); }
static void load_smollm3(const Bytes& bytes) { (void)read_smollm3(GgufFile("x", bytes)); }

TEST_CASE("a scale that is NaN is refused with its tensor, row and block") {
  std::string text = read_file(fixtures / "gpt_oss.gguf");
  Bytes bytes(text.begin(), text.end());
  const GgufFile file("x", bytes);
  const GgufTensor& tensor = file.tensor("blk.1.ffn_up_exps.weight");
  // Expert 2 has 32 rows of two blocks: its row 3, block 1.
  bytes[size_t(tensor.bytes.data() - bytes.data()) + ((2 * 32 + 3) * 2 + 1) * 17] = 255;
  REFUSES_AS(load(bytes),
             "x: blk.1.ffn_up_exps.weight: row 3, block 1: e, the scale's exponent: wanted 0 to "
             "254, since 255 means NaN, got 255",
             Bad);
}

TEST_CASE("other architectures, missing and surplus tensors, and values out of range are refused") {
  const char* file = "gpt_oss.gguf";
  REFUSES_AS(load(changed(file, "general.architecture", "gpt-oss", "gpt-osx")),
             "x: general.architecture: wanted gpt-oss, got gpt-osx", Bad);
  REFUSES_AS(load(changed(file, "blk.1", "attn_sinks", "attn_sinkx")),
             "x: blk.1.attn_sinks.weight: there is no such tensor", Bad);
  REFUSES_AS(load(changed(file, "rope.scaling.type", "yarn", "yarm")),
             "x: gpt-oss.rope.scaling.type: wanted none or yarn, got yarm", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.attention.sliding_window", 0u)),
             "x: gpt-oss.attention.sliding_window: wanted 1 to 2147483647, got 0", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.block_count", 70000u)),
             "x: gpt-oss.block_count: 70000, but there are 60 tensors", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.block_count", 2u)),
             "x: surplus tensor: blk.2.attn_sinks.weight", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.expert_used_count", 7u)),
             "x: layer 0: k, the experts of a token: wanted 1 to E = 6, got 7", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.expert_count", 5u)),
             "x: blk.0.ffn_gate_inp.weight: wanted shape [5, 64], got [6, 64]", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.rope.scaling.factor", -1.0f)),
             "x: gpt-oss.rope.scaling.factor: wanted a number above 0, got -1", Bad);
  REFUSES_AS(load(with_value(file, "gpt-oss.attention.value_length", 8u)),
             "x: gpt-oss.attention.value_length: wanted D = 16, got 8", Bad);
  REFUSES_AS(load_smollm3(changed("smollm3.gguf", "general.architecture", "smollm3", "smollm4")),
             "x: general.architecture: wanted smollm3, got smollm4", Bad);
  REFUSES_AS(load_smollm3(with_value("smollm3.gguf", "smollm3.embedding_length", 0u)),
             "x: smollm3.embedding_length: wanted 1 to 2147483647, got 0", Bad);
}

}  // namespace t2t::sink_files_test
