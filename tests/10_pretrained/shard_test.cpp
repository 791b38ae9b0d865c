// What must be true of a model whose shards several ranks hold: their terms add up to the whole
// model's.
#include "10_pretrained/model/shard.hpp"

#include <doctest/doctest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::shard_test {

static Config config_of(Biases biases, std::size_t experts = 0) {
  Config config{.block = llama_style(32, 4, 2, 48), .L = 2, .V = 41, .T_max = 16};
  config.block.biases = biases;
  if (biases == Biases::qkv) config.block.pairing = Pairing::halves;
  config.block.experts = experts, config.block.chosen = experts > 0 ? 1 : 0;
  return config;
}

/// The logits of `ids` by two ranks, each with its shard of the file, on a thread of its own.
static std::vector<Tensor<1>> logits_of_two(const GgufFile& file, const Config& config,
                                            std::span<const int> ids, std::size_t (&stored)[2]) {
  std::barrier both(2);
  const Tensor<2>* terms[2] = {};
  const auto sum = [&](std::size_t rank, Matrix of) {
    const Tensor<2> mine = copy_of(of);
    terms[rank] = &mine;
    both.arrive_and_wait();
    const ConstMatrix other(*terms[1 - rank]);
    for (std::size_t t = 0; t < of.rows; ++t)
      for (std::size_t c = 0; c < of.cols; ++c) of.row(t)[c] += other.row(t)[c];
    both.arrive_and_wait();
  };
  std::vector<Tensor<1>> logits(2, empty(config.V));
  const auto run = [&](std::size_t rank) {
    const Shard shard{rank, 2};
    const Config own = shard_of(config, shard);
    const Model model(own, read_weights(file, config, {}, shard));
    const auto before_sum = [&](const Block&, Part, ConstMatrix, Matrix added) {
      sum(rank, added);
    };
    const auto sum_all = [&](Matrix x) { sum(rank, x); };
    ModelState state(own, 16, {.before_sum = before_sum, .embedded = sum_all, .scored = sum_all});
    stored[rank] = bytes(model.weights());
    forward(model, state, ids.first(3), row(logits[rank]));
    forward(model, state, ids.subspan(3), row(logits[rank]));
  };
  std::thread second(run, 1);
  run(0);
  second.join();
  return logits;
}

TEST_CASE("two ranks with half of the heads, of the network and of the bytes make the logits") {
  for (const Biases biases : {Biases::none, Biases::qkv}) {
    const Config config = config_of(biases);
    Random random(2);
    ModelWeights weights = draw_model(config, random);
    for (BlockWeights& block : weights.blocks)
      for (Tensor<1>* bias : {&block.b_q, &block.b_k, &block.b_v})
        if (bias->size() > 0) *bias = random.normal<1>({bias->size()});
    const std::vector<std::uint8_t> of_file = gguf_file(config, weights);
    const GgufFile file("x", of_file);
    const std::vector<int> ids = {3, 20, 19, 1, 40, 21, 2};
    const Model model(config, std::move(weights));
    ModelState state(config, 16);
    Tensor<1> want = empty(config.V);
    forward(model, state, ids, row(want));
    // As chapter 09's bound for logits of up to 4: two sums of halves in the place of one.
    const double K = 4 * std::sqrt(32.) + 4 * std::sqrt(8.) + 4 + std::sqrt(32.) + std::sqrt(48.);
    std::size_t stored[2];
    for (const Tensor<1>& got : logits_of_two(file, config, ids, stored))
      CHECK(all_close(got, want, 2 * std::sqrt(2.) * K * 0x1p-24 * 4));
    const std::size_t in_both = 5 * 32 * sizeof(float);         // norms
    const std::size_t tokens_more = config.tied ? 32 : 2 * 32;  // of rank 1, which has 21 of 41
    CHECK(stored[0] + stored[1] == bytes(model.weights()) + in_both);
    CHECK(stored[1] == stored[0] + tokens_more * sizeof(float));
  }
}

TEST_CASE("a shard's rows and columns are those of the whole tensor, of each expert too") {
  const Config config = config_of(Biases::none, 3);
  Random random(4);
  const ModelWeights weights = draw_model(config, random);
  const std::vector<std::uint8_t> bytes = gguf_file(config, weights);
  const GgufFile file("x", bytes);
  for (const std::size_t rank : {0, 1}) {
    const ModelWeights shard = read_weights(file, config, {}, {rank, 2});
    const BlockWeights &of = shard.blocks[1], &all = weights.blocks[1];
    CHECK(all_close(of.w_k.floats(), copy_of(ConstMatrix(all.w_k.floats()).rows_from(rank * 8, 8)),
                    0));
    CHECK(all_close(of.w_o.floats(),
                    copy_of(ConstMatrix(all.w_o.floats()).cols_from(rank * 16, 16)), 0));
    CHECK(all_close(of.router.floats(), all.router.floats(), 0));
    for (std::size_t e = 0; e < 3; ++e) {
      const FeedForwardWeights &mine = of.experts[e], &whole = all.experts[e];
      CHECK(all_close(mine.w_up.floats(),
                      copy_of(ConstMatrix(whole.w_up.floats()).rows_from(rank * 24, 24)), 0));
      CHECK(all_close(mine.w_down.floats(),
                      copy_of(ConstMatrix(whole.w_down.floats()).cols_from(rank * 24, 24)), 0));
    }
  }
}

TEST_CASE("the network beside the experts is divided too") {
  Config config = config_of(Biases::none, 3);
  config.block.shared = 40;
  CHECK(shard_of(config, {1, 2}).block.shared == 20);
  config.block.shared = 41;
  REFUSES(shard_of(config, {1, 2}),
          "shared, the width of the shared expert: wanted a multiple of 2 ranks, got "
          "41");
}

TEST_CASE("a rank keeps the rows of its own tokens; the others are zeros, also where it writes") {
  Config config = config_of(Biases::none);
  config.block = llama_style(48, 3, 3, 48);
  Random random(5);
  const ModelWeights weights = draw_model(config, random);
  const std::vector<std::uint8_t> bytes = gguf_file(config, weights);
  const Weight head = read_weights(GgufFile("x", bytes), config, {}, {1, 3}).head;
  CHECK(head.rows() == 41);
  CHECK(head.bytes() == 14 * 48 * sizeof(float));  // tokens 13 to 26
  Tensor<2> logits = xt::ones<float>({3, 41}) * NAN;
  const Tensor<2> x = random.normal<2>({3, 48});
  matmul_bt(ConstMatrix(x), head, logits);
  const Tensor<2> whole = matmul_bt(x, weights.head);
  Tensor<1> row_r = empty(48);
  for (std::size_t r = 0; r < 41; ++r) {
    const bool mine = r >= 13 && r < 27;
    head.row(r, row(row_r));
    for (std::size_t c = 0; c < 48; ++c)
      CHECK(row_r(c) == (mine ? weights.head.floats()(r, c) : 0));
    for (std::size_t t = 0; t < 3; ++t)
      CHECK(std::abs(logits(t, r) - (mine ? whole(t, r) : 0)) <= 48 * 0x1p-24 * 4);
  }
}

TEST_CASE("columns of a packed tensor are whole blocks, and other shards are refused") {
  std::vector<std::uint8_t> stored(2 * 2 * 34), room;  // two rows of two blocks of Q8_0
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = std::uint8_t(i);
  const GgufTensor tensor{"w", TensorType::q8_0, {2, 64}, 0, stored.size(), stored};
  TensorInfo info{"w_down", 2, 32, Role::into_stream};
  const GgufTensor second = shard_of(tensor, info, {1, 2}, room);
  CHECK(second.bytes.size() == 2 * 34);
  for (std::size_t i = 0; i < 34; ++i) {
    CHECK(second.bytes[i] == 34 + i);
    CHECK(second.bytes[34 + i] == 3 * 34 + i);
  }
  info.cols = 16;
  REFUSES(shard_of(tensor, info, {1, 4}, room),
          "w: wanted columns in whole blocks of 32, got 16 of 64");
  Config few = config_of(Biases::none);
  few.V = 1;
  REFUSES(shard_of(few, {0, 2}), "V, the vocabulary: wanted a token for each rank, got 1");
  REFUSES(shard_of(config_of(Biases::all), {0, 2}),
          "biases: wanted at most those of q, k and v, got all");
  REFUSES(shard_of(config_of(Biases::none), {2, 2}), "rank: wanted below the 2 ranks, got 2");
  REFUSES(shard_of(config_of(Biases::none), {0, 3}),
          "H, the query heads: wanted a multiple of 3 ranks, got 4");
}

}  // namespace t2t::shard_test
