// What must be true of an adapter: its file comes back as it was, its changes are added to the
// right matrices, and what is damaged or belongs to another model is refused.
#include "10_pretrained/model/adapter.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/file/write_gguf.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "files/files.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::adapter_test {

using Bad = std::runtime_error;

static Model tiny() {
  Random random(1);
  return Model(tiny_config(), draw_model(tiny_config(), random));
}

/// Changes of three matrices of the tiny model, one of each shape that a block has.
static Adapter small_adapter() {
  const auto change = [](const char* name, std::size_t out, std::size_t in, std::size_t r) {
    return LowRank{name, numbers(std::uint32_t(out), 1, 0, r, in), numbers(7, 1, 0, out, r)};
  };
  return {"llama",
          6,
          {change("blk.0.attn_q.weight", 64, 64, 3), change("blk.1.attn_v.weight", 32, 64, 2),
           change("blk.1.ffn_down.weight", 64, 96, 1)}};
}

namespace {
/// A path in a folder that is gone when the test ends.
struct Path {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("t2t_adapter_" + std::to_string(::getpid()));
  std::filesystem::path file = folder / "a.gguf";
  Path() { std::filesystem::create_directories(folder); }
  ~Path() { std::filesystem::remove_all(folder); }
};
}  // namespace

static bool same_bits(const Tensor<2>& a, const Tensor<2>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("by hand: a change of rank 1, and one of rank 2") {
  const Tensor<2> base = {{1, 0}, {0, 1}};
  Tensor<2> to = empty(2, 2);
  add_change({"w", {{1, 2}}, {{3}, {4}}}, 2, base, to);  // 2·(3, 4)ᵀ·(1, 2) is added
  CHECK(all_close(to, Tensor<2>{{7, 12}, {8, 17}}, 0));
  add_change({"w", {{1, 2}, {1, 0}}, {{1, 0}, {0, 2}}}, 4, base, to);  // alpha/r = 2
  CHECK(all_close(to, Tensor<2>{{3, 4}, {4, 1}}, 0));
  add_change({"w", {{1, 1}}, {{1}, {1}}}, 1, to, to);  // base and sum in one place
  CHECK(all_close(to, Tensor<2>{{4, 5}, {5, 2}}, 0));
}

TEST_CASE("an adapter comes back from its file with its bits") {
  const Path path;
  const Adapter adapter = small_adapter();
  save_adapter(path.file, adapter);
  const GgufFile file = GgufFile::open(path.file);
  CHECK(file.metadata().text("general.type") == "adapter");
  CHECK(file.metadata().text("adapter.type") == "lora");
  CHECK(file.has_tensor("blk.1.attn_v.weight.lora_a"));
  Adapter got;
  CHECK_NOTHROW(got = read_adapter(file));
  CHECK(got.architecture == "llama");
  CHECK(got.alpha == 6);
  CHECK(got.changes.size() == 3);
  if (got.changes.size() != 3) return;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(got.changes[i].weight == adapter.changes[i].weight);
    CHECK(same_bits(got.changes[i].a, adapter.changes[i].a));
    CHECK(same_bits(got.changes[i].b, adapter.changes[i].b));
  }
}

TEST_CASE("the changes are added to their matrices, and all others stay as they are") {
  const Adapter adapter = small_adapter();
  const Model old = tiny();
  const Model changed = with_adapter(tiny(), adapter);
  const ModelWeights &w = old.weights(), &got = changed.weights();
  const auto wanted = [&](const Weight& base, std::size_t i) {
    const LowRank& of = adapter.changes[i];
    Tensor<2> sum = base.floats();
    const float s = 6 / float(of.a.shape(0));
    for (std::size_t o = 0; o < sum.shape(0); ++o)
      for (std::size_t c = 0; c < sum.shape(1); ++c)
        for (std::size_t r = 0; r < of.a.shape(0); ++r) sum(o, c) += s * of.b(o, r) * of.a(r, c);
    return sum;
  };
  // Numbers up to 6·0.5·0.5 and a few roundings.
  const double bound = 8 * 0x1p-24 * 3;
  CHECK(all_close(got.blocks[0].w_q.floats(), wanted(w.blocks[0].w_q, 0), bound));
  CHECK(all_close(got.blocks[1].w_v.floats(), wanted(w.blocks[1].w_v, 1), bound));
  CHECK(all_close(got.blocks[1].feed_forward.w_down.floats(),
                  wanted(w.blocks[1].feed_forward.w_down, 2), bound));
  CHECK(same_bits(got.blocks[0].w_v.floats(), w.blocks[0].w_v.floats()));
  CHECK(same_bits(got.blocks[1].w_q.floats(), w.blocks[1].w_q.floats()));
  CHECK(same_bits(got.embedding.floats(), w.embedding.floats()));
}

TEST_CASE("an adapter for another model is refused") {
  const auto refused = [](const std::function<void(LowRank&)>& change) {
    Adapter adapter = small_adapter();
    change(adapter.changes[1]);
    with_adapter(tiny(), adapter);
  };
  REFUSES(refused([](LowRank& c) { c.weight = "blk.2.attn_v.weight"; }),
          "the adapter: the model has no matrix blk.2.attn_v.weight");
  REFUSES(refused([](LowRank& c) { c.weight = "blk.1.attn_norm.weight"; }),
          "the adapter: the model has no matrix blk.1.attn_norm.weight");
  REFUSES(refused([](LowRank& c) { c.a = numbers(1, 1, 0, 2, 63); }),
          "blk.1.attn_v.weight: A: wanted shape [2, 64], got [2, 63]");
  REFUSES(refused([](LowRank& c) { c.b = numbers(1, 1, 0, 64, 2); }),
          "blk.1.attn_v.weight: B: wanted shape [32, 2], got [64, 2]");
  Adapter other = small_adapter();
  other.architecture = "qwen2";
  REFUSES(with_adapter(tiny(), other), "the adapter: wanted one for llama, got one for qwen2");
  REFUSES(refused([](LowRank& c) { c.a *= 1e30f, c.b *= 1e30f; }),
          "the adapter: its change of blk.1.attn_v.weight is too large for a float");
  ModelWeights packed = tiny().release();
  packed.blocks[0].w_q = packed_nothing(64, 64);
  REFUSES(with_adapter(Model(tiny_config(), std::move(packed)), small_adapter()),
          "the adapter: wanted a model of floats, got packed weights");
}

TEST_CASE("files that hold no adapter, or a damaged one, are refused") {
  const Tensor<2> a = numbers(1, 1, 0, 2, 4), b = numbers(2, 1, 0, 3, 2);
  const auto read = [&](const std::vector<std::pair<std::string, Tensor<2>>>& tensors,
                        const char* type = "adapter", const char* kind = "lora", float alpha = 1) {
    GgufBytes entries;
    entries.entry("general.type", type).entry("general.architecture", "llama");
    entries.entry("adapter.type", kind).entry("adapter.lora.alpha", alpha);
    std::vector<StoredTensor> stored;
    for (const auto& [name, x] : tensors)
      stored.push_back({name, {x.shape(0), x.shape(1)}, {{x.data(), x.size()}}});
    const std::vector<std::uint8_t> bytes = gguf_bytes(entries, stored);
    return read_adapter(GgufFile("x", bytes));
  };
  CHECK_NOTHROW(read({{"w.lora_a", a}, {"w.lora_b", b}}));
  const auto pair = [&] {
    return std::vector<std::pair<std::string, Tensor<2>>>{{"w.lora_a", a}, {"w.lora_b", b}};
  };
  REFUSES_AS(read(pair(), "model"), "x: general.type: wanted \"adapter\", got \"model\"", Bad);
  REFUSES_AS(read(pair(), "adapter", "dora"), "x: adapter.type: wanted \"lora\", got \"dora\"",
             Bad);
  REFUSES_AS(read(pair(), "\033[2J"), "x: general.type: wanted \"adapter\", got \"\\x1b[2J\"", Bad);
  REFUSES_AS(read({{"w\r", a}}), "x: w\\x0d: wanted a name that ends in .lora_a or .lora_b", Bad);
  REFUSES_AS(read(pair(), "adapter", "lora", NAN),
             "x: adapter.lora.alpha: wanted a finite number other than 0", Bad);
  REFUSES_AS(read({{"w.lora_a", a}}), "x: w.lora_b: there is no such tensor", Bad);
  REFUSES_AS(read({{"w.lora_b", b}}),
             "x: wanted an A and a B for each of at least one matrix, got 1 tensors", Bad);
  REFUSES_AS(read({{"w", a}}), "x: w: wanted a name that ends in .lora_a or .lora_b", Bad);
  REFUSES_AS(read({{"w.lora_a", a}, {"w.lora_b", numbers(1, 1, 0, 3, 4)}}),
             "x: w: wanted one rank of at least 1 in A and B, got 2 and 4", Bad);
  Tensor<2> bad = b;
  bad(2, 1) = std::numeric_limits<float>::quiet_NaN();
  REFUSES_AS(read({{"w.lora_a", a}, {"w.lora_b", bad}}), "x: w.lora_b: wanted finite numbers", Bad);
  REFUSES(save_gguf("/nowhere", {}, {{"w", {2, 3}, {{a.data(), 5}}}}),
          "w: wanted 6 elements, got 5");
}

}  // namespace t2t::adapter_test
