// What must be true of the model: the stack, what it is counted to cost, how tokens are drawn from
// its logits, and how a text goes on and ends.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>

#include "09_language_model/accounts.hpp"
#include "09_language_model/generate.hpp"
#include "all_close.hpp"
#include "allocations.hpp"
#include "hashed_numbers.hpp"
#include "npy.hpp"

using namespace t2t;

namespace {

using Ids = std::vector<int>;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Case {
  std::string name;
  Config config;

  std::string file(const char* of) const { return T2T_FIXTURES "/" + name + of + ".npy"; }
  Ids ids() const { return load_npy_ints(file("_ids")); }
  Tensor<2> want() const { return load_npy<2>(file("_logits")); }
  ModelWeights weights() const {
    const Config& c = config;
    const std::size_t HD = c.H * c.D, GD = c.G * c.D;
    const auto norm = [&](std::uint32_t seed) -> NormWeights {
      return {numbers(seed, 1, 1, c.C), numbers(seed + 1, 1, 0, c.norm == Norm::layer ? c.C : 0)};
    };
    ModelWeights model;
    model.embedding = numbers(1, 2, 0, c.V, c.C), model.final_norm = norm(4);
    if (c.positions == Positions::learned) model.positions = numbers(2, 1, 0, c.T_max, c.C);
    if (!c.tied) model.head = numbers(3, 1, 0, c.V, c.C);
    for (std::uint32_t l = 0; l < c.L; ++l) {
      const std::uint32_t seed = 100 * (l + 1);
      const auto w = [&](std::uint32_t i, std::size_t rows, std::size_t cols) {
        return numbers(seed + i, 0.5f, 0, rows, cols);
      };
      const auto b = [&](std::uint32_t i, std::size_t size) {
        return numbers(seed + i, 1, 0, c.biases ? size : 0);
      };
      BlockWeights block;
      block.attention_norm = norm(seed + 2), block.feed_forward_norm = norm(seed + 18);
      block.w_q = w(4, HD, c.C), block.w_k = w(5, GD, c.C), block.w_v = w(6, GD, c.C);
      block.b_q = b(8, HD), block.b_k = b(9, GD), block.b_v = b(10, GD);
      block.w_o = w(7, c.C, HD), block.b_o = b(11, c.C);
      if (is_gated(c.activation)) block.feed_forward.w_gate = w(13, c.F, c.C);
      block.feed_forward.w_up = w(14, c.F, c.C), block.feed_forward.b_up = b(16, c.F);
      block.feed_forward.w_down = w(15, c.C, c.F), block.feed_forward.b_down = b(17, c.C);
      model.blocks.push_back(block);
    }
    return model;
  }

  // As in chapter 08 a block keeps K·u of the stream's size, u being 2^-24; errors of L blocks are
  // of either sign, the norm passes a relative error on, and the head sums C products more.
  double bound(double largest) const {
    const Config& c = config;
    const double K = 4 * std::sqrt(c.C) + 4 * std::sqrt(c.D) + std::sqrt(c.T_max) +
                     std::sqrt(c.H * c.D) + std::sqrt(c.F);
    return (std::sqrt(c.L) * K + std::sqrt(c.C)) * 0x1p-24 * largest;
  }
};

Case llama() {
  return {"llama",
          {.C = 30, .L = 3, .H = 6, .G = 2, .D = 8, .F = 37, .V = 61, .T_max = 29, .theta = 500}};
}
Case gpt2() {
  Config c = resized(preset("gpt2"), {.C = 24, .L = 3, .H = 4, .G = 4, .V = 53, .T_max = 17});
  return {"gpt2", c};
}

Tensor<2> last_row(const Tensor<2>& x) {
  return xt::view(x, xt::range(x.shape(0) - 1, x.shape(0)), xt::all());
}
Matrix one_row(Tensor<1>& x) { return {x.data(), 1, x.size(), x.size()}; }

/// Tokens that a filter has left.
Ids kept(ConstRow logits) {
  Ids ids;
  for (std::size_t v = 0; v < logits.size(); ++v)
    if (logits[v] > -infinity) ids.push_back(int(v));
  return ids;
}
/// Log-probabilities of 1/8, 1/2, 1/8 and 1/4.
Tensor<1> eighths() {
  return {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
}

}  // namespace

TEST_CASE("formula, prefill, chunks and single tokens give the logits that PyTorch gives") {
  for (const Case& c : {llama(), gpt2()}) {
    CAPTURE(c.name);
    const Ids ids = c.ids();
    const std::size_t T = ids.size(), V = c.config.V;
    const ModelWeights weights = c.weights();
    const Tensor<2> want = c.want();
    const double bound = c.bound(c.name == "llama" ? 4.9 : 8.1);
    CHECK(all_close(language_model(ids, weights, c.config), want, bound));

    for (const std::size_t chunk : {T, std::size_t(4), std::size_t(1)}) {
      ModelState state = model_state(c.config, T, chunk);
      Tensor<2> logits = xt::ones<float>({T, V}) * NAN, last = xt::ones<float>({1, int(V)}) * NAN;
      forward_all(c.config, weights, state, ids, logits);
      CHECK(all_close(logits, want, bound));
      CHECK(state.length == T);
      reset(state);
      forward(c.config, weights, state, ids, row(last, 0));
      CHECK(all_close(last, last_row(want), bound));
    }
    const float loss = load_npy<1>(c.file("_loss"))(0);
    CHECK(std::abs(next_token_loss(want, ids) - loss) < 4 * 0x1p-24 * loss);
  }
}

TEST_CASE("loss by hand: what a token foretells is the next one, and the last foretells nothing") {
  // Odds of 3 to 1 for token 1, which comes: −ln(3/4). The second row is nobody's business.
  CHECK(next_token_loss(Tensor<2>{{0, std::log(3.0f)}, {500, -500}}, Ids{0, 1}) ==
        doctest::Approx(-std::log(0.75)).epsilon(1e-6));
  CHECK(next_token_loss(Tensor<2>(xt::zeros<float>({3, 19})), Ids{3, 7, 18}) ==
        doctest::Approx(std::log(19)).epsilon(1e-6));
}

TEST_CASE("before training, the loss is a little above ln V") {
  // A row of norm √C with a head's row from N(0, 0.02²) gives a logit from N(0, s²), s² = C·0.02²;
  // the mean of e^logit is then e^(s²/2). So the loss is ln V + s²/2, less the mean of T − 1 logits
  // of random tokens, which is off by s/√(T − 1). Four times that is allowed.
  const Config config = resized(preset("foundry-small"), {.C = 100, .L = 2, .H = 5, .G = 5});
  Random random(3);
  const ModelWeights weights = draw_model(config, random);
  Ids ids;
  for (int t = 0; t < 200; ++t) ids.push_back(int(random.next_uniform() * double(config.V)));
  const double s = std::sqrt(100.0) * 0.02, ln_v = std::log(double(config.V));
  const double loss = next_token_loss(language_model(ids, weights, config), ids);
  CHECK(std::abs(loss - (ln_v + s * s / 2)) < 4 * s / std::sqrt(199.0));
}

TEST_CASE("a token more allocates nothing") {
  const Case c = llama();
  const ModelWeights weights = c.weights();
  ModelState state = model_state(c.config, 20);
  Tensor<1> logits = empty(c.config.V);
  const Ids ids = c.ids(), next = {5};
  forward(c.config, weights, state, ids, row(logits));
  const std::size_t before = allocations;
  for (int i = 0; i < 3; ++i) forward(c.config, weights, state, next, row(logits));
  CHECK(allocations == before);
}

TEST_CASE("a trace names the layer; what it throws leaves the text as it was") {
  const Case c = llama();
  const ModelWeights weights = c.weights();
  ModelState state = model_state(c.config, 20, 5);
  Tensor<1> logits = empty(c.config.V), again = empty(c.config.V);
  const Ids ids = c.ids();
  std::vector<std::string> names;
  forward(c.config, weights, state, Ids{1}, row(logits),
          [&](std::string_view name, ConstMatrix) { names.emplace_back(name); });
  CHECK(names.front() == "embedding");
  CHECK(names[1] == "layer 0 attention_norm");
  CHECK(names[names.size() - 3] == "layer 2 x_plus_feed_forward");
  CHECK(names.back() == "logits");

  const auto stop = [](std::string_view name, ConstMatrix x) {
    if (name == "layer 1 heads" && x.rows < 5) throw std::runtime_error("stop");
  };
  CHECK_THROWS_AS(forward(c.config, weights, state, ids, row(logits), stop), std::runtime_error);
  CHECK(state.length == 1);
  CHECK(state.caches[0].length == 1);
  truncate(state, 0);
  forward(c.config, weights, state, ids, row(again));
  CHECK(all_close(Tensor<2>(xt::view(again, xt::newaxis())), last_row(c.want()), c.bound(4.9)));
}

TEST_CASE("parameters: published models to the last one, and what is counted is what is drawn") {
  CHECK(total(count_parameters(preset("llama2-7b"))) == 6'738'415'616);
  CHECK(total(count_parameters(preset("gpt2"))) == 124'439'808);
  CHECK(total(count_parameters(preset("smollm2-135m"))) == 134'515'008);
  Config small = preset("foundry-small");
  CHECK(total(count_parameters(small)) == 7'078'144);
  small.tied = true;
  CHECK(total(count_parameters(small)) == 4'980'992);
  Random random(1);
  for (const Config& config : {llama().config, gpt2().config})
    CHECK(parameter_count(draw_model(config, random)) == total(count_parameters(config)));
}

TEST_CASE("FLOPs and bytes by hand") {
  const Config config{.C = 2, .L = 7, .H = 1, .G = 1, .D = 2, .F = 3, .V = 5, .T_max = 4};
  // Three tokens: q, k, v and o of 2 x 2; 1 + 2 + 3 keys of 2 numbers, and their values; three
  // matrices of 2 x 3; one row of logits. Each number twice: multiplied and added.
  const Flops flops = count_flops(config, 3, 3, 1);
  CHECK(flops.projections == 7 * 2 * 3 * 16);
  CHECK(flops.attention == 7 * 4 * 6 * 2);
  CHECK(flops.feed_forward == 7 * 2 * 3 * 18);
  CHECK(flops.head == 2 * 5 * 2);

  const InferenceMemory inference = inference_memory(preset("llama2-7b"), 2048, 2);
  CHECK(inference.cache == 0x1p30);
  CHECK(inference.weights == 2 * 6'738'415'616.0);
  const TrainingMemory training = training_memory(preset("llama2-7b"), 1, 2048, 2);
  CHECK(training.weights + training.gradients + training.optimizer == 16 * 6'738'415'616.0);
  // Two texts of 3 tokens: 4·2 + 2·2 + 2·2 + 3·3 numbers a block and token, two of 2 and 5 logits.
  CHECK(training_memory(config, 2, 3, 4).activations == 4 * 6 * (7 * 25 + 9));
  CHECK(training_memory(config, 2, 3, 4).attention_weights == 4 * 2 * 7 * 3 * 3);
}

TEST_CASE("filters by hand, of probabilities 1/8, 1/2, 1/8, 1/4") {
  SamplingScratch scratch = sampling_scratch(4);
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

  Tensor<1> logits = {1, -2, 4};
  apply_temperature(row(logits), 2);
  CHECK(all_close(logits, Tensor<1>{-1.5f, -3, 0}, 0));  // from the highest down
  logits = {-10, -20, -30};
  apply_temperature(row(logits), 1e-38f);
  CHECK(logits(0) == 0);  // all but greedy, and nothing above the largest float
  CHECK(logits(1) <= -1e38f);
}

TEST_CASE("orders of filters: which ones agree and which don't") {
  SamplingScratch scratch = sampling_scratch(4);
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
}

TEST_CASE("draw: each token as often as its probability says, dropped ones never, seeds repeat") {
  SamplingScratch scratch = sampling_scratch(4);
  Tensor<1> logits = eighths();
  logits(0) = -infinity;
  Random random(4), again(4);
  constexpr int draws = 20000;
  int count[4] = {}, different = 0;
  for (int i = 0; i < draws; ++i) {
    const int id = draw(row(logits), random, scratch);
    different += id != draw(row(logits), again, scratch);
    ++count[id];
  }
  CHECK(different == 0);
  CHECK(count[0] == 0);
  const double want[] = {0, 4.0 / 7, 1.0 / 7, 2.0 / 7};
  for (int v = 1; v < 4; ++v)  // four standard deviations of a binomial
    CHECK(std::abs(count[v] - draws * want[v]) < 4 * std::sqrt(draws * want[v] * (1 - want[v])));
}

TEST_CASE("generation: greedy text is what the whole model, run anew each time, would say") {
  for (const Case& c : {llama(), gpt2()}) {
    CAPTURE(c.name);
    const ModelWeights weights = c.weights();
    Ids text = {3, 1, 4, 1, 5};
    ModelState state = model_state(c.config, c.config.T_max, 2);
    Random random(1);
    const Generation six{.most = 6, .sampling = {.temperature = 0}};
    const Ids got = generate(c.config, weights, state, text, six, random);
    CHECK(state.length == 10);  // the sixth was handed on and has not been through the model
    for (int i = 0; i < 6; ++i)
      text.push_back(greedy(row(last_row(language_model(text, weights, c.config)), 0)));
    CHECK(got == Ids(text.begin() + 5, text.end()));

    // The rest of the context: what has not been seen goes in front, and one more is foretold than
    // there are places.
    const auto rest = [&](int id) { return text.push_back(id), true; };
    const Generation more{.most = 99, .sampling = {.temperature = 0}};
    CHECK(generate(c.config, weights, state, Ids{got.back()}, more, random, rest) ==
          Ending::context_full);
    CHECK(text.size() == c.config.T_max + 1);
    CHECK(state.length == c.config.T_max);
  }
}

TEST_CASE("generation ends at a stop token, which is not handed on, and when the caller says so") {
  const Case c = llama();
  const ModelWeights weights = c.weights();
  ModelState state = model_state(c.config, 29);
  Random random(1);
  Ids heard;
  const auto hear = [&](int id) { return heard.push_back(id), heard.size() < 3; };
  Generation settings{.sampling = {.temperature = 0}};
  CHECK(generate(c.config, weights, state, Ids{7}, settings, random, hear) == Ending::caller);
  CHECK(heard.size() == 3);
  CHECK(state.length == 3);

  const Ids before = heard;
  settings.stops = {before.back()};
  settings.filter = [](Row logits) { logits[60] = 100; };  // a token that must come
  heard.clear(), reset(state);
  CHECK(generate(c.config, weights, state, Ids{7}, settings, random, hear) == Ending::caller);
  CHECK(heard == Ids{60, 60, 60});
  settings.stops = {60};
  heard.clear(), reset(state);
  CHECK(generate(c.config, weights, state, Ids{7}, settings, random, hear) == Ending::stop_token);
  CHECK(heard.empty());
}

// [encoder_decoder]
/// Encoder: every token of the source sees all of it.
static Tensor<2> encoded(const Tensor<2>& source, const AttentionWeights& self, std::size_t H) {
  return source + multi_head_attention(source, self, H, Mask::none);  // [S, C]
}
/// Decoder: each token sees those before it, then all of what the encoder made of the source.
static Tensor<2> decoded(const Tensor<2>& x, const Tensor<2>& memory, const AttentionWeights& self,
                         const AttentionWeights& cross, std::size_t H) {
  const Tensor<2> seen = x + multi_head_attention(x, self, H, Mask::causal);  // [T, C]
  return seen + multi_head_attention(seen, memory, cross, H, Mask::none);     // [T, C]
}
// [/encoder_decoder]

TEST_CASE("encoder and decoder: who sees whom is a matter of masks") {
  Random random(2);
  const std::size_t H = 2, C = 6;
  const AttentionWeights self = draw_attention_weights(C, random);
  const AttentionWeights cross = draw_attention_weights(C, random);
  const auto first_row = [](const Tensor<2>& x) { return Tensor<1>(xt::row(x, 0)); };
  const auto last_changed = [](Tensor<2> x) {
    xt::row(x, int(x.shape(0)) - 1) += 1;
    return x;
  };
  const Tensor<2> source = random.normal<2>({5, C}), x = random.normal<2>({3, C});
  const Tensor<2> memory = encoded(source, self, H), y = decoded(x, memory, self, cross, H);

  // The encoder's first token sees the source's last; the decoder's does not see its own.
  const Tensor<2> other = encoded(last_changed(source), self, H);
  CHECK_FALSE(all_close(first_row(other), first_row(memory), 1e-3));
  CHECK(all_close(first_row(decoded(last_changed(x), memory, self, cross, H)), first_row(y), 0));
  CHECK_FALSE(all_close(first_row(decoded(x, other, self, cross, H)), first_row(y), 1e-3));
}

#define REFUSES(call, message) CHECK_THROWS_WITH_AS(call, message, std::invalid_argument)

TEST_CASE("refusals: configs, with every reason at once") {
  Config config = preset("foundry-small");
  config.H = 7, config.D = 5, config.F = 0, config.eps = 0;
  REFUSES(
      expect_config(config),
      "config: H, the query heads: wanted a multiple of G = 4, got 7; D, the width of a head: "
      "wanted an even number for RoPE, got 5; F, the feed-forward width: wanted at least 1, got "
      "0; eps: wanted a number above 0, got 0");
  REFUSES(expect_config(resized(preset("foundry-small"), {.H = 12})),
          "config: D, the width of a head: wanted at least 1 (C = 256 over H = 12?), got 0");
  config = preset("llama2-7b");
  config.biases = true, config.V = std::size_t(1) << 50;
  REFUSES(
      expect_config(config),
      "config: biases: wanted none with a gated activation, got swiglu; the sizes: wanted under "
      "1e18 parameters, got 9e+18");
  REFUSES(preset("gpt-2"),
          "preset: wanted one of foundry-small, gpt2, smollm2-135m, llama2-7b, got gpt-2");
  CHECK(resized(preset("foundry-small"), {.C = 512, .H = 4}).F == 1365);
  CHECK(resized(preset("gpt2"), {.C = 512, .H = 4}).D == 128);
}

TEST_CASE("refusals: weights, ids and room, before anything is written") {
  const Case c = gpt2();
  ModelWeights weights = c.weights();
  ModelState state = model_state(c.config, 7, 4);
  Tensor<1> logits = xt::ones<float>({53});
  const auto go = [&](const Ids& ids) { forward(c.config, weights, state, ids, row(logits)); };
  REFUSES(go({}), "T, the tokens: wanted at least 1, got 0");
  REFUSES(go({1, 2, 3, 4, 5, 53}), "ids: token 5 is 53, outside [0, 53), the vocabulary");
  REFUSES(go(Ids(8, 1)), "ids: wanted at most S = 7 tokens in all, got 0 + 8");
  CHECK(state.length == 0);
  go(Ids(7, 1));
  const Tensor<1> before = logits;
  REFUSES(go({1}), "ids: wanted at most S = 7 tokens in all, got 7 + 1");
  CHECK(state.length == 7);
  CHECK(all_close(logits, before, 0));
  REFUSES(truncate(state, 8), "position, the tokens to keep: wanted at most the length 7, got 8");
  REFUSES(forward(c.config, weights, state, Ids{1}, Row(logits.data(), 9)),
          "ids: wanted at most S = 7 tokens in all, got 7 + 1");
  reset(state);
  REFUSES(forward(c.config, weights, state, Ids{1}, Row(logits.data(), 9)),
          "logits: wanted shape [53], got [9]");
  REFUSES(language_model(Ids(18, 1), weights, c.config),
          "T, the tokens: wanted 1 to T_max = 17, got 18");
  REFUSES(model_state(c.config, 18),
          "S, the positions to make room for: wanted 1 to T_max = 17, got 18");
  REFUSES(next_token_loss(one_row(logits), Ids{1}),
          "T, the tokens of a loss: wanted at least 2, got 1");

  weights.blocks[2].w_q = weights.blocks[2].feed_forward.w_up;
  REFUSES(go({1}), "layer 2: w_q: wanted shape [24, 24], got [96, 24]");
  weights.blocks.pop_back();
  REFUSES(go({1}), "blocks: wanted L = 3, got 2");
  weights.head = weights.embedding;
  REFUSES(go({1}), "head: wanted shape [0, 0], got [53, 24]");
}

TEST_CASE("refusals: sampling and generation") {
  SamplingScratch scratch = sampling_scratch(3);
  Random random(1);
  Tensor<1> bad = {1, NAN, 2}, none = {-infinity, -infinity}, logits = {1, 2, 3};
  REFUSES(greedy(row(bad)), "logits: token 1 has nan");
  REFUSES(keep_top_p(row(bad), 0.5f, scratch), "logits: token 1 has nan");
  REFUSES(draw(row(none), random, scratch), "logits: every token is at -infinity");
  REFUSES(apply_temperature(row(logits), 0), "temperature: wanted a number above 0, got 0");
  REFUSES(keep_top_k(row(logits), 0, scratch), "k, the tokens to keep: wanted at least 1, got 0");
  REFUSES(keep_top_p(row(logits), 0, scratch),
          "p, the probability to keep: wanted above 0 and at most 1, got 0");
  REFUSES(keep_min_p(row(logits), 1.5f), "min_p, the share of the largest: wanted 0 to 1, got 1.5");
  REFUSES(next_token(row(logits), {.temperature = -1}, random, scratch),
          "temperature: wanted 0 (greedy) or above, got -1");

  const Case c = llama();
  const ModelWeights weights = c.weights();
  ModelState state = model_state(c.config, 4);
  REFUSES(generate(c.config, weights, state, Ids{1}, {.stops = {61}}, random),
          "stops: wanted ids in [0, 61), got 61");
  REFUSES(generate(c.config, weights, state, Ids{}, {}, random),
          "T, the tokens: wanted at least 1, got 0");
  REFUSES(generate(c.config, weights, state, Ids{1}, {.most = 0}, random),
          "most, the tokens to generate: wanted at least 1, got 0");
}
