// What must be true of Qwen3-Next's files: their logits are those of transformers, tensors in
// groups come apart, and what is missing, impossible or not built is refused in one line.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"
#include "files/files.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::qwen3_next_files_test {

using std::size_t;
using Ids = std::vector<int>;
using Bytes = std::vector<std::uint8_t>;

static GgufFile small(const std::string& name) {
  return GgufFile::open(T2T_FIXTURES "/" + name + ".gguf");
}
/// The ids of the reference; the first `prompt` at once, the others one by one.
static Tensor<2> logits_of(const Qwen3Next& model, size_t prompt) {
  const size_t T = 39, V = model.config.V;
  Ids ids;
  for (size_t t = 0; t < T; ++t) ids.push_back(int((t * 11 + 3) % V));
  Qwen3NextState state(model.config, T);
  Tensor<2> logits = empty(T, V);
  for (size_t t = 0, count = prompt; t < T; t += count, count = 1)
    xt::view(logits, xt::range(t, t + count), xt::all()) =
        qwen3_next_logits(std::span(ids).subspan(t, count), model, state);
  return logits;
}

TEST_CASE("logits of a prompt and of single steps are those of transformers in float64") {
  for (const std::string name : {"qwen3_next", "qwen3_next_old"}) {
    CAPTURE(name);
    const GgufFile file = small(name);
    const Qwen3Next model = read_qwen3_next(file);
    const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/" + name + "_logits.npy");  // [39, V]
    REQUIRE(want.shape(1) == model.config.V);
    // Logits are below 4. A sum of n products, 72 at most, keeps eps·√n of its size, and a block
    // has ten steps one after the other: at most 1e-4, for four blocks.
    const double bound = 0x1p-24 * std::sqrt(72.0) * double(10 * model.config.L + 2) * 4;
    CHECK(bound < 1e-4);
    CHECK(all_close(logits_of(model, 39), want, bound));
    CHECK(all_close(logits_of(model, 17), want, bound));
    CHECK(all_close(logits_of(model, 1), want, bound));

    // In as many bits as the file has, only what is multiplied with the weights is rounded. A
    // rounded score may change a token's choice of experts, so half of the tokens must be near.
    const Tensor<2> got = logits_of(read_qwen3_next(file, packed_matrix), 17);
    size_t far = 0;
    for (size_t t = 0; t < 39; ++t) {
      double apart = 0, size = 0;
      for (size_t v = 0; v < want.shape(1); ++v) {
        apart += std::pow(double(got(t, v)) - want(t, v), 2);
        size += std::pow(double(want(t, v)), 2);
      }
      far += !(apart < 0.05 * 0.05 * size);
    }
    CHECK(far < 20);
  }
}

TEST_CASE("what the files say") {
  const Qwen3NextConfig config = read_qwen3_next_config(small("qwen3_next"));
  const GatedAttentionSettings& a = config.attention;
  CHECK(std::vector{a.C, a.H, a.G, a.D, a.R} == std::vector<size_t>{32, 4, 2, 16, 4});
  CHECK(a.eps == 0x1p-10f);
  const DeltaLayerSettings& d = config.delta;
  CHECK(std::vector{d.C, d.H, d.G, d.D, d.Dv, d.W} == std::vector<size_t>{32, 6, 2, 10, 12, 4});
  CHECK(d.eps == 0x1p-10f);
  CHECK(std::vector{config.L, config.every, config.V, config.T_max, config.E, config.router.k,
                    config.F, config.F_shared} == std::vector<size_t>{4, 4, 61, 64, 5, 2, 32, 64});
  CHECK(config.theta == 100);
  CHECK_FALSE(config.tied);
  CHECK(config.router.normalized);
  CHECK(config.router.scoring == Scoring::softmax);

  const Qwen3NextConfig old = read_qwen3_next_config(small("qwen3_next_old"));
  CHECK(old.attention.R == 6);
  CHECK(old.every == 2);
  CHECK(old.delta.W == 3);
  CHECK(old.tied);
}

TEST_CASE("by hand: rows in groups come apart, group by group") {
  // Two groups, each with a row of part 0 and two rows of part 1.
  const std::vector<Tensor<2>> parts = parts_of_groups({{1}, {2}, {3}, {4}, {5}, {6}}, 2, {1, 2});
  REQUIRE(parts.size() == 2);
  CHECK(all_close(parts[0], Tensor<2>{{1}, {4}}, 0));
  CHECK(all_close(parts[1], Tensor<2>{{2}, {3}, {5}, {6}}, 0));
  REFUSES(parts_of_groups({{1}, {2}, {3}}, 2, {1, 2}), "x: wanted shape [6, 1], got [3, 1]");
}

/// A file with a delta layer of two heads of q and k, four of v, D = Dv = 1, W = 1 and C = 1.
static GgufBytes delta_file(bool old, float a) {
  struct Part {
    const char* name;
    std::vector<std::uint64_t> sizes;
    std::vector<float> values;
  };
  std::vector<Part> parts = {{"ssm_ba.weight", {1, 8}, {1, 2, 11, 12, 3, 4, 13, 14}},
                             {"ssm_conv1d.weight", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}},
                             {"ssm_dt.bias", {4}, {21, 22, 23, 24}},
                             {"ssm_a", {4}, {-1, -2, a, -0.5f}},
                             {"ssm_norm.weight", {1}, {9}},
                             {"ssm_out.weight", {4, 1}, {31, 32, 33, 34}}};
  if (old) {
    parts.push_back({"ssm_in.weight", {1, 12}, {1, 3, 5, 6, -1, -2, 2, 4, 7, 8, -3, -4}});
  } else {
    parts.push_back({"attn_qkv.weight", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}});
    parts.push_back({"attn_gate.weight", {1, 4}, {-1, -2, -3, -4}});
  }
  GgufBytes file;
  file.header(parts.size(), 0);
  std::uint64_t offset = 0;
  for (const Part& part : parts) {
    file.tensor(std::string("blk.7.") + part.name, part.sizes, 0, offset);
    offset += (4 * part.values.size() + 31) / 32 * 32;
  }
  file.pad();
  for (const Part& part : parts) {
    for (const float value : part.values) file.put(value);
    file.pad();
  }
  return file;
}

TEST_CASE("by hand: a delta layer from one tensor for q, k, v and z, or from two") {
  const DeltaLayerSettings s{.C = 1, .H = 4, .D = 1, .Dv = 1, .W = 1, .G = 2};
  for (const bool old : {false, true}) {
    CAPTURE(old);
    const GgufBytes bytes = delta_file(old, -4);
    const DeltaLayerWeights w = read_delta_layer(GgufFile("x", bytes.bytes), "blk.7.", s);
    CHECK(all_close(w.w_qkv, Tensor<2>{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}, 0));
    CHECK(all_close(w.w_z, Tensor<2>{{-1}, {-2}, {-3}, {-4}}, 0));
    CHECK(all_close(w.w_beta, Tensor<2>{{1}, {2}, {3}, {4}}, 0));
    CHECK(all_close(w.w_gate, Tensor<2>{{11}, {12}, {13}, {14}}, 0));
    CHECK(all_close(w.conv, Tensor<2>{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}, 0));
    CHECK(all_close(w.a, Tensor<1>{0, std::log(2.f), std::log(4.f), std::log(0.5f)}, 1e-6));
    CHECK(all_close(w.b, Tensor<1>{21, 22, 23, 24}, 0));
    CHECK(all_close(w.gain, Tensor<1>{9}, 0));
    CHECK(all_close(w.w_o, Tensor<2>{{31, 32, 33, 34}}, 0));
  }
  const GgufBytes grows = delta_file(false, 0.25f), none = delta_file(false, NAN);
  REFUSES_AS(read_delta_layer(GgufFile("x", grows.bytes), "blk.7.", s),
             "x: blk.7.ssm_a: wanted finite numbers of at most 0, got 0.25", std::runtime_error);
  REFUSES_AS(read_delta_layer(GgufFile("x", none.bytes), "blk.7.", s),
             "x: blk.7.ssm_a: wanted finite numbers of at most 0, got nan", std::runtime_error);
}

/// The bytes of a file in which a text of the same length stands in the place of another.
static Bytes replaced(const std::string& was, const std::string& now,
                      const std::string& name = "qwen3_next") {
  std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find(was);
  REQUIRE(at != bytes.npos);
  REQUIRE(was.size() == now.size());
  bytes.replace(at, was.size(), now);
  return {bytes.begin(), bytes.end()};
}
/// The same with another value at a key, of 32 bits.
template <class Value>
static Bytes with_value(const std::string& key, Value value,
                        const std::string& name = "qwen3_next") {
  static_assert(sizeof value == 4);
  std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find("qwen3next." + key);
  REQUIRE(at != bytes.npos);
  std::memcpy(&bytes[at + key.size() + 14], &value, 4);  // behind the key and its type
  return {bytes.begin(), bytes.end()};
}
static void refused(const Bytes& bytes, const std::string& message) {
  REFUSES_AS(read_qwen3_next(GgufFile("x", bytes)), message, std::runtime_error);
}

TEST_CASE("keys that are missing, impossible or not built are refused in one line") {
  REFUSES_AS(read_qwen3_next(GgufFile::open(T2T_FIXTURES "/../10_pretrained/tiny.gguf")),
             T2T_FIXTURES
             "/../10_pretrained/tiny.gguf: general.architecture: wanted qwen3next, got llama",
             std::runtime_error);
  refused(replaced("qwen3next.ssm.state_size", "qwen3next.ssm.state_sizf"),
          "x: has no qwen3next.ssm.state_size, wanted an integer");
  refused(with_value("ssm.time_step_rank", 0u),
          "x: qwen3next.ssm.time_step_rank: wanted 1 to 2147483647, got 0");
  refused(with_value("ssm.inner_size", 73u),
          "x: qwen3next.ssm.inner_size: wanted a multiple of 6, got 73");
  refused(with_value("ssm.group_count", 4u),
          "x: groups: wanted G key and value heads that divide H query heads, got H = 6, G = 4");
  refused(with_value("rope.dimension_count", 17u),
          "x: R, the channels that RoPE rotates: wanted an even number from 2 to D = 16, got 17");
  refused(with_value("attention.value_length", 8u),
          "x: qwen3next.attention.value_length: wanted D = 16, got 8");
  refused(with_value("expert_used_count", 6u),
          "x: k, the experts of a token: wanted 1 to E = 5, got 6");
  refused(with_value("attention.layer_norm_rms_epsilon", 0.0f),
          "x: qwen3next.attention.layer_norm_rms_epsilon: wanted a number above 0, got 0");
  refused(with_value("block_count", 100000u),
          "x: qwen3next.block_count: 100000, but there are 73 tensors");
  refused(with_value("full_attention_interval", 0u),
          "x: qwen3next.full_attention_interval: wanted 1 to 2147483647, got 0");
}

TEST_CASE("what would change the computation is refused by its key") {
  const auto refused_key = [](const auto& value, const char* key, const char* message) {
    GgufBytes file;
    file.header(0, 2).entry("general.architecture", "qwen3next");
    file.entry("qwen3next." + std::string(key), value).pad();
    REFUSES_AS(read_qwen3_next_config(GgufFile("x", file.bytes)), message, std::runtime_error);
  };
  refused_key("yarn", "rope.scaling.type", "x: qwen3next.rope.scaling.type: wanted none, got yarn");
  refused_key(2.5f, "expert_weights_scale", "x: qwen3next.expert_weights_scale: wanted 1, got 2.5");
  refused_key(false, "expert_weights_norm",
              "x: qwen3next.expert_weights_norm: wanted true, got false");
  refused_key(std::vector<std::int32_t>{1, 0}, "attention.recurrent_layers",
              "x: qwen3next.attention.recurrent_layers: wanted full_attention_interval instead of "
              "a list");
  // What changes nothing is read: the next key is missed.
  refused_key(1.0f, "expert_weights_scale",
              "x: has no qwen3next.embedding_length, wanted an integer");
}

TEST_CASE("tensors that are missing, of another shape or of no use are refused by name") {
  refused(with_value("ssm.state_size", 11u),
          "x: blk.0.attn_qkv.weight: wanted shape [116, 32], got [112, 32]");
  refused(with_value("ssm.state_size", 9u, "qwen3_next_old"),
          "x: blk.0.ssm_in.weight: wanted shape [126, 32], got [120, 32]");
  refused(with_value("ssm.conv_kernel", 3u),
          "x: blk.0.ssm_conv1d.weight: wanted shape [112, 3], got [112, 4]");
  refused(with_value("attention.head_count", 8u),
          "x: blk.3.attn_q.weight: wanted shape [256, 32], got [128, 32]");
  refused(with_value("full_attention_interval", 2u),
          "x: blk.1.attn_q.weight: there is no such tensor");
  refused(with_value("expert_count", 0x7ffffff8u),
          "x: blk.0.ffn_gate_inp.weight: wanted shape [2147483640, 32], got [5, 32]");
  refused(replaced("blk.1.ssm_ba.weight", "blk.1.ssm_bb.weight"),
          "x: blk.1.ssm_ba.weight: there is no such tensor");
  refused(with_value("block_count", 3u),
          "x: blk.3.attn_q.weight: this model has no use for such a tensor");
}

}  // namespace t2t::qwen3_next_files_test
