// Models with several texts at once, with layers that differ, and with packed weights.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <type_traits>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/cases.hpp"
#include "09_language_model/generate.hpp"
#include "09_language_model/language_model.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::sequences_test {

// A copy would have lengths of its own, but the same caches.
static_assert(!std::is_copy_constructible_v<ModelState> && !std::is_copy_assignable_v<ModelState>);
static_assert(std::is_move_constructible_v<ModelState> && std::is_move_assignable_v<ModelState>);

TEST_CASE("1, 2 and 7 texts at once, of unequal length, give what each gives alone") {
  for (const Case& c : {llama(), mixed(), gpt2()}) {
    const Model model = c.model();
    const std::size_t V = c.config.V;
    const double bound = c.bound(c.largest);
    Random random(6);
    for (const std::size_t sequences : {1, 2, 7})
      for (const std::size_t chunk : {5, 512}) {
        CAPTURE(c.name);
        CAPTURE(sequences);
        CAPTURE(chunk);
        // A prompt of 1 to 9 tokens for each text, in any order; then one token more for the even
        // ones and three for the odd ones; then one for all.
        std::vector<Ids> said(sequences);
        ModelState state(c.config, 14, {.chunk = chunk, .sequences = sequences});
        for (const int round : {0, 1, 2}) {
          std::vector<Ids> next(sequences);
          std::vector<MoreTokens> more;
          for (std::size_t i = sequences; i-- > 0;) {
            const std::size_t count = round == 0            ? 1 + (5 * i + 3) % 9
                                      : round == 1 && i % 2 ? 3
                                                            : 1;
            for (std::size_t t = 0; t < count; ++t)
              next[i].push_back(int(random.next_uniform() * double(V)));
            said[i].insert(said[i].end(), next[i].begin(), next[i].end());
            more.push_back({i, next[i]});
          }
          Tensor<2> logits = xt::ones<float>({sequences, V}) * NAN;
          forward(model, state, more, logits);
          for (std::size_t n = 0; n < sequences; ++n) {
            const std::size_t i = more[n].sequence;
            CHECK(state.length(i) == said[i].size());
            CHECK(all_close(copy_of(ConstMatrix(logits).rows_from(n, 1)),
                            last_row(language_model(said[i], model)), bound));
          }
        }
      }
  }
}

TEST_CASE("several texts at once: the logits of all tokens, and one text truncated alone") {
  const Case c = llama();
  const Model model = c.model();
  const Ids a = {1, 2, 3, 4, 5}, b = {9, 8, 7}, edited = {6};
  for (const std::size_t chunk : {3, 512}) {
    ModelState state(c.config, 20, {.chunk = chunk, .sequences = 2});
    Tensor<2> logits = empty(8, c.config.V), more = empty(1, c.config.V);
    std::size_t most_rows = 0;  // of both texts, in one product
    forward_all(model, state, std::vector<MoreTokens>{{1, a}, {0, b}}, logits,
                [&](Part, std::size_t, ConstMatrix x) { most_rows = std::max(most_rows, x.rows); });
    CHECK(most_rows == std::min<std::size_t>(chunk, 8));
    const auto rows = [&](std::size_t from, std::size_t count) {
      return copy_of(ConstMatrix(logits).rows_from(from, count));
    };
    CHECK(all_close(rows(0, 5), language_model(a, model), c.bound(4.9)));
    CHECK(all_close(rows(5, 3), language_model(b, model), c.bound(4.9)));

    truncate(state, 2, 1);
    CHECK(state.length(1) == 2);
    CHECK(state.length(0) == 3);
    forward(model, state, std::vector<MoreTokens>{{1, edited}}, more);
    CHECK(all_close(more, last_row(language_model(Ids{1, 2, 6}, model)), c.bound(4.9)));
  }
}

TEST_CASE("logits are made for the entries that want them, in their order") {
  const Case c = llama();
  const Model model = c.model();
  const Ids a = {1, 2, 3, 4, 5}, b = {9, 8, 7}, d = {6, 6};
  for (const std::size_t chunk : {2, 512}) {
    ModelState state(c.config, 20, {.chunk = chunk, .sequences = 3});
    Tensor<2> two = empty(2, c.config.V), none = empty(0, c.config.V);
    forward(model, state, std::vector<MoreTokens>{{2, d}, {1, a, 0}, {0, b}}, two);
    CHECK(all_close(copy_of(ConstMatrix(two).rows_from(0, 1)), last_row(language_model(d, model)),
                    c.bound(4.9)));
    CHECK(all_close(copy_of(ConstMatrix(two).rows_from(1, 1)), last_row(language_model(b, model)),
                    c.bound(4.9)));
    forward(model, state, std::vector<MoreTokens>{{1, d, 0}}, none);
    CHECK(state.lengths == std::vector<std::size_t>{3, 7, 2});
    REFUSES(forward(model, state, std::vector<MoreTokens>{{1, d, 0}}, two),
            "logits: wanted shape [0, 61], got [2, 61]");
    REFUSES(forward(model, state, std::vector<MoreTokens>{{1, d, 3}}, two),
            "wanted, the tokens with logits: wanted at most the 2 tokens, got 3");
  }
}

TEST_CASE("several of a text's last tokens get logits, whichever chunk they come in") {
  const Case c = llama();
  const Model model = c.model();
  const Ids a = {1, 2, 3, 4, 5}, b = {9, 8, 7}, d = {6, 6};
  for (const std::size_t chunk : {1, 2, 3, 512}) {
    CAPTURE(chunk);
    ModelState state(c.config, 20, {.chunk = chunk, .sequences = 3});
    Tensor<2> six = empty(6, c.config.V);
    forward(model, state, std::vector<MoreTokens>{{2, a, 4}, {1, b, 0}, {0, d, 2}}, six);
    const auto check = [&](std::size_t from, const Ids& ids, std::size_t wanted) {
      const Tensor<2> all = language_model(ids, model);  // [T, V]
      CHECK(all_close(copy_of(ConstMatrix(six).rows_from(from, wanted)),
                      copy_of(ConstMatrix(all).rows_from(ids.size() - wanted, wanted)),
                      c.bound(4.9)));
    };
    check(0, a, 4), check(4, d, 2);
  }
}

TEST_CASE("generation goes on with any of the texts") {
  const Case c = llama();
  const Model model = c.model();
  const Ids prompt = {1, 2, 3}, other = {9, 8};
  ModelState alone(c.config, 12), both(c.config, 12, {.sequences = 2});
  Tensor<2> logits = empty(1, c.config.V);
  forward(model, both, std::vector<MoreTokens>{{0, other}}, logits);
  Random random(1), same(1);
  Generation generation{.most = 5};
  const Ids want = generate(model, alone, prompt, generation, random);
  generation.sequence = 1;
  CHECK(generate(model, both, prompt, generation, same) == want);
  CHECK(both.length(0) == 2);
  CHECK(both.length(1) == alone.length());

  // The text that goes on is the one that gets full, at 12 tokens, and the other has room still.
  generation.most = 99;
  Ending ending = Ending::caller;
  const auto hear = [](int) { return true; };
  CHECK_NOTHROW(ending = generate(model, both, Ids{want.back()}, generation, same, hear));
  CHECK(ending == Ending::context_full);
  CHECK(both.length(1) == 12);
  generation.sequence = 0, generation.most = 3;
  CHECK(generate(model, both, other, generation, same).size() == 3);
}

TEST_CASE("each part of a state can be the caller's: attention, network, both ends") {
  const Case c = llama();
  const Model model = c.model();
  const Ids ids = {3, 1, 4, 1, 5};
  const Tensor<2> want = last_row(language_model(ids, model));
  std::string calls;
  CachedAttention cached(settings_of_all(c.config), 9, 3, 2);
  StateOptions options{.chunk = 3, .sequences = 2};
  options.memory = {std::ref(cached), [&](std::size_t sequence, std::size_t position) {
                      calls += fmt::format("truncated({}, {}) ", sequence, position);
                    }};
  options.network = [&](std::span<const BlockSettings> layers,
                        std::size_t max_rows) -> FeedForward {
    calls += fmt::format("network({}) ", max_rows);
    return [scratch = FeedForwardScratch(max_rows, layers[0].F, layers[0].activation)](
               const Block& block, ConstMatrix x, Matrix y, const Trace&) mutable {
      feed_forward_rows(x, block.weights().feed_forward, block.settings().activation, scratch, y);
    };
  };
  options.embedded = [&](Matrix x) { calls += fmt::format("embedded({}) ", x.rows); };
  options.scored = [&](Matrix logits) {
    calls += fmt::format("scored({}) ", logits.rows);
    for (float& logit : logits.row(0)) logit *= 2;
  };
  ModelState state(c.config, 9, options);
  Tensor<1> logits = empty(c.config.V);
  forward(model, state, ids, row(logits));
  truncate(state, 4);
  CHECK(calls == "network(3) embedded(3) embedded(2) scored(1) truncated(0, 4) ");
  CHECK(cached.caches[0][0].length == 5);
  CHECK(all_close(Tensor<2>(xt::view(logits, xt::newaxis())), Tensor<2>(2 * want), c.bound(9.8)));
}

TEST_CASE("a whole pass of the caller's takes the place of everything but lengths and checks") {
  const Case c = llama();
  const Model model = c.model();
  const Ids ids = {3, 1, 4, 1, 5}, more = {9, 2};
  std::string calls;
  // Here it is that of another state, whose lengths must be the ones that it is told.
  ModelState inner(c.config, 9, {.chunk = 3, .sequences = 2});
  StateOptions options{.sequences = 2};
  options.pass = [&](const Model& of, std::span<const MoreTokens> entries,
                     std::span<const std::size_t> lengths, Matrix logits) {
    calls += fmt::format("pass({}, {}) ", entries.size(), logits.rows);
    for (std::size_t s = 0; s < lengths.size(); ++s) truncate(inner, lengths[s], s);
    forward(of, inner, entries, logits);
  };
  options.scored = [&](Matrix logits) { calls += fmt::format("scored({}) ", logits.rows); };
  ModelState state(c.config, 9, options);
  CHECK(state.scratch.max_rows == 1);  // no memory for blocks that run elsewhere

  const auto bound = c.bound(4.9);
  const Tensor<2> want = language_model(ids, model);
  Tensor<2> one = empty(1, c.config.V), all = empty(5, c.config.V), two = empty(2, c.config.V);
  forward_all(model, state, ids, all);
  CHECK(all_close(all, want, bound));
  CHECK(state.lengths == std::vector<std::size_t>{5, 0});
  truncate(state, 3);
  forward(model, state, std::span(ids).last(2), row(one, 0));
  CHECK(all_close(one, last_row(want), bound));
  forward(model, state, std::vector<MoreTokens>{{0, more, 0}, {1, ids, 2}}, two);
  CHECK(all_close(two, copy_of(ConstMatrix(want).rows_from(3, 2)), bound));
  CHECK(state.lengths == std::vector<std::size_t>{7, 5});
  CHECK(calls == "pass(1, 5) scored(5) pass(1, 1) scored(1) pass(2, 2) scored(2) ");

  // What is refused does not reach it, and what throws leaves the lengths.
  const Trace trace = [](Part, std::size_t, ConstMatrix) {};
  REFUSES(forward(model, state, Ids{1}, row(one, 0), trace),
          "trace: wanted none, since this state's pass reports no intermediate results, got one");
  REFUSES(forward(model, state, ids, row(one, 0)),
          "ids: wanted at most S = 9 tokens in all, got 7 + 5");
  state.options.pass = [](auto&&...) { throw std::runtime_error("lost"); };
  CHECK_THROWS(forward(model, state, Ids{1}, row(one, 0)));
  CHECK(state.lengths == std::vector<std::size_t>{7, 5});
}

TEST_CASE("a text whose keys and values the caller has put into the memory goes on after them") {
  const Case c = llama();
  const Model model = c.model();
  const Ids a = {3, 1, 4, 1, 5}, next = {9};
  CachedAttention cached(settings_of_all(c.config), 9, 9, 2);
  ModelState state(c.config, 9, {.sequences = 2, .memory = {std::ref(cached)}});
  Tensor<2> logits = empty(1, c.config.V);
  forward(model, state, std::vector<MoreTokens>{{0, a}}, logits);
  cached.caches[1] = cached.caches[0];
  set_length(state, 3, 1);
  CHECK(state.lengths == std::vector<std::size_t>{5, 3});
  forward(model, state, std::vector<MoreTokens>{{1, next}}, logits);
  CHECK(all_close(logits, last_row(language_model(Ids{3, 1, 4, 9}, model)), c.bound(4.9)));
  CHECK(state.lengths == std::vector<std::size_t>{5, 4});

  CHECK_NOTHROW(set_length(state, 9, 1));
  REFUSES(forward(model, state, std::vector<MoreTokens>{{1, next}}, logits),
          "ids: wanted at most S = 9 tokens in all, got 9 + 1");
  REFUSES(set_length(state, 10, 1),
          "length, the tokens of a sequence: wanted at most S = 9, got 10");
  REFUSES(set_length(state, 1, 2), "sequence: wanted one of the state's sequences, got 2");
}

TEST_CASE("a model with experts runs with the caller's network, in both forms") {
  Config config{.block = llama_style(24, 4, 2, 31), .L = 2, .V = 40, .T_max = 12};
  config.block.experts = 3, config.block.chosen = 1;
  Random random(7);
  const Model model(config, draw_model(config, random));
  CHECK(parameter_count(model.weights()) == total(count_parameters(config)));
  REFUSES(ModelState(config, 8), "network: wanted one, since the model has experts, got none");

  // Each token goes through the expert with the highest score.
  const auto chosen = [](ConstMatrix x, const BlockWeights& weights) {
    Tensor<2> scores = empty(x.rows, weights.experts.size());
    matmul_bt(x, weights.router, scores);
    std::vector<std::size_t> best;
    for (std::size_t t = 0; t < x.rows; ++t) {
      const Row of = row(scores, t);
      best.push_back(std::size_t(std::ranges::max_element(of) - of.begin()));
    }
    return best;
  };
  const ReferenceNetwork formula = [&](const Tensor<2>& x, const BlockWeights& weights,
                                       const BlockSettings& s) {
    Tensor<2> y = empty(x.shape(0), s.C);
    const std::vector<std::size_t> best = chosen(x, weights);
    for (std::size_t t = 0; t < x.shape(0); ++t) {
      const Tensor<2> one = copy_of(ConstMatrix(x).rows_from(t, 1));
      std::ranges::copy(feed_forward(one, weights.experts[best[t]], s.activation),
                        row(y, t).begin());
    }
    return y;
  };
  StateOptions options{.chunk = 3};
  options.network = [&](std::span<const BlockSettings> layers, std::size_t) -> FeedForward {
    return [&, scratch = FeedForwardScratch(1, layers[0].F, layers[0].activation)](
               const Block& block, ConstMatrix x, Matrix y, const Trace&) mutable {
      const std::vector<std::size_t> best = chosen(x, block.weights());
      for (std::size_t t = 0; t < x.rows; ++t)
        feed_forward_rows(x.rows_from(t, 1), block.weights().experts[best[t]],
                          block.settings().activation, scratch, y.rows_from(t, 1));
    };
  };
  ModelState state(config, 8, options);
  const Ids ids = {3, 1, 4, 1, 5, 9, 2, 6};
  Tensor<2> logits = empty(8, config.V);
  forward_all(model, state, ids, logits);
  const Tensor<2> want = language_model(ids, model, formula);
  CHECK(all_close(logits, want, Case{"", config, 1}.bound(4)));
  REFUSES(language_model(ids, model), "block: wanted a network, since it has experts, got none");
}

TEST_CASE("layers may differ in their settings, and a model runs on packed weights") {
  Config config{.block = llama_style(24, 4, 2, 31), .L = 3, .V = 40, .T_max = 30, .tied = true};
  config.layers = settings_of_all(config);
  config.layers[1] = {.C = 24, .H = 2, .G = 1, .D = 6, .F = 10};
  config.layers[1].theta = 500, config.layers[1].pairing = Pairing::halves;
  Random random(7);
  ModelWeights weights = draw_model(config, random), packed = weights;
  CHECK(parameter_count(weights) == total(count_parameters(config)));
  for_each_tensor(packed, config, [](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0) tensor = doubled(tensor.floats(), 8 * info.size());
  });
  const Model model(config, std::move(weights)), of_packed(config, std::move(packed));
  const Ids ids = {3, 1, 4, 1, 5, 9, 2, 6};
  const Tensor<2> want = language_model(ids, model);
  // As Case::bound, for logits of a tied head from N(0, 0.02²): they stay below 1.
  const double bound = Case{"", config, 1}.bound(1);
  for (const Model* each : {&model, &of_packed}) {
    ModelState state(config, 8, {.chunk = 3});
    Tensor<2> logits = empty(8, config.V);
    forward_all(*each, state, ids, logits);
    CHECK(all_close(logits, want, bound));
    CHECK(all_close(language_model(ids, *each), want, bound));
  }
}

TEST_CASE("refusals: a text that comes twice in one call, before anything is written") {
  const Case c = llama();
  const Model model = c.model();
  const Ids a = {1, 2, 3}, b = {9, 8};
  const std::vector<MoreTokens> twice = {{1, a}, {1, b}};
  std::size_t chunks = 0;
  ModelState state(c.config, 20, {.sequences = 2, .embedded = [&](Matrix) { ++chunks; }});
  Tensor<2> last = empty(2, c.config.V), all = empty(5, c.config.V);
  REFUSES(forward(model, state, twice, last), "sequence: wanted each once, got 1");
  REFUSES(forward_all(model, state, twice, all), "sequence: wanted each once, got 1");
  CHECK(chunks == 0);
  CHECK(state.length(1) == 0);
}

TEST_CASE("refusals: too few layers, layers of another width, settings that no block can have") {
  Config config = preset("foundry-small");
  config.layers.assign(3, config.block);
  config.layers[1].C = 100, config.layers[2].G = 3;
  REFUSES(
      expect_config(config),
      "config: layers: wanted none, or L = 4, got 3; layer 1: C: wanted 256, got 100; layer 2: H, "
      "the query heads: wanted a multiple of G = 3, got 8");
}

}  // namespace t2t::sequences_test
