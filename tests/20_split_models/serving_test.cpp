// Chapter 20: the engine of rank 0, over a model that is divided among ranks.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "15_serving/engine/engine.hpp"
#include "15_serving/some_request.hpp"
#include "16_server/program/serve_task.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/serving/ranked_runner.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "support/refuses.hpp"

namespace t2t::serving_on_ranks_tests {

using Floats = std::vector<float>;

/// Nine query heads for three key heads, so that two ranks and four have uneven parts.
static Config shown() {
  return resized(preset("smollm2-135m"),
                 {.C = 36, .L = 2, .H = 9, .G = 3, .D = 4, .F = 96, .V = 97, .T_max = 96});
}
static const std::vector<std::uint8_t>& file_bytes() {
  static const std::vector<std::uint8_t> bytes = [] {
    Random random(3);
    return gguf_file(shown(), draw_model(shown(), random));
  }();
  return bytes;
}
static Model part_of(const Communicator& ranks) {
  const GgufFile file("tiny.gguf", file_bytes());
  ReadShard read =
      read_shard(file, read_config(file), {ranks.rank, ranks.size}, batch_invariant_matrices(true));
  return Model(std::move(read.config), std::move(read.weights));
}

constexpr std::size_t count = 7;  // sequences
/// Few pages for three sequences: some must stop, and are read again.
static const EngineOptions crowded = {.pages = 9, .page_size = 8, .sequences = 3, .budget = 20},
                           roomy = {.pages = 40, .page_size = 16, .sequences = 1, .budget = 64};

static Request request(std::size_t i) {
  Request one = some_request(i);
  one.prompt.resize(std::min<std::size_t>(one.prompt.size(), 48));
  return one;
}

/// The answers of sequences `from` to `to`, each with its logits: on rank 0, nothing elsewhere.
static Floats served(const Communicator& ranks, const EngineOptions& options, std::size_t from,
                     std::size_t to) {
  const Model own = part_of(ranks);
  const ModelRunner part = runner_of_rank(ranks, own, options);
  if (ranks.rank != 0) return follow(ranks, part), Floats{};
  LeadingRank leader(ranks, part);
  Engine engine(leader.runner());
  std::map<std::size_t, Floats> heard;
  engine.on_logits = [&](std::size_t id, ConstRow logits) {
    heard[id].insert(heard[id].end(), logits.begin(), logits.end());
  };
  for (std::size_t i = from; i < to; ++i) engine.submit(request(i));
  for (std::size_t step = 0; step < 1000 && !engine.idle(); ++step)
    for (const Event& event : engine.step())
      if (event.token) heard[event.id].push_back(float(*event.token));
  Floats all;
  for (const auto& [id, floats] : heard) all.insert(all.end(), floats.begin(), floats.end());
  return all;
}

TEST_CASE("served over ranks, a sequence gets the bits that it gets alone") {
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks together =
        on_ranks(p, [&](const Communicator& ranks) { return served(ranks, crowded, 0, count); });
    CHECK(together.error == "");
    Floats alone;
    for (std::size_t i = 0; i < count; ++i) {
      const OnRanks one =
          on_ranks(p, [&](const Communicator& ranks) { return served(ranks, roomy, i, i + 1); });
      CHECK(one.error == "");
      if (one.error.empty())
        alone.insert(alone.end(), one.results[0].begin(), one.results[0].end());
    }
    CHECK(alone.size() > count * shown().V);
    CHECK((together.error.empty() && together.results[0] == alone));
  }
}

/// One step of two sequences, of 5 and of 3 tokens, the second of which starts at position 2.
struct TwoChunks {
  const std::vector<int> first = {1, 2, 3, 4, 5}, before = {9, 8}, second = {7, 6, 5};
  const std::vector<std::size_t> pages = {2}, other_pages = {0};
  std::vector<Chunk> one() const { return {{1, 0, before, other_pages, 0}}; }
  std::vector<Chunk> two() const {
    return {{0, 0, first, pages, 1}, {1, 2, second, other_pages, 2}};
  }
};
static const EngineOptions small = {.pages = 4, .page_size = 8, .sequences = 2, .budget = 16};

/// The logits of the two chunks on rank 0, and what a rank has sent for them.
static Floats step_of(const Communicator& ranks, bool logits_wanted) {
  const TwoChunks chunks;
  const Model own = part_of(ranks);
  const ModelRunner part = runner_of_rank(ranks, own, small);
  Tensor<2> logits = xt::zeros<float>({3, 97});
  const Sent before = sent();
  if (ranks.rank != 0) {
    follow(ranks, part);
  } else {
    LeadingRank leader(ranks, part);
    const ModelRunner all = leader.runner();
    all.run(chunks.one(), Matrix(logits).rows_from(0, 0));
    all.run(chunks.two(), logits);
  }
  const Sent now = sent() - before;
  if (!logits_wanted) return {float(now.messages), float(now.bytes)};
  return Floats(logits.begin(), logits.end());
}

TEST_CASE("a step's logits are one rank's within the bound") {
  const Communicator alone = {MPI_COMM_SELF, 0, 1};
  const Floats want = step_of(alone, true);
  double largest = 0;
  for (const float logit : want) largest = std::max(largest, std::abs(double(logit)));
  const BlockSettings& s = shown().block;
  // Chapter 09's bound for each of the two, and p − 1 more terms in each of the 2·L sums.
  const double K = 4 * std::sqrt(s.C) + 4 * std::sqrt(s.D) + std::sqrt(shown().T_max) +
                   std::sqrt(s.H * s.D) + std::sqrt(s.F);
  const double one = (std::sqrt(shown().L) * K + std::sqrt(s.C)) * 0x1p-24 * largest;
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks got = on_ranks(p, [](const Communicator& ranks) { return step_of(ranks, true); });
    CHECK(got.error == "");
    if (!got.error.empty()) continue;
    const double bound =
        2 * one + std::sqrt(2 * double(shown().L) * double(p - 1)) * 0x1p-24 * largest;
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double apart = std::abs(double(got.results[0][i]) - double(want[i]));
      worst = std::isnan(apart) ? 99 : std::max(worst, apart);
    }
    CHECK(worst <= bound);
  }
}

TEST_CASE("what a step sends is the formula's, on each rank") {
  const TwoChunks chunks;
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const OnRanks got =
        on_ranks(p, [](const Communicator& ranks) { return step_of(ranks, false); });
    CHECK(got.error == "");
    for (std::size_t r = 0; got.error.empty() && r < p; ++r) {
      CAPTURE(p);
      CAPTURE(r);
      Sent want = step_cost(shown(), chunks.one(), p, r);
      want += step_cost(shown(), chunks.two(), p, r);
      want += end_cost(p, r);
      CHECK(got.results[r] == Floats{float(want.messages), float(want.bytes)});
    }
  }
}

TEST_CASE("pages that are swapped are refused") {
  const Model own = part_of({MPI_COMM_SELF, 0, 1});
  REFUSES(runner_of_rank({MPI_COMM_SELF, 0, 1}, own, {.swap = 2}),
          "pages to swap on several ranks: wanted 0, got 2");
}

}  // namespace t2t::serving_on_ranks_tests
