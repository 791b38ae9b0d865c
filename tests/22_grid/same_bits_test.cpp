// Chapter 22: with a number of shards, every number of ranks gives the same bits.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "09_language_model/cases.hpp"
#include "09_language_model/fast/forward.hpp"
#include "22_grid/same_bits/team_text.hpp"
#include "22_grid/tiny_grid.hpp"
#include "linalg.hpp"

namespace t2t::same_bits_tests {

using namespace tiny_grid;

constexpr std::size_t shards = 8;
static const std::vector<std::size_t> rank_counts = {1, 2, 3, 4, 5, 8};

/// What each shard gets from a collective on the team's shards, one shard after the other.
template <class Collective>
static OnRanks on_shards(std::size_t p, std::size_t all, Collective collective) {
  return on_ranks(p, [&](const Communicator& ranks) {
    ShardTeam team(ranks, all);
    std::vector<Floats> found(team.own().size());
    const Sent before = sent();
    team.run([&](std::size_t i) { found[i] = collective(team.group(i)); });
    const Sent now = sent() - before;
    Floats together = {float(now.messages), float(now.bytes)};
    for (const Floats& of_shard : found)
      together.insert(together.end(), of_shard.begin(), of_shard.end());
    return together;
  });
}

/// "" if each rank has sent what this says, and each of its shards has these floats.
template <class Cost>
static std::string first_wrong_team(const OnRanks& got, std::size_t all, const Floats& of_shard,
                                    Cost cost) {
  if (!got.error.empty()) return got.error;
  const std::size_t p = got.results.size();
  for (std::size_t r = 0; r < p; ++r) {
    const Sent sent = cost(p, r);
    Floats want = {float(sent.messages), float(sent.bytes)};
    for (std::size_t i = 0; i < range_of(all, p, r).size(); ++i)
      want.insert(want.end(), of_shard.begin(), of_shard.end());
    if (got.results[r] != want)
      return fmt::format("rank {}: {}", r, first_difference(got.results[r], want));
  }
  return "";
}

constexpr std::size_t n = 37;

TEST_CASE("by hand: a sum over eight shards is added in pairs, whichever ranks have them") {
  Floats want(n);
  std::vector<Floats> x;
  for (std::size_t s = 0; s < shards; ++s) x.push_back(fractions(s, n));
  for (std::size_t i = 0; i < n; ++i)
    want[i] =
        ((x[0][i] + x[1][i]) + (x[2][i] + x[3][i])) + ((x[4][i] + x[5][i]) + (x[6][i] + x[7][i]));
  for (const std::size_t p : rank_counts) {
    CAPTURE(p);
    const OnRanks got = on_shards(p, shards, [](const ShardGroup& group) {
      Floats own = fractions(group.rank, n);
      group.sum(own);
      return own;
    });
    CHECK(first_wrong_team(got, shards, want, [](std::size_t ranks, std::size_t rank) {
            return team_sum_cost(n, shards, ranks, rank);
          }) == "");
  }
}

TEST_CASE("each shard brings its chunk, and all get all chunks") {
  for (const std::size_t all : {5, 8}) {
    const Floats want = fractions(0, n);
    for (const std::size_t p : rank_counts) {
      if (p > all) continue;
      CAPTURE(p);
      const OnRanks got = on_shards(p, all, [&](const ShardGroup& group) {
        Floats own(n, -1);
        const Range chunk = range_of(n, group.size, group.rank);
        std::copy_n(want.begin() + std::ptrdiff_t(chunk.begin), chunk.size(),
                    own.begin() + std::ptrdiff_t(chunk.begin));
        group.gather(own);
        return own;
      });
      CHECK(first_wrong_team(got, all, want, [all](std::size_t ranks, std::size_t rank) {
              return team_gather_cost(n, all, ranks, rank);
            }) == "");
    }
  }
}

TEST_CASE("shards take turns: no two of them run at a time, and an error ends all") {
  const OnRanks got = on_ranks(1, [](const Communicator& ranks) -> Floats {
    ShardTeam team(ranks, 4);
    std::vector<int> order;  // written by all threads without a lock
    team.run([&](std::size_t i) {
      for (int round = 0; round < 2; ++round) {
        order.push_back(int(i));
        team.meet(i);
      }
    });
    bool stopped = false;
    try {
      team.run([&](std::size_t i) {
        if (i == 2) throw std::runtime_error("of shard 2");
        team.meet(i);
      });
    } catch (const std::runtime_error& error) {
      stopped = error.what() == std::string("of shard 2");
    }
    Floats found(order.begin(), order.end());
    found.push_back(stopped ? 1.f : 0.f);
    return found;
  });
  CHECK(first_wrong(got, {0, 1, 2, 3, 0, 1, 2, 3, 1}) == "");
}

/// The losses of some steps on a line of p tensor ranks, with the gradients after the first step
/// and the last one. What a rank's shards have follows the losses, shard by shard.
static OnRanks trained_on(std::size_t p, const Config& config, std::size_t steps, int threads) {
  return on_ranks(p, [&](const Communicator& ranks) {
    set_threads(threads);
    const RankGrid grid(ranks, {1, 1, p});
    const std::vector<int> ids = tiny_ids();
    GridTrainer trainer(grid, config, weights_of(config), options_of(1, 0.1f, steps), ids, shards);
    Floats losses;
    std::vector<Floats> of_shard(trainer.shards().size());
    for (std::size_t step = 0; step < steps; ++step) {
      const StepReport report = trainer.step();
      append_exactly(losses, report.loss);
      append_exactly(losses, report.gradient_norm);
      for (std::size_t i = 0; i < of_shard.size(); ++i)
        if (step == 0 || step + 1 == steps) append(of_shard[i], trainer.shards()[i]->gradients());
    }
    for (std::size_t i = 0; i < of_shard.size(); ++i) {
      append(of_shard[i], trainer.shards()[i]->weights());
      losses.insert(losses.end(), of_shard[i].begin(), of_shard[i].end());
    }
    set_threads(1);
    return losses;
  });
}

TEST_CASE("losses of fifty steps, gradients and weights are the same bits on 1 to 8 ranks") {
  constexpr std::size_t steps = 50, reports = 2 * 3 * steps;
  const Config config = grouped_config();
  const OnRanks alone = trained_on(1, config, steps, 1);
  REQUIRE(alone.error == "");
  for (const std::size_t p : rank_counts) {
    CAPTURE(p);
    const OnRanks got = trained_on(p, config, steps, p == 1 ? 2 : 1);
    CHECK(got.error == "");
    for (const Floats& of_rank : got.results)
      CHECK(std::equal(alone.results[0].begin(), alone.results[0].begin() + reports,
                       of_rank.begin(), of_rank.begin() + reports * (of_rank.size() >= reports)));
    if (!got.error.empty()) continue;
    const Floats all = joined(got, reports);
    CHECK((all == alone.results[0] ? "" : first_difference(all, alone.results[0])) == "");
  }
}

TEST_CASE("and on every grid, with a tied table, biases and clipping") {
  const Config config = gpt2_config();
  TrainingOptions options = options_of(3, 0.1f);
  options.clip = 0.05;
  constexpr std::size_t values = 2 * 3 * few_steps;
  const OnRanks alone = trained({1, 1, 1}, config, options, shards);
  REQUIRE(alone.error == "");
  for (const GridShape& shape :
       {GridShape{3, 2, 1}, GridShape{2, 2, 2}, GridShape{2, 1, 3}, GridShape{1, 3, 2}}) {
    INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
    CHECK(first_unlike(trained(shape, config, options, shards), shape, alone.results[0], values,
                       config, shards) == "");
  }
}

TEST_CASE("without a number of shards, two ranks give other bits than one") {
  const Config config = grouped_config();
  const auto losses = [&](std::size_t p) {
    const OnRanks got = trained({1, 1, p}, config, options_of(1), 0, 1);
    REQUIRE(got.error == "");
    // Shard 0's part of w_o, which is the whole model's columns of its heads, is in both.
    return Floats(got.results[0].begin(), got.results[0].begin() + 6);
  };
  CHECK(losses(1) != losses(2));
}

constexpr std::size_t new_tokens = 12;
static const std::vector<int> prompt = {3, 20, 19, 1, 40, 7, 7};

TEST_CASE("generated tokens and their logits are the same bits on 1 to 8 ranks") {
  // With four key heads, two shards have the same one.
  Config config = grouped_config();
  config.T_max = 32, config.block.G = 4;
  const auto generated = [&](std::size_t p) {
    return on_ranks(p, [&](const Communicator& ranks) {
      const TeamText text =
          team_text(ranks, config, weights_of(config), prompt, new_tokens, shards);
      Floats found(text.ids.begin(), text.ids.end());
      found.insert(found.end(), text.logits.begin(), text.logits.end());
      return found;
    });
  };
  const OnRanks alone = generated(1);
  REQUIRE(alone.error == "");
  for (const std::size_t p : rank_counts) {
    CAPTURE(p);
    CHECK(first_wrong(generated(p), alone.results[0]) == "");
  }
  // The first logits are chapter 09's within its bound, with seven terms more in each sum.
  const Model model(config, weights_of(config));
  ModelState state(config, prompt.size());
  Tensor<1> logits = empty(V);
  forward(model, state, prompt, row(logits));
  double largest = 0, worst = 0;
  for (const float x : logits) largest = std::max(largest, double(std::abs(x)));
  const double bound = 2 * Case{"", config, float(largest)}.bound(largest) +
                       std::sqrt(2 * double(config.L) * 7) * 0x1p-24 * largest;
  for (std::size_t i = 0; i < V; ++i) {
    const double share =
        std::abs(double(alone.results[0][new_tokens + i]) - double(logits[i])) / bound;
    worst = std::isnan(share) ? 99 : std::max(worst, share);
  }
  CHECK(worst <= 1);
}

}  // namespace t2t::same_bits_tests
