// Chapter 20: what each rank has of a model under tensor parallelism.
#include "20_split_models/tensor_parallel/shards.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::shards_tests {

using Floats = std::vector<float>;
using Keys = std::vector<std::size_t>;

static bool is(const Range& range, std::size_t begin, std::size_t end) {
  return range.begin == begin && range.end == end;
}

static BlockSettings heads_of(std::size_t H, std::size_t G) {
  return {.C = 36, .H = H, .G = G, .D = 4, .F = 48};
}

TEST_CASE("by hand: nine query heads and three key heads, on two ranks and on four") {
  const BlockSettings whole = heads_of(9, 3);
  // Whole groups: one for rank 0, two for rank 1.
  const BlockShard first = block_shard(whole, {0, 2}), second = block_shard(whole, {1, 2});
  CHECK(is(first.heads, 0, 3));
  CHECK(first.keys == Keys{0});
  CHECK(is(first.hidden, 0, 24));
  CHECK(is(second.heads, 3, 9));
  CHECK(second.keys == Keys{1, 2});
  // More ranks than key heads: heads, and the key heads that they read.
  CHECK(is(block_shard(whole, {1, 4}).heads, 2, 4));
  CHECK(block_shard(whole, {0, 4}).keys == Keys{0});
  CHECK(block_shard(whole, {1, 4}).keys == Keys{0, 1});
  CHECK(block_shard(whole, {2, 4}).keys == Keys{1});
  CHECK(block_shard(whole, {3, 4}).keys == Keys{2});
}

TEST_CASE("by hand: heads 4, 5 and 6 of twelve read key heads 0, 0 and 1: one key head for each") {
  const BlockShard own = block_shard(heads_of(12, 2), {2, 5});
  CHECK(is(own.heads, 4, 7));
  CHECK(own.keys == Keys{0, 0, 1});
  const BlockShard next = block_shard(heads_of(12, 2), {3, 5});
  CHECK(is(next.heads, 7, 9));
  CHECK(next.keys == Keys{1});
}

TEST_CASE("by hand: hidden channels go in units, and the others' tokens are zeros") {
  BlockSettings whole = heads_of(9, 3);
  whole.F = 7 * 32;
  CHECK(is(block_shard(whole, {0, 3}, 32).hidden, 0, 64));
  CHECK(is(block_shard(whole, {1, 3}, 32).hidden, 64, 128));
  CHECK(is(block_shard(whole, {2, 3}, 32).hidden, 128, 224));
}

TEST_CASE("every head, channel and token is one rank's, in order, and reads its own key head") {
  for (const auto& [H, G] : {std::pair{9, 3}, {12, 2}, {8, 8}, {8, 1}, {7, 7}})
    for (std::size_t ranks = 1; ranks <= std::size_t(H); ++ranks) {
      const BlockSettings whole = heads_of(std::size_t(H), std::size_t(G));
      CAPTURE(ranks);
      std::size_t heads = 0, hidden = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        const BlockShard own = block_shard(whole, {r, ranks});
        CHECK(own.heads.begin == heads);
        CHECK(own.hidden.begin == hidden);
        heads = own.heads.end, hidden = own.hidden.end;
        REQUIRE(own.heads.size() >= 1);
        REQUIRE(own.heads.size() % own.keys.size() == 0);
        const std::size_t serves = own.heads.size() / own.keys.size();
        for (std::size_t i = 0; i < own.heads.size(); ++i)
          CHECK(own.keys[i / serves] == (own.heads.begin + i) / (whole.H / whole.G));
      }
      CHECK(heads == whole.H);
      CHECK(hidden == whole.F);
    }
}

/// A network of two inputs, four hidden channels and two outputs, whose products are whole numbers.
static ModelWeights network_by_hand(const Config& config) {
  Random random(1);
  ModelWeights weights = draw_model(config, random);
  FeedForwardWeights& network = weights.blocks[0].feed_forward;
  network.w_up = Tensor<2>{{1, 0}, {0, 1}, {1, 1}, {1, -1}};
  network.w_down = Tensor<2>{{1, 1, 1, 1}, {2, 0, 1, 0}};
  return weights;
}

TEST_CASE("by hand: two ranks with two hidden channels each add (3, 2) and (3, 3) up to (6, 5)") {
  Config config{.block = {.C = 2, .H = 2, .G = 2, .D = 1, .F = 4}, .L = 1, .V = 4, .T_max = 4};
  config.block.activation = Activation::relu;
  config.block.uses_rope = false;
  const ModelWeights weights = network_by_hand(config);
  Tensor<2> x{{1, 2}}, sum = xt::zeros<float>({1, 2});
  const Tensor<2> terms[] = {{{3, 2}}, {{3, 3}}};
  for (const std::size_t rank : {0, 1}) {
    const ModelWeights own = shard_of(weights, config, {rank, 2});
    FeedForwardScratch scratch(1, 2, Activation::relu);
    Tensor<2> y = empty(1, 2);
    feed_forward_rows(x, own.blocks[0].feed_forward, Activation::relu, scratch, y);
    CHECK(all_close(y, terms[rank], 0));
    sum += y;
  }
  CHECK(all_close(sum, Tensor<2>{{6, 5}}, 0));
}

/// All numbers that a rank's model has, in the order of its tensors.
static Floats numbers_of(const ModelWeights& weights, const Config& own) {
  Floats all;
  Tensor<1> one;
  const auto add = [&]<class Stored>(const TensorInfo&, const Stored& tensor) {
    if constexpr (std::is_same_v<Stored, Weight>) {
      one = empty(tensor.cols());
      for (std::size_t r = 0; r < tensor.rows(); ++r) {
        tensor.row(r, row(one));
        all.insert(all.end(), one.begin(), one.end());
      }
    } else {
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
  };
  for_each_tensor(weights, own, add);
  return all;
}

static Config config_of_file(std::size_t H, std::size_t G, Biases biases) {
  Config config{.block = heads_of(H, G), .L = 2, .V = 41, .T_max = 16};
  config.block.biases = biases;
  if (biases == Biases::qkv) config.block.pairing = Pairing::halves;
  return config;
}

TEST_CASE(
    "a rank reads from a file what it would cut from the model, and asks for no other bytes") {
  for (const auto& [H, G] : {std::pair{9, 3}, {12, 2}})
    for (const Biases biases : {Biases::none, Biases::qkv}) {
      const Config whole = config_of_file(std::size_t(H), std::size_t(G), biases);
      Random random(3);
      ModelWeights weights = draw_model(whole, random);
      for (BlockWeights& block : weights.blocks)
        for (Tensor<1>* bias : {&block.b_q, &block.b_k, &block.b_v})
          if (bias->size() > 0) *bias = random.normal<1>({bias->size()});
      const std::vector<std::uint8_t> stored = gguf_file(whole, weights);
      const GgufFile file("x", stored);
      for (const std::size_t ranks : {1, 2, 3, 5})
        for (std::size_t r = 0; r < ranks; ++r) {
          const ReadShard read = read_shard(file, whole, {r, ranks});
          const ModelWeights cut = shard_of(weights, whole, {r, ranks});
          CHECK(numbers_of(read.weights, read.config) == numbers_of(cut, read.config));
          // Vectors are read whole, and biases cut afterwards.
          std::size_t vectors_more = 0;
          for_each_tensor(weights, whole, [&](const TensorInfo& info, const auto&) {
            if (info.role == Role::bias && info.size() > 0)
              vectors_more += info.size() - piece_of(info, whole, {r, ranks}).size();
          });
          CHECK(read.bytes ==
                sizeof(float) * (shard_size(whole, {r, ranks}).parameters + vectors_more));
        }
    }
}

TEST_CASE("all ranks together ask for the file's bytes, and for what each of them has") {
  const Config whole = config_of_file(9, 3, Biases::none);
  Random random(3);
  const ModelWeights weights = draw_model(whole, random);
  const std::vector<std::uint8_t> stored = gguf_file(whole, weights);
  const GgufFile file("x", stored);
  std::size_t in_file = 0;
  for (const GgufTensor& tensor : file.tensors()) in_file += tensor.size;
  const std::size_t norms = 5 * 36 * sizeof(float), a_key_head = 2 * 4 * 36 * sizeof(float);
  // Four ranks: one has heads 2 and 3, and thus key heads 0 and 1, which others have too.
  for (const auto& [ranks, repeated] : {std::pair{1, 0}, {2, 0}, {3, 0}, {4, 2}, {9, 6}}) {
    std::size_t asked = 0;
    for (int r = 0; r < ranks; ++r)
      asked += read_shard(file, whole, {std::size_t(r), std::size_t(ranks)}).bytes;
    CHECK(asked ==
          in_file + std::size_t(ranks - 1) * norms + whole.L * std::size_t(repeated) * a_key_head);
  }
}

TEST_CASE("norms and learned positions: whole on each rank, or added once") {
  Config whole = resized(preset("gpt2"), {.C = 24, .L = 2, .H = 4, .G = 4, .V = 53, .T_max = 17});
  Random random(7);
  ModelWeights weights = draw_model(whole, random);
  for (BlockWeights& block : weights.blocks) {
    block.attention_norm.gain = random.normal<1>({24});
    block.b_o = random.normal<1>({24});
  }
  const ModelWeights first = shard_of(weights, whole, {0, 3}),
                     last = shard_of(weights, whole, {2, 3});
  const BlockWeights &all = weights.blocks[1], &own = last.blocks[1];
  CHECK(all_close(own.attention_norm.gain, all.attention_norm.gain, 0));
  CHECK(all_close(first.blocks[1].b_o, all.b_o, 0));
  CHECK(all_close(own.b_o, Tensor<1>(xt::zeros<float>({24})), 0));
  CHECK(all_close(first.positions.floats(), weights.positions.floats(), 0));
  CHECK(all_close(last.positions.floats(), Tensor<2>(xt::zeros<float>({17, 24})), 0));
}

TEST_CASE("SmolLM2-135M's fuller rank of two has 54.2 % of the multiplications") {
  const Config whole = preset("smollm2-135m");
  const ShardSize all = shard_size(whole, {0, 1}), first = shard_size(whole, {0, 2}),
                  second = shard_size(whole, {1, 2});
  CHECK(all.parameters == 134'515'008);
  CHECK(first.parameters + second.parameters == all.parameters + 61 * 576);  // norms in both
  CHECK(first.in_blocks + second.in_blocks == all.in_blocks);
  CHECK(std::abs(double(second.in_blocks) / double(all.in_blocks) - 0.542) < 0.0005);
}

TEST_CASE("what can't be divided is refused by name") {
  REFUSES(block_shard(heads_of(9, 3), {0, 10}), "ranks: wanted at most H = 9, got 10");
  REFUSES(block_shard(heads_of(9, 3), {2, 2}), "rank: wanted below the 2 ranks, got 2");
  BlockSettings narrow = heads_of(9, 3);
  narrow.F = 4;
  REFUSES(block_shard(narrow, {0, 5}), "ranks: wanted at most F = 4, got 5");
  narrow.F = 64;
  REFUSES(block_shard(narrow, {0, 3}, 32), "ranks: wanted at most F in whole blocks = 2, got 3");
  REFUSES(block_shard(narrow, {0, 2}, 48),
          "F, the hidden channels: wanted a multiple of the 48 channels that belong together, got "
          "64");
  BlockSettings other = heads_of(9, 3);
  other.experts = 4, other.chosen = 2;
  REFUSES(block_shard(other, {0, 2}),
          "experts: wanted a model without them, which are divided in another way, got 4");
  other = heads_of(9, 3);
  other.head_norms = other.heads_together = true;
  REFUSES(block_shard(other, {0, 2}),
          "heads_together: wanted a norm for each head, got one over all heads, which no rank has");
  Config few{.block = heads_of(9, 3), .L = 1, .V = 4, .T_max = 4};
  REFUSES(config_of(few, {0, 5}), "ranks: wanted at most V = 4, got 5");
}

}  // namespace t2t::shards_tests
