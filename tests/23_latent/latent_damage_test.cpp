// What must be true of DeepSeek's files from anywhere: what is missing, impossible or not built
// here is refused in one line that names the key or the tensor.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "23_latent/model/load_latent.hpp"
#include "files/files.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_damage_test {

using std::size_t;
using Bytes = std::vector<std::uint8_t>;

/// The bytes of a file in which a text of the same length stands in the place of another.
static Bytes replaced(const std::string& name, const std::string& was, const std::string& now) {
  std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find(was);
  REQUIRE(at != bytes.npos);
  REQUIRE(was.size() == now.size());
  bytes.replace(at, was.size(), now);
  return {bytes.begin(), bytes.end()};
}
/// The same with another value at a key, of 32 bits.
template <class Value>
static Bytes with_value(const std::string& name, const std::string& key, Value value) {
  static_assert(sizeof value == 4);
  const std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find("deepseek2." + key);
  REQUIRE(at != bytes.npos);
  const std::string was = bytes.substr(at, key.size() + 18);  // the key, its type, its value
  return replaced(name, was,
                  was.substr(0, key.size() + 14) + std::string(reinterpret_cast<char*>(&value), 4));
}

TEST_CASE("keys that are missing, impossible or not built are refused in one line") {
  const auto refused = [](const Bytes& bytes, const std::string& message) {
    REFUSES_AS(read_latent_model(GgufFile("x", bytes)), message, std::runtime_error);
  };
  refused(replaced("v3", "general.architecture\x08", "general.architectura\x08"),
          "x: has no general.architecture, wanted a string");
  REFUSES_AS(read_latent_model(GgufFile::open(T2T_FIXTURES "/../10_pretrained/tiny.gguf")),
             T2T_FIXTURES
             "/../10_pretrained/tiny.gguf: general.architecture: wanted deepseek2, got llama",
             std::runtime_error);
  refused(replaced("v3", "deepseek2.attention.kv_lora_rank", "deepseek2.attention.kv_lorb_rank"),
          "x: has no deepseek2.attention.kv_lora_rank, wanted an integer");
  refused(with_value("v3", "attention.kv_lora_rank", 0u),
          "x: deepseek2.attention.kv_lora_rank: wanted 1 to 2147483647, got 0");
  refused(with_value("v3", "rope.dimension_count", 22u),
          "x: deepseek2.rope.dimension_count: wanted less than 22, a head's width, got 22");
  refused(with_value("v3", "rope.dimension_count", 11u),
          "x: R, a head's rotated channels: wanted an even number of at least 2, got 11");
  refused(with_value("v3", "expert_gating_func", 3u),
          "x: deepseek2.expert_gating_func: wanted 1 (softmax) or 2 (sigmoid), got 3");
  refused(with_value("v3", "expert_group_count", 3u),
          "x: groups: wanted a divisor of E = 8, got 3");
  refused(with_value("v3", "expert_group_used_count", 1u),
          "x: k, the experts of a token: wanted at most the 2 of 1 open groups, got 3");
  refused(with_value("v3", "expert_weights_scale", -1.0f),
          "x: deepseek2.expert_weights_scale: wanted a number above 0, got -1");
  refused(with_value("v3", "leading_dense_block_count", 4u),
          "x: dense, the blocks without experts: wanted at most L = 3, got 4");
  refused(replaced("v3", "yarn_log_multiplier", "yarn_log_multiplies"),
          "x: has no deepseek2.rope.scaling.yarn_log_multiplier, wanted a real number");
  refused(with_value("v3", "rope.scaling.factor", 0.5f),
          "x: factor: wanted a finite number of at least 1, got 0.5");
  const std::string type = "deepseek2.rope.scaling.type",
                    is_text("\x08\0\0\0\x04\0\0\0\0\0\0\0", 12);
  refused(replaced("v3", type + is_text + "yarn", type + is_text + "what"),
          "x: deepseek2.rope.scaling.type: wanted none or yarn, got what");
  refused(with_value("v3", "block_count", 100000u),
          "x: deepseek2.block_count: wanted at most the 47 tensors, got 100000");
}

TEST_CASE("tensors that are missing, of another shape or of no use are refused by name") {
  const auto refused = [](const Bytes& bytes, const std::string& message) {
    REFUSES_AS(read_latent_model(GgufFile("x", bytes)), message, std::runtime_error);
  };
  refused(with_value("v3", "attention.kv_lora_rank", 31u),
          "x: blk.0.attn_kv_a_mqa.weight: wanted shape [43, 64], got [44, 64]");
  refused(with_value("v3", "attention.value_length_mla", 15u),
          "x: blk.0.attn_v_b.weight: wanted shape [3, 15, 32], got [3, 14, 32]");
  refused(with_value("v2_lite", "attention.value_length", 13u),
          "x: blk.0.attn_kv_b.weight: wanted shape [132, 32], got [128, 32]");
  refused(with_value("v3", "attention.q_lora_rank", 0u),
          "x: blk.0.attn_q.weight: there is no such tensor");
  refused(with_value("v3", "expert_count", 16u),
          "x: blk.2.ffn_gate_inp.weight: wanted shape [16, 64], got [8, 64]");
  refused(with_value("v3", "expert_count", 0x7ffffff8u),
          "x: blk.2.ffn_gate_inp.weight: wanted shape [2147483640, 64], got [8, 64]");
  refused(with_value("v3", "expert_shared_count", 2u),
          "x: blk.2.ffn_gate_shexp.weight: wanted shape [64, 64], got [32, 64]");
  refused(with_value("v3", "leading_dense_block_count", 1u),
          "x: blk.1.ffn_gate_inp.weight: there is no such tensor");
  refused(replaced("v3", "blk.1.attn_v_b.weight", "blk.1.attn_w_b.weight"),
          "x: blk.1.attn_v_b.weight: there is no such tensor");
  refused(replaced("v3", "blk.2.exp_probs_b.bias", "blk.2.exp_probs_c.bias"),
          "x: blk.2.exp_probs_c.bias: this model has no use for such a tensor");
}

}  // namespace t2t::latent_damage_test
