// What must be true of layers that share a cache, of layers without RoPE, and of what caches weigh.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "08_block/fast/cached_attention.hpp"
#include "09_language_model/generate.hpp"
#include "13_training/differences.hpp"
#include "25_sinks/layers/layer_caches.hpp"
#include "25_sinks/layers/shared_caches.hpp"
#include "support/all_close.hpp"
#include "support/hashed_weights.hpp"
#include "support/refuses.hpp"

namespace t2t::layers_test {

using std::size_t;
using Owners = std::vector<size_t>;

static Config small(size_t L) {
  return {.block = {.C = 24, .H = 4, .G = 2, .D = 6, .F = 32}, .L = L, .V = 29, .T_max = 40};
}

static ModelWeights hashed(const Config& config) {
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
    const auto base = std::uint32_t(info.layer ? 100 * (*info.layer + 1) : 0);
    if (info.size() > 0) fill_numbers(info, base, tensor);
  });
  return weights;
}

/// A state whose layers read the caches of these owners.
static ModelState shared_state(const Model& model, const Owners& owners, size_t S,
                               size_t sequences = 1) {
  const std::vector<BlockSettings> layers = settings_of_all(model.config());
  const auto caches = std::make_shared<SharedCaches>(layers, owners, S, S, sequences);
  StateOptions options;
  options.sequences = sequences;
  options.memory.attention = [caches](const Projected& in, Matrix heads, const Trace& trace) {
    (*caches)(in, heads, trace);
  };
  return ModelState(model.config(), S, options);
}

/// Attention that hands each reader a copy of its owner's keys and values, which it then caches
/// like its own. The owner's are taken before they are rotated.
class Copies {
 public:
  Copies(const std::vector<BlockSettings>& layers, Owners owners, size_t S)
      : cached_(layers, S, S), owners_(std::move(owners)), k_(layers.size()), v_(layers.size()) {}

  void operator()(const Projected& in, Matrix heads, const Trace& trace) {
    const size_t layer = in.block.layer(), owner = owners_[layer];
    if (owner == layer) k_[layer] = copy_of(in.k), v_[layer] = copy_of(in.v);
    for (size_t t = 0; t < in.k.rows; ++t) {
      std::ranges::copy(row(std::as_const(k_[owner]), t), in.k.row(t).begin());
      std::ranges::copy(row(std::as_const(v_[owner]), t), in.v.row(t).begin());
    }
    cached_(in, heads, trace);
  }

 private:
  CachedAttention cached_;
  Owners owners_;
  std::vector<Tensor<2>> k_, v_;  // [L] of [T, G·D]
};

static std::vector<int> some_ids(size_t T) {
  std::vector<int> ids(T);
  for (size_t t = 0; t < T; ++t) ids[t] = int((11 * t + 3) % 29);
  return ids;
}

static Tensor<2> all_logits(const Model& model, ModelState& state, std::span<const int> ids) {
  Tensor<2> logits = empty(ids.size(), model.config().V);
  forward_all(model, state, ids, logits);
  return logits;
}

/// The same, in calls of these numbers of tokens.
static Tensor<2> in_steps(const Model& model, ModelState& state, std::span<const int> ids,
                          const std::vector<size_t>& steps) {
  Tensor<2> logits = empty(ids.size(), model.config().V);
  size_t from = 0;
  for (const size_t step : steps) {
    forward_all(model, state, ids.subspan(from, step), Matrix(logits).rows_from(from, step));
    from += step;
  }
  return logits;
}

/// A sum's order may differ between a prompt and its steps: 4 layers of sums of up to 32 products.
static constexpr double steps_bound = 2e-5;

TEST_CASE("layers that share a cache equal a model that stores copies, in one pass and in steps") {
  for (const Owners& owners : {Owners{0, 0, 0, 0}, Owners{0, 0, 2, 2}, Owners{0, 1, 1, 0}}) {
    Config config = small(4);
    const Model model(config, hashed(config));
    const std::vector<int> ids = some_ids(17);
    Copies copies(settings_of_all(config), owners, 20);
    StateOptions options;
    options.memory.attention = std::ref(copies);
    ModelState stored(config, 20, options);
    const Tensor<2> want = all_logits(model, stored, ids);

    ModelState once = shared_state(model, owners, 20);
    CHECK(all_close(all_logits(model, once, ids), want, 0));
    ModelState steps = shared_state(model, owners, 20);
    CHECK(all_close(in_steps(model, steps, ids, {5, 1, 7, 1, 1, 2}), want, steps_bound));
    // Sharing is a choice that changes the model: with caches of their own the layers differ.
    ModelState own(config, 20);
    CHECK_FALSE(all_close(all_logits(model, own, ids), want, 1e-2));
  }
}

TEST_CASE("when each layer owns its cache, all is as in chapter 08") {
  Config config = small(3);
  config.layers = settings_of_all(config);
  config.layers[1].window = 4;
  const Model model(config, hashed(config));
  const std::vector<int> ids = some_ids(13);
  ModelState plain(config, 16), shared = shared_state(model, {}, 16);
  CHECK(all_close(all_logits(model, shared, ids), all_logits(model, plain, ids), 0));
}

TEST_CASE("a truncated sequence can be continued, and two sequences do not see each other") {
  const Config config = small(4);
  const Model model(config, hashed(config));
  const Owners owners = {0, 0, 2, 2};
  const std::vector<int> ids = some_ids(12), other = {1, 2, 3, 4, 5};
  ModelState alone = shared_state(model, owners, 16);
  const Tensor<2> want = all_logits(model, alone, ids);
  truncate(alone, 7);
  Tensor<2> rest = empty(5, config.V), end = xt::view(want, xt::range(7, 12));
  forward_all(model, alone, std::span(ids).subspan(7), rest);
  CHECK(all_close(rest, end, steps_bound));

  ModelState both = shared_state(model, owners, 16, 2);
  Tensor<2> logits = empty(17, config.V);
  const MoreTokens more[] = {{1, other, 5}, {0, ids, 12}};
  forward(model, both, more, logits);
  CHECK(all_close(Tensor<2>(xt::view(logits, xt::range(5, 17))), want, steps_bound));
}

TEST_CASE("caches of owners alone take memory: with half the layers, half of it") {
  const Config config = small(4);
  const std::vector<BlockSettings> layers = settings_of_all(config);
  const SharedCaches own(layers, {}, 10, 10), half(layers, {0, 0, 2, 2}, 10, 10),
      one(layers, {0, 0, 0, 0}, 10, 10);
  CHECK(own.bytes() == kv_cache_bytes(4, 2, 10, 6, sizeof(float)));
  CHECK(half.bytes() == own.bytes() / 2);
  CHECK(one.bytes() == own.bytes() / 4);
  CHECK(layer_cache_bytes(layers, Owners{0, 0, 2, 2}, 10, sizeof(float)) == double(half.bytes()));
}

TEST_CASE("by hand: two owners of 2 heads of width 6, one with a window of 4, for 10 tokens") {
  std::vector<BlockSettings> layers = settings_of_all(small(4));
  layers[0].window = layers[1].window = 4;
  // 2·2·6 numbers a token and layer: 24·4 in the window and 24·10 without, 2 bytes each.
  CHECK(layer_cache_bytes(layers, Owners{0, 0, 2, 2}, 10, 2) == 2 * (96 + 240));
  CHECK(layer_cache_bytes(layers, Owners{0, 0, 2, 2}, 3, 2) == 2 * (72 + 72));
}

TEST_CASE("by hand: readers at the end read the last owner of their kind") {
  std::vector<BlockSettings> layers = alternating_layers(6, 1, 2, 3, 8);
  CHECK(layers[0].window == 8);
  CHECK(layers[2].window == 0);
  CHECK(layers[5].window == 0);
  CHECK(last_of_kind(layers, 3) == Owners{0, 1, 2, 1, 1, 2});
  CHECK(last_of_kind(layers, 0) == Owners{0, 1, 2, 3, 4, 5});
  CHECK(last_of_kind(layers, 2) == Owners{0, 1, 2, 3, 3, 2});
  REFUSES(last_of_kind(layers, 4),
          "layer 2: wanted an earlier layer with window = 0 and a cache, got none");
  REFUSES(last_of_kind(layers, 6),
          "readers, the layers without a cache: wanted fewer than L = 6, got 6");
}

TEST_CASE("by hand: caches of published models, 2 bytes an element") {
  // Gemma 3n E4B: 20 of 35 layers own a cache, 16 of them with a window of 512; 2 heads of 256.
  const std::vector<BlockSettings> gemma = alternating_layers(35, 2, 256, 5, 512);
  CHECK(layer_cache_bytes(gemma, last_of_kind(gemma, 15), 32768, 2) ==
        2 * 2 * 2 * 256 * (16 * 512.0 + 4 * 32768.0));
  // gpt-oss-20b: 12 of 24 layers see a window of 128; 8 heads of 64.
  const std::vector<BlockSettings> gpt_oss = alternating_layers(24, 8, 64, 2, 128);
  CHECK(layer_cache_bytes(gpt_oss, last_of_kind(gpt_oss, 0), 131072, 2) ==
        2 * 2 * 8 * 64 * (12 * 128.0 + 12 * 131072.0));
}

TEST_CASE("by hand: with a step of 4, the layers 3 and 7 have no RoPE") {
  const std::vector<bool> want = {true, true, true, false, true, true, true, false, true};
  CHECK(rope_but_every(4, 9) == want);
  const Config config = with_rope_in(small(5), rope_but_every(4, 5));
  for (size_t l = 0; l < 5; ++l) CHECK(settings_of(config, l).uses_rope == (l != 3));
}

TEST_CASE("a layer without RoPE does not see how far tokens are apart, a layer with RoPE does") {
  // One layer: the last token's logits, before which the others stand in another order.
  const std::vector<int> ids = {3, 14, 25, 7, 9}, swapped = {25, 3, 7, 14, 9};
  const auto last = [&](bool rope, const std::vector<int>& of) {
    const Config config = with_rope_in(small(1), {rope});
    const Model model(config, hashed(config));
    ModelState state = shared_state(model, {}, 8);
    Tensor<1> logits = empty(config.V);
    forward(model, state, of, row(logits));
    return logits;
  };
  CHECK(all_close(last(false, ids), last(false, swapped), steps_bound));
  CHECK_FALSE(all_close(last(true, ids), last(true, swapped), 1e-2));
}

TEST_CASE("mixed layers in steps give what one pass gives, and RoPE's pairing hides without RoPE") {
  const Config config = with_rope_in(small(4), rope_but_every(2, 4));
  const Model model(config, hashed(config));
  const std::vector<int> ids = some_ids(15);
  ModelState once = shared_state(model, {}, 16), steps = shared_state(model, {}, 16);
  const Tensor<2> want = all_logits(model, once, ids);
  CHECK(all_close(in_steps(model, steps, ids, {4, 1, 1, 9}), want, steps_bound));

  for (const bool rope : {false, true}) {
    Config halves = with_rope_in(small(2), {rope, rope}), neighbours = halves;
    for (BlockSettings& layer : halves.layers) layer.pairing = Pairing::halves;
    const Model a(halves, hashed(halves)), b(neighbours, hashed(neighbours));
    ModelState state_a = shared_state(a, {}, 16), state_b = shared_state(b, {}, 16);
    const bool equal = bool(all_close(all_logits(a, state_a, ids), all_logits(b, state_b, ids), 0));
    CHECK(equal == !rope);
  }
}

TEST_CASE("owners that cannot be, and readers before their owners, are refused") {
  Config config = small(3);
  std::vector<BlockSettings> layers = settings_of_all(config);
  const auto made = [&](const Owners& owners) {
    return SharedCaches(layers, owners, 8, 8).bytes();
  };
  REFUSES(made({0, 0}), "owners: wanted L = 3, got 2");
  REFUSES(made({0, 2, 2}),
          "layer 1: wanted itself or an earlier layer with a cache as owner, got 2");
  REFUSES(made({0, 0, 1}),
          "layer 2: wanted itself or an earlier layer with a cache as owner, got 1");
  layers[2].uses_rope = false;
  REFUSES(made({0, 1, 0}), "layer 2: wanted an owner with the same G, D and RoPE, got layer 0");
  layers[2].uses_rope = true, layers[2].G = 1;
  REFUSES(made({0, 1, 1}), "layer 2: wanted an owner with the same G, D and RoPE, got layer 1");
  REFUSES(with_rope_in(config, {true, false}),
          "uses_rope, a choice for each layer: wanted L = 3, got 2");
  REFUSES(rope_but_every(0, 4),
          "step, from one layer without RoPE to the next: wanted at least 1, got 0");

  const Model model(config, hashed(config));
  SharedCaches caches(settings_of_all(config), {0, 0, 2}, 8, 8);
  Tensor<2> q = zeros(2, 24), k = zeros(2, 12), v = zeros(2, 12), heads = zeros(2, 24);
  const Run run = {0, 0, 2};
  REFUSES(caches({model.block(1), run, q, k, v}, heads, {}),
          "layer 0, which owns the cache: wanted 2 positions in it, got 0");
  const Run gap = {0, 3, 2};
  CHECK_THROWS_AS(caches({model.block(0), gap, q, k, v}, heads, {}), std::invalid_argument);
}

}  // namespace t2t::layers_test
