// What must be true of DeepSeek's files: their logits are those of transformers, and both forms of
// w_kvb give one matrix.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "23_latent/model/load_latent.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_files_test {

using std::size_t;
using Ids = std::vector<int>;

static GgufFile small(const std::string& name) {
  return GgufFile::open(T2T_FIXTURES "/" + name + ".gguf");
}
/// The ids of the reference.
static Ids ids_of(size_t V) {
  Ids ids;
  for (size_t t = 0; t < 19; ++t) ids.push_back(int((t * 11 + 3) % V));
  return ids;
}
/// The first `prompt` ids at once, the others one by one.
static Tensor<2> logits_of(const LatentModel& model, size_t prompt) {
  const Ids ids = ids_of(model.config.V);
  LatentState state(model.config, ids.size());
  Tensor<2> logits = empty(ids.size(), model.config.V);
  for (size_t t = 0, T = prompt; t < ids.size(); t += T, T = 1)
    xt::view(logits, xt::range(t, t + T), xt::all()) =
        latent_logits(std::span(ids).subspan(t, T), model, state);
  return logits;
}

TEST_CASE("logits of a prompt and of cached steps are those of transformers in float64") {
  for (const std::string name : {"v2_lite", "v2", "v3"}) {
    CAPTURE(name);
    const GgufFile file = small(name);
    const LatentModel model = read_latent_model(file);
    const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/" + name + "_logits.npy");  // [19, V]
    REQUIRE(want.shape(1) == model.config.V);
    // Logits are below 5. A sum of n products, 96 at most, keeps eps·√n of its size, and a block
    // has eight steps one after the other: at most 1e-4, for three blocks.
    const double bound = 0x1p-24 * std::sqrt(96.0) * double(8 * model.config.L + 2) * 5;
    CHECK(bound < 1e-4);
    CHECK(all_close(logits_of(model, 19), want, bound));
    CHECK(all_close(logits_of(model, 11), want, bound));
    CHECK(all_close(logits_of(model, 1), want, bound));

    // In as many bits as the file has, only what is multiplied with the weights is rounded.
    const Tensor<2> apart = logits_of(read_latent_model(file, packed_matrix), 11) - want;
    CHECK(xt::sum(apart * apart)() < 0.05 * 0.05 * xt::sum(want * want)());
  }
}

TEST_CASE("what the files say") {
  const LatentConfig lite = read_latent_config(small("v2_lite")),
                     v2 = read_latent_config(small("v2")), v3 = read_latent_config(small("v3"));
  const LatentSettings& a = lite.attention;  // an older file: key_length is a head's
  CHECK(std::vector{a.C, a.H, a.N, a.R, a.Dv, a.K, a.Q} ==
        std::vector<size_t>{64, 4, 20, 8, 12, 32, 0});
  CHECK(a.pairing == Pairing::neighbours);
  CHECK(a.eps == 0x1p-10f);
  CHECK(a.m == doctest::Approx(1 + 0.1 * 0.707 * std::log(4)));
  CHECK(lite.routing.router.scoring == Scoring::softmax);
  CHECK_FALSE(lite.routing.router.normalized);
  CHECK(lite.routing.groups == 1);
  CHECK(lite.F_shared == 2 * 32);
  CHECK_FALSE(lite.tied);
  CHECK(read_tokenizer(small("v2_lite")).encode("the\n") == Ids{256, 'e', '\n'});

  const LatentSettings& b = v2.attention;
  CHECK(std::vector{b.C, b.H, b.N, b.R, b.Dv, b.K, b.Q} ==
        std::vector<size_t>{64, 2, 14, 10, 20, 32, 32});
  CHECK(b.m == 1);
  CHECK(v2.frequencies == rope_frequencies(10, 500));
  CHECK(v2.routing.groups == 3);
  CHECK(v2.routing.open == 2);
  CHECK(v2.routing.scale == 3);
  CHECK(v2.tied);

  CHECK(v3.attention.m == doctest::Approx(1 + 0.1 * std::log(4)));
  CHECK(v3.frequencies[0] == 1);
  CHECK(v3.frequencies[5] == doctest::Approx(std::pow(200, -10 / 12.0) / 4));
  CHECK(v3.routing.router.scoring == Scoring::sigmoid);
  CHECK(v3.routing.router.normalized);
  CHECK(v3.dense == 2);
  CHECK(v3.L == 3);
}

/// A file with w_kvb of two heads, N = 1, Dv = 2 and K = 3, in the forms that are asked for.
static GgufBytes kv_b_file(bool split, bool whole) {
  GgufBytes file;
  file.header(size_t(split) * 2 + size_t(whole), 0);
  std::uint64_t offset = 0;
  const auto add = [&](const char* name, const std::vector<std::uint64_t>& sizes) {
    file.tensor(name, sizes, 0, offset);
    std::uint64_t bytes = 4;
    for (const std::uint64_t size : sizes) bytes *= size;
    offset += (bytes + 31) / 32 * 32;
  };
  if (split) add("blk.7.attn_k_b.weight", {1, 3, 2}), add("blk.7.attn_v_b.weight", {3, 2, 2});
  if (whole) add("blk.7.attn_kv_b.weight", {3, 6});
  file.pad();
  if (split) {
    for (const float u : {1, 2, 3, 11, 12, 13}) file.put(u);
    file.pad();
    for (const float y : {4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 18, 19}) file.put(y);
    file.pad();
  }
  if (whole) {
    for (const float w : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19})
      file.put(w);
    file.pad();
  }
  return file;
}

TEST_CASE("by hand: two tensors of U and Y become one matrix, head by head") {
  const LatentSettings s{.C = 1, .H = 2, .N = 1, .R = 2, .Dv = 2, .K = 3};
  const Tensor<2> want = {{1, 2, 3},    {4, 5, 6},    {7, 8, 9},
                          {11, 12, 13}, {14, 15, 16}, {17, 18, 19}};
  const GgufBytes split = kv_b_file(true, false), whole = kv_b_file(false, true),
                  both = kv_b_file(true, true);
  for (const GgufBytes* bytes : {&split, &whole, &both})
    CHECK(all_close(read_kv_b(GgufFile("x", bytes->bytes), "blk.7.", s), want, 0));
  REFUSES_AS(read_kv_b(GgufFile("x", whole.bytes), "blk.8.", s),
             "x: blk.8.attn_kv_b.weight: there is no such tensor", std::runtime_error);
}

TEST_CASE("by hand: U is stored transposed") {
  GgufBytes file;  // one head, N = 2, K = 3: U is ((1, 2, 3), (4, 5, 6))
  file.header(2, 0).tensor("attn_k_b.weight", {2, 3, 1}, 0, 0);
  file.tensor("attn_v_b.weight", {3, 1, 1}, 0, 32).pad();
  for (const float u : {1, 4, 2, 5, 3, 6}) file.put(u);
  file.pad();
  for (const float y : {7, 8, 9}) file.put(y);
  file.pad();
  const LatentSettings s{.C = 1, .H = 1, .N = 2, .R = 2, .Dv = 1, .K = 3};
  CHECK(
      all_close(read_kv_b(GgufFile("x", file.bytes), "", s), {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, 0));
}

}  // namespace t2t::latent_files_test
