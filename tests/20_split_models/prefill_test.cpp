// Chapter 20: a prompt that is divided among ranks gets the logits of one rank.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "09_language_model/cases.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/context_parallel/context_prefill.hpp"
#include "support/refuses.hpp"

namespace t2t::prefill_tests {

using Floats = std::vector<float>;

/// Grouped heads, and a head's scores of up to three tiles of keys.
static Config config_of(std::size_t T) {
  Config config{.block = {.C = 24, .H = 6, .G = 2, .D = 4, .F = 37}, .L = 2, .V = 53, .T_max = T};
  config.tied = true;
  return config;
}
static Config gpt2_config(std::size_t T) {
  return resized(preset("gpt2"), {.C = 24, .L = 2, .H = 3, .G = 3, .V = 53, .T_max = T});
}
static Ids ids_of(std::size_t T) {
  Ids ids;
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int((7 * t * t + 3 * t + t / 9) % 53));
  return ids;
}
static ModelWeights weights_of(const Config& config) {
  Random random(3);
  return draw_model(config, random);
}

static Floats logits_alone(const Config& config, std::size_t T) {
  const Model model(config, weights_of(config));
  ModelState state(config, T);
  Floats logits(config.V);
  forward(model, state, ids_of(T), logits);
  return logits;
}

TEST_CASE("the last token's logits are one rank's within the bound; bytes are the formulas'") {
  for (const std::size_t T : {10, 67, 530})
    for (const Config& config : {config_of(T), gpt2_config(T)}) {
      const Floats want = logits_alone(config, T);
      double largest = 0;
      for (const float x : want) largest = std::max(largest, double(std::abs(x)));
      for (std::size_t p = 1; p <= 5; ++p) {
        CAPTURE(T);
        CAPTURE(p);
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
          const Model model(config, weights_of(config));
          ContextPrefill prefill(ranks, model, T);
          Floats found(config.V);
          const Sent before = sent();
          prefill.logits_of_last(ids_of(T), found);
          const Sent now = sent() - before;
          found.insert(found.end(),
                       {float(now.messages), float(now.bytes), float(prefill.bytes())});
          return found;
        });
        CHECK(got.error == "");
        if (got.error != "") continue;
        // Both are within chapter 09's bound; the joins of tiles are as long sums as one rank's.
        const double bound = 2 * Case{"", config, largest}.bound(largest);
        for (std::size_t r = 0; r < p; ++r) {
          double worst = 0;
          for (std::size_t v = 0; v < config.V; ++v) {
            const double share = std::abs(double(got.results[r][v]) - double(want[v])) / bound;
            worst = std::isnan(share) ? 99 : std::max(worst, share);
          }
          CHECK(worst <= 1);
          const Sent cost = context_prefill_cost(config, T, p, r);
          CHECK(Floats(got.results[r].end() - 3, got.results[r].end()) ==
                Floats{float(cost.messages), float(cost.bytes),
                       float(context_prefill_bytes(config, T, p, r))});
        }
      }
    }
}

TEST_CASE("by hand: what a rank of four needs for 32,768 tokens") {
  Config config = config_of(32768);
  // 8,192 tokens with 3·24 floats of the stream, 2·24 of q and the heads, 2·8 of k and v and 2·37
  // hidden ones; two blocks of keys and values, two floats for each head, a tile, RoPE's table.
  const std::size_t own = 8192;
  CHECK(context_prefill_bytes(config, 32768, 4, 1) ==
        4 * (own * (72 + 48 + 16 + 74) + 2 * own * 16 + 2 * own * 6 + 64 * 256 + 32768 * 4));
}

TEST_CASE("what can't be divided is refused by name") {
  const Config config = config_of(40);
  const Model model(config, weights_of(config));
  REFUSES(ContextPrefill(all_ranks(), model, 9),
          "T, the tokens: wanted at least two for each of 5 ranks, got 9");
  REFUSES(ContextPrefill(all_ranks(), model, 41),
          "T, the tokens: wanted at most T_max = 40, got 41");
  Config windows = config;
  windows.block.window = 3;
  const Model other(windows, weights_of(windows));
  REFUSES(ContextPrefill(all_ranks(), other, 40),
          "window: wanted 0, no window, for a divided sequence, got 3");
}

}  // namespace t2t::prefill_tests
