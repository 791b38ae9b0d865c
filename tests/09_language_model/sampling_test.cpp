// How tokens are drawn from a model's logits, and how a text is continued and ends.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "01_embedding/embedding.hpp"
#include "09_language_model/cases.hpp"
#include "09_language_model/generate.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"

namespace t2t::sampling_test {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The tokens that a filter has kept.
static Ids kept(ConstRow logits) {
  Ids ids;
  for (std::size_t v = 0; v < logits.size(); ++v)
    if (logits[v] > -infinity) ids.push_back(int(v));
  return ids;
}
/// Log-probabilities of 1/8, 1/2, 1/8 and 1/4.
static Tensor<1> eighths() {
  return {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
}

TEST_CASE("filters by hand, of probabilities 1/8, 1/2, 1/8, 1/4") {
  SamplingScratch scratch(4);
  const auto left = [&](auto filter) {
    Tensor<1> logits = eighths();
    filter(row(logits));
    return kept(row(logits));
  };
  const auto top_k = [&](std::size_t k) {
    return left([&](Row logits) { keep_top_k(logits, k, scratch); });
  };
  const auto top_p = [&](float p) {
    return left([&](Row logits) { keep_top_p(logits, p, scratch); });
  };
  const auto min_p = [&](float p) { return left([&](Row logits) { keep_min_p(logits, p); }); };
  CHECK(greedy(row(eighths())) == 1);
  CHECK(greedy(ConstRow(row(Tensor<1>{3, 8, 8}))) == 1);
  CHECK(top_k(1) == Ids{1});
  CHECK(top_k(3) == Ids{0, 1, 3});  // of the two equals the first
  CHECK(top_k(9) == Ids{0, 1, 2, 3});
  CHECK(top_p(0.4f) == Ids{1});
  CHECK(top_p(0.6f) == Ids{1, 3});  // 1/2 is too little: the one that crosses 0.6 is kept
  CHECK(top_p(0.8f) == Ids{0, 1, 3});
  CHECK(top_p(1) == Ids{0, 1, 2, 3});
  CHECK(min_p(0.3f) == Ids{1, 3});  // 0.3 of 1/2 is 0.15
  CHECK(min_p(0.2f) == Ids{0, 1, 2, 3});
  CHECK(min_p(1) == Ids{1});

  // At p = 1 all are kept, also a token of e^-40, which no sum of floats near 1 notices.
  Tensor<1> unlikely = {0, -40};
  CHECK_NOTHROW(keep_top_p(row(unlikely), 1, scratch));
  CHECK(kept(row(unlikely)) == Ids{0, 1});

  Tensor<1> logits = {1, -2, 4};
  apply_temperature(row(logits), 2);
  CHECK(all_close(logits, Tensor<1>{-1.5f, -3, 0}, 0));  // from the highest down
  logits = {-10, -20, -30};
  apply_temperature(row(logits), 1e-38f);
  CHECK(logits(0) == 0);  // nearly greedy, and nothing above the largest float
  CHECK(logits(1) <= -1e38f);
}

TEST_CASE("orders of filters: which exchanges change the result") {
  SamplingScratch scratch(4);
  Tensor<1> k_then_p = eighths(), p_then_k = eighths(), cold = eighths();
  keep_top_k(row(k_then_p), 2, scratch);  // leaves 2/3 and 1/3
  keep_top_p(row(k_then_p), 0.6f, scratch);
  CHECK(kept(row(k_then_p)) == Ids{1});
  keep_top_p(row(p_then_k), 0.6f, scratch);
  keep_top_k(row(p_then_k), 2, scratch);
  CHECK(kept(row(p_then_k)) == Ids{1, 3});

  // At temperature 1/2 odds are squared, 16 : 4 : 1 : 1, so two of them reach 0.8; at 1 it takes
  // three, as it does before top-k has left 4 : 2 : 1. next_token: temperature, top-k, top-p.
  Random random(1);
  next_token(row(cold), {.temperature = 0.5f, .top_p = 0.8f}, random, scratch);
  CHECK(kept(row(cold)) == Ids{1, 3});
  Tensor<1> by_next = eighths();
  next_token(row(by_next), {.top_k = 3, .top_p = 0.8f}, random, scratch);
  CHECK(kept(row(by_next)) == Ids{1, 3});
  // Top-p keeps 1/2 and 1/4, and so does min-p. After min-p they would be 2/3 and 1/3, and 2/3
  // alone would reach 0.6.
  Tensor<1> p_then_min = eighths();
  next_token(row(p_then_min), {.top_p = 0.6f, .min_p = 0.4f}, random, scratch);
  CHECK(kept(row(p_then_min)) == Ids{1, 3});
}

TEST_CASE(
    "a vocabulary of 50,000: the last token can be the likeliest, and filters keep hundreds") {
  constexpr std::size_t V = 50000;
  SamplingScratch scratch(V);
  Tensor<1> logits = Random(8).normal<1>({V});
  logits(V - 3) = 9;
  CHECK(greedy(row(logits)) == int(V - 3));
  Tensor<1> most = logits;
  keep_top_k(row(most), 300, scratch);
  const Ids of_300 = kept(row(most));
  CHECK(of_300.size() == 300);
  float least = infinity, left_out = -infinity;
  for (std::size_t v = 0; v < V; ++v)
    if (most(v) > -infinity)
      least = std::min(least, logits(v));
    else
      left_out = std::max(left_out, logits(v));
  CHECK(least >= left_out);

  // Of 2^0, 2^-1 … 2^-39, a min-p of 1e-9 keeps the first 30.
  Tensor<1> halves = empty(40);
  for (std::size_t v = 0; v < 40; ++v) halves(v) = -float(v) * std::log(2.0f);
  keep_min_p(row(halves), 1e-9f);
  CHECK(kept(row(halves)).size() == 30);
}

TEST_CASE("top-p adds tens of thousands of small probabilities up without losing any to rounding") {
  // Equal ones of 1/50,000, as a float: 45,000 of them are half of one too few for 0.90001. A sum
  // of floats would reach it 24 tokens earlier.
  constexpr std::size_t V = 50000;
  SamplingScratch scratch(V);
  Tensor<1> equal = xt::zeros<float>({V});
  keep_top_p(row(equal), 0.90001f, scratch);
  CHECK(kept(row(equal)).size() == 45001);
}

TEST_CASE("with scratch memory for longer rows, what is behind a row's numbers is not looked at") {
  SamplingScratch exact(4), longer(9);
  longer.weights.fill(50);
  Random random(4), again(4);
  const Tensor<1> logits = eighths();
  CHECK(draw(row(logits), again, longer) == draw(row(logits), random, exact));
  Tensor<1> top_k = eighths(), top_p = eighths();
  keep_top_k(row(top_k), 2, longer);
  CHECK(kept(row(top_k)) == Ids{1, 3});
  longer.weights.fill(std::log(0.1f));  // with five more of 1/10, 0.6 of all would be 0.9
  keep_top_p(row(top_p), 0.6f, longer);
  CHECK(kept(row(top_p)) == Ids{1, 3});
}

TEST_CASE("a token is where the sum of the probabilities passes the uniform number") {
  const std::vector<float> quarters = {0.25f, 0, 0.5f, 0.25f, 0};
  CHECK(token_at(quarters, 0) == 0);
  CHECK(token_at(quarters, 0.24) == 0);
  CHECK(token_at(quarters, 0.25) == 2);
  CHECK(token_at(quarters, 0.74) == 2);
  CHECK(token_at(quarters, 0.75) == 3);
  CHECK(token_at(quarters, 1 - 0x1p-53) == 3);  // never the last one, which has no probability
  // Rows need not sum to 1.
  CHECK(token_at(std::vector<float>{3, 1}, 0.74) == 0);
  CHECK(token_at(std::vector<float>{3, 1}, 0.76) == 1);
}

TEST_CASE("draw: each token as often as its probability says; a seed repeats its draws") {
  SamplingScratch scratch(4);
  Tensor<1> logits = eighths();
  logits(0) = -infinity;
  Random random(4), again(4);
  constexpr int draws = 20000;
  int count[4] = {}, different = 0;
  for (int i = 0; i < draws; ++i) {
    const int id = draw(row(logits), random, scratch);
    // Along a line of length 1, in the order of ids: 4/7, 1/7, 2/7.
    const double u = again.next_uniform();
    different += id != (u < 4.0 / 7 ? 1 : u < 5.0 / 7 ? 2 : 3);
    ++count[id];
  }
  CHECK(different == 0);
  CHECK(count[0] == 0);
  const double want[] = {0, 4.0 / 7, 1.0 / 7, 2.0 / 7};
  for (int v = 1; v < 4; ++v)  // four standard deviations of a binomial
    CHECK(std::abs(count[v] - draws * want[v]) < 4 * std::sqrt(draws * want[v] * (1 - want[v])));
}

TEST_CASE("generation of one token comes to an end without a crash") {
  const Case c = llama();
  const Model model = c.model();
  CHECK(ending_apart([&] {
          ModelState state(c.config, 4);
          Random random(1);
          generate(model, state, Ids{3, 1}, {.most = 1}, random);
        }) == "returned");
}

TEST_CASE("generation: greedy text is that of the whole model run anew for each token") {
  for (const Case& c : {llama(), mixed(), gpt2()}) {
    CAPTURE(c.name);
    const Model model = c.model();
    Ids text = {3, 1, 4, 1, 5};
    ModelState state(c.config, c.config.T_max, {.chunk = 2});
    Random random(1);
    const Generation six{.most = 6, .sampling = {.temperature = 0}};
    const Ids got = generate(model, state, text, six, random);
    CHECK(state.length() == 10);  // the sixth has not been through the model yet
    // [anew]
    for (int i = 0; i < 6; ++i) {
      const Tensor<2> logits = language_model(text, model);      // [T, V]
      text.push_back(greedy(row(logits, logits.shape(0) - 1)));  // T grows by 1
    }
    // [/anew]
    CHECK(got == Ids(text.begin() + 5, text.end()));

    // The rest of the context. The token that has not been through the model goes in front, and
    // one more token is predicted than there are positions.
    const auto rest = [&](int id) { return text.push_back(id), true; };
    const Generation more{.most = 99, .sampling = {.temperature = 0}};
    CHECK(generate(model, state, Ids{got.back()}, more, random, rest) == Ending::context_full);
    CHECK(text.size() == c.config.T_max + 1);
    CHECK(state.length() == c.config.T_max);
  }
}

TEST_CASE("generation of one token: the greedy one, and the limit of tokens ends it") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 4);
  Random random(1);
  const Tensor<2> logits = language_model(Ids{3, 1}, model);
  const Generation one{.most = 1, .sampling = {.temperature = 0}};
  Ids heard;
  Ending ending = Ending::caller;
  const auto hear = [&](int id) { return heard.push_back(id), true; };
  CHECK_NOTHROW(ending = generate(model, state, Ids{3, 1}, one, random, hear));
  CHECK(ending == Ending::most_tokens);
  CHECK(heard == Ids{greedy(row(logits, 1))});
  CHECK(state.length() == 2);
}

TEST_CASE("generation allocates nothing after the first token") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 12);
  Random random(1);
  std::size_t heard = 0, at_first = 0;
  const std::function<bool(int)> hear = [&](int) {
    if (++heard == 1) at_first = allocations;
    return true;
  };
  const Generation six{.most = 6, .sampling = {.top_k = 9, .top_p = 0.9f}};
  generate(model, state, Ids{3, 1}, six, random, hear);
  const std::size_t at_last = allocations;
  CHECK(heard == 6);
  CHECK(Allocated{5, at_last - at_first});
}

TEST_CASE("generation ends at a stop token, which the caller does not get, and when it says so") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 29);
  Random random(1);
  Ids heard;
  const auto hear = [&](int id) { return heard.push_back(id), heard.size() < 3; };
  Generation settings{.sampling = {.temperature = 0}};
  CHECK(generate(model, state, Ids{7}, settings, random, hear) == Ending::caller);
  CHECK(heard.size() == 3);
  CHECK(state.length() == 3);

  const Ids before = heard;
  settings.stop_tokens = {before.back()};
  settings.filter = [](Row logits) { logits[60] = 100; };  // a token that must come
  heard.clear(), reset(state);
  CHECK(generate(model, state, Ids{7}, settings, random, hear) == Ending::caller);
  CHECK(heard == Ids{60, 60, 60});
  settings.stop_tokens = {60};
  heard.clear(), reset(state);
  CHECK(generate(model, state, Ids{7}, settings, random, hear) == Ending::stop_token);
  CHECK(heard.empty());
}

TEST_CASE(
    "generation: a thousand tokens, each of them filtered, and any of the stop tokens ends it") {
  Case c = llama();
  c.config.T_max = 1020;
  const Model model = c.model();
  ModelState state(c.config, 1020);
  Random random(1);
  std::size_t filtered = 0;
  Generation settings{.sampling = {.temperature = 0}};
  settings.most = 1000, settings.stop_tokens = {58, 59};
  settings.filter = [&](Row logits) { logits[std::size_t(filtered++ == 990 ? 59 : 60)] = 100; };
  Ids heard;
  const auto hear = [&](int id) { return heard.push_back(id), true; };
  CHECK(generate(model, state, Ids{7}, settings, random, hear) == Ending::stop_token);
  CHECK(heard == Ids(990, 60));
  filtered = 9000, heard.clear(), reset(state);
  CHECK(generate(model, state, Ids{7}, settings, random, hear) == Ending::most_tokens);
  CHECK(heard == Ids(1000, 60));
}

TEST_CASE("generation: of several endings the stop token counts first, the context last") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 2);  // full after the prompt and one token
  Random random(1);
  Generation settings{.most = 2, .stop_tokens = {60}, .sampling = {.temperature = 0}};
  std::size_t heard = 0;
  const auto ending = [&](std::size_t tokens_wanted, int second) {
    heard = 0, reset(state);
    std::size_t asked = 0;
    settings.filter = [&](Row logits) { logits[++asked == 2 ? std::size_t(second) : 8] = 100; };
    return generate(model, state, Ids{7}, settings, random,
                    [&](int) { return ++heard < tokens_wanted; });
  };
  CHECK(ending(2, 60) == Ending::stop_token);
  CHECK(heard == 1);
  CHECK(ending(2, 9) == Ending::caller);
  CHECK(heard == 2);
  CHECK(ending(99, 9) == Ending::most_tokens);
  CHECK(heard == 2);
  settings.most = 3;
  CHECK(ending(99, 9) == Ending::context_full);
  CHECK(heard == 2);

  CHECK(ending_text(Ending::stop_token) == "a stop token");
  CHECK(ending_text(Ending::caller) == "the caller");
  CHECK(ending_text(Ending::most_tokens) == "the limit of tokens");
  CHECK(ending_text(Ending::context_full) == "the end of the context");
}

TEST_CASE("a caller: a model is made, continues a prompt, and is scored on a text") {
  // [caller]
  const Sizes small{.C = 32, .L = 2, .H = 4, .G = 2, .V = 256};  // each byte is a token
  const Config config = resized(preset("foundry-small"), small);
  Random random(1);
  const Model model(config, draw_model(config, random));  // or chapter 10's trained weights

  ModelState state(config, 64);  // room for 64 tokens
  const std::vector<int> prompt = byte_ids("A language model");
  const Generation generation{.most = 20, .sampling = {.temperature = 0.7f, .top_k = 40}};
  const std::vector<int> answer = generate(model, state, prompt, generation, random);

  reset(state);                                       // the next text begins at position 0 again
  Tensor<2> logits = empty(prompt.size(), config.V);  // [T, V]
  forward_all(model, state, prompt, logits);
  const double loss = next_token_loss(logits, prompt);
  // [/caller]
  CHECK(answer.size() == 20);
  CHECK(std::abs(loss - std::log(256)) < 1);  // near ln V, as untrained models are
}

TEST_CASE("refusals: sampling and generation") {
  SamplingScratch scratch(3);
  Random random(1);
  Tensor<1> bad = {1, NAN, 2}, none = {-infinity, -infinity}, logits = {1, 2, 3};
  REFUSES(greedy(row(bad)), "logits: wanted numbers below infinity, got nan for token 1");
  REFUSES(keep_top_p(row(bad), 0.5f, scratch),
          "logits: wanted numbers below infinity, got nan for token 1");
  REFUSES(draw(row(none), random, scratch), "logits: wanted a token above -infinity, got none");
  bad(1) = infinity;
  REFUSES(greedy(row(bad)), "logits: wanted numbers below infinity, got inf for token 1");
  REFUSES(draw(row(bad), random, scratch),
          "logits: wanted numbers below infinity, got inf for token 1");
  REFUSES(apply_temperature(row(logits), 0), "temperature: wanted a number above 0, got 0");
  REFUSES(keep_top_k(row(logits), 0, scratch), "k, the tokens to keep: wanted at least 1, got 0");
  REFUSES(keep_top_p(row(logits), 0, scratch),
          "p, the probability to keep: wanted above 0 and at most 1, got 0");
  REFUSES(keep_top_p(row(logits), 1.5f, scratch),
          "p, the probability to keep: wanted above 0 and at most 1, got 1.5");
  REFUSES(apply_temperature(row(logits), -1), "temperature: wanted a number above 0, got -1");
  REFUSES(apply_temperature(row(logits), infinity),
          "temperature: wanted a number above 0, got inf");
  REFUSES(keep_min_p(row(logits), 1.5f), "min_p, the share of the largest: wanted 0 to 1, got 1.5");
  REFUSES(keep_min_p(row(logits), -0.5f),
          "min_p, the share of the largest: wanted 0 to 1, got -0.5");
  REFUSES(next_token(row(logits), {.temperature = -1}, random, scratch),
          "temperature: wanted 0 (greedy) or above, got -1");
  REFUSES(next_token(row(logits), {.temperature = 0, .top_p = 0}, random, scratch),
          "top_p: wanted above 0 and at most 1, got 0");
  REFUSES(next_token(row(logits), {.temperature = infinity}, random, scratch),
          "temperature: wanted 0 (greedy) or above, got inf");
  REFUSES(next_token(row(logits), {.top_p = 1.5f}, random, scratch),
          "top_p: wanted above 0 and at most 1, got 1.5");
  REFUSES(next_token(row(logits), {.min_p = -0.5f}, random, scratch),
          "min_p: wanted 0 to 1, got -0.5");
  REFUSES(next_token(row(logits), {.min_p = 1.5f}, random, scratch),
          "min_p: wanted 0 to 1, got 1.5");
  REFUSES(token_at(ConstRow(), 0), "probabilities: wanted at least 1, got 0");
  REFUSES(token_at(row(logits), 1), "u, the uniform number: wanted in [0, 1), got 1");
  REFUSES(token_at(row(logits), -0.5), "u, the uniform number: wanted in [0, 1), got -0.5");
  SamplingScratch brief(2);
  CHECK_THROWS_AS(draw(row(logits), random, brief), std::invalid_argument);
  CHECK_THROWS_AS(keep_top_k(row(logits), 1, brief), std::invalid_argument);
  CHECK_THROWS_AS(keep_top_p(row(logits), 0.5f, brief), std::invalid_argument);

  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 4);
  REFUSES(generate(model, state, Ids{1}, {.stop_tokens = {61}}, random),
          "stop tokens: wanted ids in [0, 61), got 61");
  REFUSES(generate(model, state, Ids{1}, {.stop_tokens = {-1}}, random),
          "stop tokens: wanted ids in [0, 61), got -1");
  REFUSES(generate(model, state, Ids{}, {}, random), "T, the tokens: wanted at least 1, got 0");
  REFUSES(generate(model, state, Ids{1}, {.most = 0}, random),
          "most, the tokens to generate: wanted at least 1, got 0");
}

}  // namespace t2t::sampling_test
