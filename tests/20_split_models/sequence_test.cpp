// Chapter 20: a block whose stream is divided by tokens is the block whose stream is whole.
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "08_block/fast/cached_attention.hpp"
#include "09_language_model/cases.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/sequence_block.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::sequence_tests {

using Floats = std::vector<float>;
constexpr std::size_t T = 12;

static std::vector<Case> cases() {
  Case nine = llama(), biases = gpt2();
  nine.config.block.H = 9, nine.config.block.G = 3;
  biases.config.block.H = 5, biases.config.block.G = 5;
  return {nine, biases, mixed()};
}

/// The stream that goes in: one sequence of seven tokens and one of five.
static Tensor<2> stream_of(const Config& config) { return numbers(9, 1, 0, T, config.block.C); }
static const std::vector<Run> two_runs = {{.sequence = 0, .position = 0, .rows = 7},
                                          {.sequence = 1, .position = 0, .rows = 5}};

struct Blocks {
  Model model;
  BlockScratch scratch;
  CachedAttention attention;

  Blocks(const Case& c, Shard shard)
      : model(config_of(c.config, shard), shard_of(c.weights(), c.config, shard)),
        scratch(settings_of_all(model.config()), T),
        attention(settings_of_all(model.config()), T, T, 2, {}) {}
};

/// What this rank's rows become with all-reduces on the whole stream, and what it sends.
static std::pair<Tensor<2>, Sent> whole_stream(const Communicator& ranks, const Case& c) {
  Blocks blocks(c, {ranks.rank, ranks.size});
  Tensor<2> x = stream_of(c.config);
  const BlockFunctions functions = {.attention = std::ref(blocks.attention),
                                    .before_sum = parallel_options(ranks).before_sum};
  const Sent before = sent();
  for (std::size_t l = 0; l < c.config.L; ++l)
    block_rows(x, two_runs, blocks.model.block(l), functions, blocks.scratch);
  const std::size_t rows = T / ranks.size;
  return {copy_of(ConstMatrix(x).rows_from(ranks.rank * rows, rows)), sent() - before};
}

static std::pair<Tensor<2>, Sent> divided_stream(const Communicator& ranks, const Case& c) {
  Blocks blocks(c, {ranks.rank, ranks.size});
  const std::size_t rows = T / ranks.size;
  Tensor<2> own = copy_of(ConstMatrix(stream_of(c.config)).rows_from(ranks.rank * rows, rows));
  const Sent before = sent();
  for (std::size_t l = 0; l < c.config.L; ++l)
    sequence_block_rows(ranks, own, two_runs, blocks.model.block(l), std::ref(blocks.attention),
                        blocks.scratch);
  return {own, sent() - before};
}

TEST_CASE("the own rows have the bits of the whole stream's, for as many messages and bytes") {
  for (const Case& c : cases())
    for (const std::size_t p : {1, 2, 3, 4}) {
      CAPTURE(c.name);
      CAPTURE(p);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const auto [want, want_sent] = whole_stream(ranks, c);
        const auto [own, own_sent] = divided_stream(ranks, c);
        const bool changed =
            own != copy_of(ConstMatrix(stream_of(c.config)).rows_from(0, own.shape(0)));
        return {own == want ? 1.f : 0.f, own_sent == want_sent ? 1.f : 0.f, changed ? 1.f : 0.f};
      });
      CHECK(first_wrong(got, {1, 1, 1}) == "");
    }
}

/// A block on one rank, with so many rows.
static void run_block(const Case& c, std::size_t rows, const std::vector<Run>& runs) {
  Blocks blocks(c, {0, 1});
  Tensor<2> own = xt::zeros<float>({rows, c.config.block.C});
  sequence_block_rows({MPI_COMM_SELF, 0, 1}, own, runs, blocks.model.block(0),
                      std::ref(blocks.attention), blocks.scratch);
}

TEST_CASE("it refuses runs of other rows, more rows than the scratch, and norms elsewhere") {
  REFUSES(run_block(llama(), 11, two_runs), "rows of the runs: wanted 11, got 12");
  REFUSES(run_block(llama(), 13, two_runs), "T, the tokens of all ranks: wanted 1 to 12, got 13");
  Case after = llama();
  after.config.block.norm_place = NormPlace::after;
  REFUSES(run_block(after, 12, two_runs),
          "norm_place: wanted norms before the sublayers, got another place");
}

}  // namespace t2t::sequence_tests
