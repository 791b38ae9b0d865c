// What must be true of model files with experts: their logits equal PyTorch's, and what no program
// can run is refused.
#include "files/files.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "09_language_model/language_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "12_quantization/formats/file_plan.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "14_mixture_of_experts/model/upcycle.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::files_test {

using namespace std::string_literals;
using std::size_t;

static GgufFile small(const std::string& name) {
  return GgufFile::open(T2T_FIXTURES "/" + name + ".gguf");
}
static Tensor<2> formula(const Tensor<2>& x, const BlockWeights& weights,
                         const BlockSettings& settings) {
  return mixture_of_experts(x, mixture_of(weights, settings));
}
static Tensor<2> logits_by_rows(const Model& model, const Ids& ids) {
  StateOptions options{.chunk = 7};
  if (model.config().block.experts > 0) options.network = experts_network();
  ModelState state(model.config(), ids.size(), options);
  Tensor<2> logits = empty(ids.size(), model.config().V);
  forward_all(model, state, ids, logits);
  return logits;
}

TEST_CASE("logits of small files with experts, and of Granite's, equal those of PyTorch") {
  for (const std::string name :
       {"mixtral", "qwen3moe", "qwen2moe", "olmoe", "granite", "granitemoe"}) {
    CAPTURE(name);
    const GgufFile file = small(name);
    const Model model = read_model(file);
    const bool mixture = model.config().block.experts > 0;
    const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/" + name + "_logits.npy");  // [19, V]
    Ids ids;
    for (size_t t = 0; t < 19; ++t) ids.push_back(int((t * 11 + 3) % want.shape(1)));
    // Logits are of size 1. A sum of n products, 96 at most, keeps eps·√n of that, and through a
    // mixture's router, weights and experts the way is some twenty steps deep.
    const double bound = 0x1p-24 * 2 * 96;
    CHECK(
        all_close(language_model(ids, model, mixture ? formula : ReferenceNetwork()), want, bound));
    CHECK(all_close(logits_by_rows(model, ids), want, bound));

    // In as many bits as the file has, only what is multiplied with the weights is rounded.
    const Tensor<2> packed = logits_by_rows(read_model(file, packed_matrix), ids);
    const Tensor<2> apart = packed - want;
    CHECK(xt::sum(apart * apart)() < 0.05 * 0.05 * xt::sum(want * want)());
  }
}

TEST_CASE("what the files say of their experts") {
  const BlockSettings mixtral = read_config(small("mixtral")).block;
  CHECK(mixtral.experts == 4);
  CHECK(mixtral.chosen == 2);
  CHECK(mixtral.normalized);
  CHECK(mixtral.shared == 0);
  const BlockSettings qwen2 = read_config(small("qwen2moe")).block;
  CHECK(qwen2.F == 32);
  CHECK_FALSE(qwen2.normalized);
  CHECK(qwen2.shared == 96);
  CHECK(qwen2.shared_gate);
  const BlockSettings olmoe = read_config(small("olmoe")).block;
  CHECK(olmoe.experts == 8);
  CHECK(olmoe.chosen == 3);
  CHECK_FALSE(olmoe.normalized);
  CHECK(olmoe.heads_together);
  const Config granite = read_config(small("granite"));
  CHECK(granite.embedding_scale == 16);  // 6 / 0.375
  CHECK(granite.block.eps == doctest::Approx(0x1p-7 / (0.375 * 0.375)));
  CHECK(granite.block.score_scale == 0.15625f);
  CHECK(granite.logit_scale == 0.4f);
}

TEST_CASE("a file that is rounded to few bits keeps its routers in floats") {
  const GgufFile file = small("mixtral");
  for (const PlannedTensor& planned : plan_tensors(file, TensorType::q4_0)) {
    CAPTURE(planned.from->name);
    const bool is_router = planned.from->name.find("ffn_gate_inp") != std::string_view::npos;
    const bool is_vector = planned.from->shape.size() == 1;
    CHECK(planned.type == (is_router || is_vector ? TensorType::f32 : TensorType::q4_0));
  }
}

/// Four experts, two layers and eleven tokens.
static Config small_mixture() {
  Config config{.block = llama_style(32, 4, 2, 64), .L = 2, .V = 11, .T_max = 24};
  config.block.experts = 4, config.block.chosen = 2;
  return config;
}

TEST_CASE("a mixture that is written to a file and read back is the same") {
  BpeTables tokenizer;
  tokenizer.pre_tokenizer = "smollm";
  for (int i = 0; i < 11; ++i) {
    tokenizer.tokens.push_back("t" + std::to_string(i));
    tokenizer.kinds.push_back(TokenKind::normal);
  }
  for (const bool halves : {false, true}) {
    Config config = small_mixture();
    if (halves) config.block.pairing = Pairing::halves, config.block.head_norms = true;
    Random random(3);
    const ModelWeights weights = draw_model(config, random);
    const auto bytes = model_bytes(config, weights, tokenizer, "a mixture", "");
    const GgufFile file("x", bytes);
    CHECK(file.metadata().text("general.architecture") == (halves ? "qwen3moe" : "llama"));
    const Model back = read_model(file);
    CHECK(back.config().block.experts == 4);
    CHECK(back.config().block.chosen == 2);
    CHECK(back.config().block.F == 64);
    const Ids ids = {3, 1, 4, 1, 5};
    CHECK(all_close(logits_by_rows(back, ids), logits_by_rows(Model(config, weights), ids), 0));
  }
  Config config = small_mixture();
  config.block.normalized = false;
  Random random(3);
  REFUSES(model_bytes(config, draw_model(config, random), tokenizer, "", ""),
          "the model to save: wanted one without experts whose weights do not add up to 1");
}

TEST_CASE("a dense model that becomes a mixture of copies computes what it computed") {
  const GgufFile in = GgufFile::open(T2T_FIXTURES "/../10_pretrained/tiny.gguf");
  const std::filesystem::path out = std::filesystem::temp_directory_path() /
                                    ("t2t-upcycled-" + std::to_string(getpid()) + ".gguf");
  const std::uint64_t size = upcycle(in, {.experts = 3, .chosen = 2}, out);
  CHECK(std::filesystem::file_size(out) == size);
  const Model dense = read_model(in), mixture = read_model(GgufFile::open(out.string()));
  CHECK(mixture.config().block.experts == 3);
  CHECK(mixture.config().block.chosen == 2);
  // One token reads all but one of three experts of each block.
  const double of_experts =
      double(bytes(mixture.weights())) - bytes_a_token(mixture.weights(), mixture.config());
  CHECK(of_experts == 2.0 * 3 * 4 * double(dense.config().block.C * dense.config().block.F));
  const Ids ids = {3, 1, 4, 1, 5, 9, 2, 6};
  CHECK(all_close(logits_by_rows(mixture, ids), logits_by_rows(dense, ids), 0x1p-24 * 2 * 160));
  REFUSES_AS(upcycle(GgufFile::open(out.string()), {}, out.string() + "2"),
             (out.string() + ": wanted a model without experts, got one with them").c_str(),
             std::runtime_error);
  std::filesystem::remove(out);
  REFUSES(upcycle(in, {.experts = 3, .chosen = 4}, out),
          "k, the experts of a token: wanted 1 to E = 3, got 4");
  REFUSES_AS(upcycle(small("granite"), {}, out),
             (T2T_FIXTURES "/granite.gguf: general.architecture: wanted llama, got granite"),
             std::runtime_error);
  CHECK_FALSE(std::filesystem::exists(out));
}

/// The bytes of a file in which a text of the same length stands in the place of another.
static std::vector<std::uint8_t> replaced(const std::string& name, const std::string& was,
                                          const std::string& now) {
  std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find(was);
  REQUIRE(at != bytes.npos);
  REQUIRE(was.size() == now.size());
  bytes.replace(at, was.size(), now);
  return {bytes.begin(), bytes.end()};
}
/// The same with another value at a key, of 32 bits.
static std::vector<std::uint8_t> with_bits(const std::string& name, const std::string& key,
                                           std::uint32_t bits) {
  const std::string bytes = read_file(T2T_FIXTURES "/" + name + ".gguf");
  const size_t at = bytes.find(key);
  REQUIRE(at != bytes.npos);
  const std::string was = bytes.substr(at, key.size() + 8);  // the key, its type, its value
  return replaced(name, was,
                  was.substr(0, key.size() + 4) + std::string(reinterpret_cast<char*>(&bits), 4));
}

TEST_CASE("files with impossible experts are refused in one line") {
  const auto refused = [](const std::vector<std::uint8_t>& bytes, const char* message) {
    REFUSES_AS(read_model(GgufFile("x", bytes)), message, std::runtime_error);
  };
  refused(with_bits("mixtral", "llama.expert_used_count", 5),
          "x: config: chosen, the experts of a token: wanted 1 to E = 4, got 5");
  refused(with_bits("mixtral", "llama.expert_used_count", 0),
          "x: llama.expert_used_count: wanted 1 to 2147483647, got 0");
  refused(with_bits("mixtral", "llama.expert_count", 5),
          "x: blk.0.ffn_gate_inp.weight: wanted shape [5, 64], got [4, 64]");
  refused(with_bits("mixtral", "llama.expert_count", 0x7fffffff),
          "x: blk.0.ffn_gate_inp.weight: wanted shape [2147483647, 64], got [4, 64]");
  refused(with_bits("qwen3moe", "qwen3moe.expert_count", 0),
          "x: qwen3moe.expert_count: wanted 1 to 2147483647, got 0");
  refused(replaced("mixtral", "blk.1.ffn_gate_inp.weight", "blk.1.ffn_gate_inq.weight"),
          "x: missing tensors: blk.1.ffn_gate_inp.weight; surplus tensors: "
          "blk.1.ffn_gate_inq.weight");
  refused(replaced("qwen2moe", "qwen2moe.expert_shared_feed", "qwen2moe.expert_sharex_feed"),
          "x: has no qwen2moe.expert_shared_feed_forward_length, wanted an integer");
  refused(with_bits("granite", "granite.residual_scale", 0),
          "x: granite.residual_scale: wanted a number above 0, got 0");
}

}  // namespace t2t::files_test
