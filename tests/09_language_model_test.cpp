// What must be true of the model: its logits, its loss, and the counts of parameters and work.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/cases.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/packed_stand_ins.hpp"

namespace t2t::language_model_test {

TEST_CASE("a loss comes to an end without a crash, and reads nothing behind the last token") {
  const Tensor<2> logits = {{0, 1}, {2, 3}};
  CHECK(ending_apart([&] { next_token_loss(logits, Ids{0, 1}); }) == "returned");
}

TEST_CASE("formula, prefill, chunks and single tokens give the logits that PyTorch gives") {
  for (const Case& c : {llama(), mixed(), gpt2()}) {
    CAPTURE(c.name);
    const Ids ids = c.ids();
    const std::size_t T = ids.size(), V = c.config.V;
    const Model model = c.model();
    const Tensor<2> want = c.want();
    const double bound = c.bound(c.largest);
    CHECK(all_close(language_model(ids, model), want, bound));

    for (const std::size_t chunk : {T, std::size_t(4), std::size_t(1)}) {
      ModelState state(c.config, T, {.chunk = chunk});
      Tensor<2> logits = xt::ones<float>({T, V}) * NAN, last = xt::ones<float>({1, int(V)}) * NAN;
      forward_all(model, state, ids, logits);
      CHECK(all_close(logits, want, bound));
      CHECK(state.length() == T);
      reset(state);
      forward(model, state, ids, row(last, 0));
      CHECK(all_close(last, last_row(want), bound));
    }
    const float loss = load_npy<1>(c.file("_loss"))(0);
    CHECK(std::abs(next_token_loss(want, ids) - loss) < 4 * 0x1p-24 * loss);
  }
}

TEST_CASE(
    "a scaled embedding is a table of larger numbers; logits are multiplied by a factor, and then "
    "capped by cap·tanh") {
  const Case c = llama();
  const Ids ids = c.ids();
  const std::size_t T = ids.size(), V = c.config.V;
  const float scale = 5.5f, factor = 0.75f, cap = 1.5f;
  ModelWeights weights = c.weights();
  weights.embedding = Tensor<2>(scale * weights.embedding.floats());
  const Tensor<2> plain = factor * language_model(ids, Model(c.config, std::move(weights)));
  const Tensor<2> want = cap * xt::tanh(plain / cap);

  Config config = c.config;
  config.embedding_scale = scale, config.logit_scale = factor, config.logit_cap = cap;
  const Model model(config, c.weights());
  CHECK(all_close(language_model(ids, model), want, c.bound(cap)));
  ModelState state(config, T, {.chunk = 4});
  Tensor<2> logits = empty(T, V);
  forward_all(model, state, ids, logits);
  CHECK(all_close(logits, want, c.bound(c.largest)));  // tanh passes on less than it is given
  for (const float logit : logits) CHECK(std::abs(logit) <= cap);
}

TEST_CASE("by hand: the embedding is scaled, and the positions that are added to it are not") {
  Config config{.block = llama_style(2, 1, 1, 2), .L = 1, .V = 2, .T_max = 3};
  config.learned_positions = true, config.embedding_scale = 4;
  Random random(1);
  ModelWeights weights = draw_model(config, random);
  weights.embedding = Tensor<2>{{3, 4}, {2, 0}};
  weights.positions = Tensor<2>{{9, 9}, {0.5f, -1}, {8, 16}};
  const Model model(config, std::move(weights));
  Tensor<2> x = empty(2, 2);
  embed_tokens(model, Ids{1, 0}, 1, x);  // at positions 1 and 2
  CHECK(all_close(x, Tensor<2>{{8.5f, -1}, {20, 32}}, 0));
}

TEST_CASE("a model by hand: embedding, a block that adds nothing, final norm, own head, loss") {
  const Config config{.block = llama_style(2, 1, 1, 2), .L = 1, .V = 2, .T_max = 2};
  Random random(1);
  ModelWeights weights = draw_model(config, random);
  weights.embedding = Tensor<2>{{3, 4}, {2, 0}};
  weights.head = Tensor<2>{{1, 0}, {0, 2}};
  weights.blocks[0].w_o = weights.blocks[0].feed_forward.w_down =
      Tensor<2>(xt::zeros<float>({2, 2}));
  const Model model(config, std::move(weights));

  // (3, 4) / √12.5 = (0.8485, 1.1314), and (2, 0) / √2 = (1.4142, 0); the head doubles the second.
  const Tensor<2> want = {{0.848528f, 2.262742f}, {1.414214f, 0}};
  ModelState state(config, 2, {.chunk = 1});
  Tensor<2> logits = empty(2, 2);
  forward_all(model, state, Ids{0, 1}, logits);
  CHECK(all_close(logits, want, 1e-5));  // eps moves them by less than 6e-6
  CHECK(all_close(language_model(Ids{0, 1}, model), want, 1e-5));
  CHECK(next_token_loss(logits, Ids{0, 1}) == doctest::Approx(0.21762).epsilon(1e-4));
}

TEST_CASE("loss by hand: a token predicts the next one, and the last predicts nothing") {
  // Odds of 3 to 1 for token 1, which comes next: −ln(3/4). The second row must not count.
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
  const Model model(config, draw_model(config, random));
  Ids ids;
  for (int t = 0; t < 200; ++t) ids.push_back(int(random.next_uniform() * double(config.V)));
  const double s = std::sqrt(100.0) * 0.02, ln_v = std::log(double(config.V));
  const double loss = next_token_loss(language_model(ids, model), ids);
  CHECK(std::abs(loss - (ln_v + s * s / 2)) < 4 * s / std::sqrt(199.0));
}

TEST_CASE("weights are drawn around 0, with the deviation that each matrix needs") {
  // Of n numbers the deviation is off by 1/√(2n) of itself, the mean by 1/√n deviations: 5 times
  // that is allowed. What adds to the stream is scaled by 1/√(2L), here by 1/4.
  Config config = resized(preset("gpt2"), {.C = 64, .L = 8, .H = 4, .G = 4, .V = 300, .T_max = 40});
  config.tied = true;
  Random random(4);
  const ModelWeights weights = draw_model(config, random);
  const auto drawn = [](const Weight& w, double deviation) {
    const Tensor<2>& x = w.floats();
    double sum = 0, squares = 0;
    for (const float value : x) sum += double(value), squares += double(value) * double(value);
    const double n = double(x.size()), got = std::sqrt(squares / n);
    CAPTURE(got);
    CHECK(std::abs(got / deviation - 1) < 5 / std::sqrt(2 * n));
    CHECK(std::abs(sum / n) < 5 * deviation / std::sqrt(n));
  };
  const BlockWeights& last = weights.blocks.back();
  drawn(weights.embedding, 0.02);
  drawn(weights.positions, 0.01);
  drawn(last.w_q, 1 / 8.0);
  drawn(last.w_v, 1 / 8.0);
  drawn(last.w_o, 1 / 8.0 / 4);
  drawn(last.feed_forward.w_up, 1 / 8.0);
  drawn(last.feed_forward.w_down, 1 / std::sqrt(double(config.block.F)) / 4);
}

TEST_CASE("one more token, and several texts in chunks, allocate nothing") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 20, {.chunk = 5, .sequences = 3});
  Tensor<2> logits = empty(3, c.config.V);
  const Ids ids = c.ids(), next = {5};
  const std::vector<MoreTokens> more = {{2, ids}, {0, next}, {1, ids}};
  std::size_t told = 0;
  const Trace trace = [&](Part, std::size_t, ConstMatrix) { ++told; };
  forward(model, state, ids, row(logits, 0));
  reset(state);
  CHECK(allocates_nothing(1, [&] { forward(model, state, more, logits); }));
  CHECK(allocates_nothing(1, [&] { forward(model, state, next, row(logits, 0), trace); }));
  CHECK(allocates_nothing(3, [&] { forward(model, state, next, row(logits, 0)); }));
  CHECK(told > 0);
}

TEST_CASE("a trace names the layer; when it throws, the text keeps its length") {
  const Case c = llama();
  const Model model = c.model();
  ModelState state(c.config, 20, {.chunk = 5});
  Tensor<1> logits = empty(c.config.V), again = empty(c.config.V);
  const Ids ids = c.ids();
  std::vector<std::string> names;
  forward(model, state, Ids{1}, row(logits), [&](Part part, std::size_t layer, ConstMatrix) {
    names.push_back(trace_name(part, layer));
    if (!is_of_block(part)) CHECK(layer == 0);
  });
  CHECK(names.front() == "embedding");
  CHECK(names[1] == "layer 0 attention_norm");
  CHECK(names[names.size() - 3] == "layer 2 x_plus_feed_forward");
  CHECK(names.back() == "logits");

  // forward tells the last token's logits once, forward_all those of each chunk.
  std::vector<std::size_t> rows;
  const Trace logits_rows = [&](Part part, std::size_t, ConstMatrix value) {
    if (part == Part::logits) rows.push_back(value.rows);
  };
  reset(state);
  forward(model, state, Ids(7, 2), row(logits), logits_rows);
  Tensor<2> of_seven = empty(7, c.config.V);
  reset(state);
  forward_all(model, state, Ids(7, 2), of_seven, logits_rows);
  CHECK(rows == std::vector<std::size_t>{1, 5, 2});
  truncate(state, 1);

  const auto in_a_layer = [](Part part, std::size_t layer, ConstMatrix x) {
    if (part == Part::heads && layer == 1 && x.rows < 5) throw std::runtime_error("stop");
  };
  const auto at_the_end = [](Part part, std::size_t, ConstMatrix) {
    if (part == Part::logits) throw std::runtime_error("stop");
  };
  Tensor<2> all = empty(ids.size(), c.config.V);
  for (const Trace& stop : {Trace(in_a_layer), Trace(at_the_end)}) {
    CHECK_THROWS_AS(forward(model, state, ids, row(logits), stop), std::runtime_error);
    CHECK(state.length() == 1);
    CHECK_THROWS_AS(forward_all(model, state, ids, all, stop), std::runtime_error);
    CHECK(state.length() == 1);
  }
  truncate(state, 0);
  forward(model, state, ids, row(again));
  CHECK(all_close(Tensor<2>(xt::view(again, xt::newaxis())), last_row(c.want()), c.bound(4.9)));
}

TEST_CASE("parameters: published models exactly, and as many counted as drawn") {
  CHECK(total(count_parameters(preset("llama2-7b"))) == 6'738'415'616);
  CHECK(total(count_parameters(preset("gpt2"))) == 124'439'808);
  CHECK(total(count_parameters(preset("smollm2-135m"))) == 134'515'008);
  const auto tied = [](BlockSettings block, std::size_t L, std::size_t V) {
    return total(count_parameters({.block = block, .L = L, .V = V, .T_max = 4096, .tied = true}));
  };
  BlockSettings qwen2 = llama_style(896, 14, 2, 4864), qwen3 = llama_style(1024, 16, 8, 3072);
  qwen2.biases = Biases::qkv;
  qwen3.head_norms = true, qwen3.D = 128;
  CHECK(tied(llama_style(2048, 32, 8, 8192), 16, 128256) == 1'235'814'400);  // Llama 3.2 1B
  CHECK(tied(qwen2, 24, 151936) == 494'032'768);                             // Qwen2.5 0.5B
  CHECK(tied(qwen3, 28, 151936) == 596'049'920);                             // Qwen3 0.6B
  BlockSettings gemma2 = llama_style(2304, 8, 4, 9216), gemma3 = llama_style(1152, 4, 1, 6912);
  gemma2.norm_place = gemma3.norm_place = NormPlace::both, gemma2.D = gemma3.D = 256;
  gemma3.head_norms = true;
  CHECK(tied(gemma2, 26, 256000) == 2'614'341'888);  // Gemma 2 2B
  CHECK(tied(gemma3, 26, 262144) == 999'885'952);    // Gemma 3 1B
  Config mixtral{.block = llama_style(4096, 32, 8, 14336), .L = 32, .V = 32000, .T_max = 32768};
  mixtral.block.experts = 8, mixtral.block.chosen = 2;
  CHECK(total(count_parameters(mixtral)) == 46'702'792'704);  // Mixtral 8x7B
  Config small = preset("foundry-small");
  CHECK(total(count_parameters(small)) == 7'078'144);
  small.tied = true;
  CHECK(total(count_parameters(small)) == 4'980'992);
  Random random(1);
  for (const Config& config : {llama().config, gpt2().config})
    CHECK(parameter_count(draw_model(config, random)) == total(count_parameters(config)));
}

TEST_CASE("FLOPs and bytes by hand") {
  const Config config{
      .block = {.C = 2, .H = 1, .G = 1, .D = 2, .F = 3}, .L = 7, .V = 5, .T_max = 4};
  // Three tokens: q, k, v and o of 2 x 2; 1 + 2 + 3 keys of 2 numbers, and their values; three
  // matrices of 2 x 3; one row of logits. Each number twice: multiplied and added.
  const Flops flops = count_flops(config, 3, 3, 1);
  CHECK(flops.projections == 7 * 2 * 3 * 16);
  CHECK(flops.attention == 7 * 4 * 6 * 2);
  CHECK(flops.feed_forward == 7 * 2 * 3 * 18);
  CHECK(flops.head == 2 * 5 * 2);
  CHECK(total(flops) == 672 + 336 + 756 + 20);

  const InferenceMemory inference = inference_memory(preset("llama2-7b"), 2048, 2);
  CHECK(inference.cache == 0x1p30);
  CHECK(inference.weights == 2 * 6'738'415'616.0);
  // The stream, its norm and what is added to it; q and heads; k and v; gate and up; logits.
  CHECK(inference_memory(config, 4, 4).scratch == 4 * (3 * 2 + 2 * 2 + 2 * 2 + 2 * 3 + 5));
  const TrainingMemory training = training_memory(preset("llama2-7b"), 1, 2048, 2);
  CHECK(training.weights + training.gradients + training.optimizer == 16 * 6'738'415'616.0);
  // Two texts of 3 tokens: 4·2 + 2·2 + 2·2 + 3·3 numbers a block and token, two of 2 and 5 logits.
  CHECK(training_memory(config, 2, 3, 4).activations == 4 * 6 * (7 * 25 + 9));
  CHECK(training_memory(config, 2, 3, 4).attention_weights == 4 * 2 * 7 * 3 * 3);
}

TEST_CASE("a model takes other numbers of the same shapes, and can be moved") {
  const Case c = llama();
  Config config = c.config;
  Random random(4);
  Model model(config, draw_model(config, random));
  model.change_weights([&](ModelWeights& weights) { weights = c.weights(); });
  CHECK(bytes(model.weights()) == 4 * parameter_count(model.weights()));
  Model moved = std::move(model);
  ModelState state(config, c.ids().size());
  Tensor<2> last = empty(1, config.V);
  forward(moved, state, c.ids(), row(last, 0));
  CHECK(all_close(last, last_row(c.want()), c.bound(4.9)));
  REFUSES(moved.change_weights([](ModelWeights& weights) { weights.blocks[1].w_q = Weight(); }),
          "layer 1: w_q: wanted shape [48, 30], got [0, 0]");
}

TEST_CASE("differences of a model from LLaMA: its own, and those of any block, each once") {
  using enum Difference;
  Config config = preset("llama2-7b");
  CHECK(differences_from_llama(config).empty());
  CHECK(differences_from_llama(preset("smollm2-135m")) == std::vector{tied});
  CHECK(differences_from_llama(preset("gpt2")) ==
        std::vector{layer_norm, other_activation, biases_of_all, no_rope, learned_positions, tied});
  config.layers.assign(config.L, config.block);
  CHECK(differences_from_llama(config) == std::vector{layers_differ});
  config.layers[3].window = 9, config.layers[5].window = 7, config.layers[5].uses_rope = false;
  CHECK(differences_from_llama(config) == std::vector{window, no_rope, layers_differ});
  config.embedding_scale = 2, config.logit_scale = 0.5f, config.logit_cap = 0.5f;
  CHECK(differences_from_llama(config) ==
        std::vector{window, no_rope, scaled_embedding, scaled_logits, logit_cap, layers_differ});
}

TEST_CASE("refusals: configs, with every reason at once") {
  Config config = preset("foundry-small");
  config.block.H = 7, config.block.D = 5, config.block.eps = 0, config.L = 0;
  REFUSES(
      expect_config(config),
      "config: H, the query heads: wanted a multiple of G = 4, got 7; D, the width of a head: "
      "wanted an even number for RoPE, got 5; eps: wanted a number above 0, got 0; L, the blocks: "
      "wanted at least 1, got 0");
  REFUSES(expect_config(resized(preset("foundry-small"), {.H = 12})),
          "config: D, the width of a head: wanted at least 1 (C = 256 over H = 12?), got 0");
  config = preset("llama2-7b");
  config.block.biases = Biases::all, config.V = std::size_t(1) << 50;
  REFUSES(expect_config(config),
          "config: biases: wanted none or those of q, k and v with a gated activation, got swiglu; "
          "the sizes: wanted under 1e18 parameters, got 9e+18");
  config = preset("llama2-7b");
  config.block.F = std::size_t(1) << 50;  // each of 3·L matrices has C·F elements
  REFUSES(expect_config(config), "config: the sizes: wanted under 1e18 parameters, got 4e+20");
  REFUSES(preset("gpt-2"),
          "preset: wanted one of foundry-small, gpt2, smollm2-135m, llama2-7b, got gpt-2");
  CHECK(resized(preset("foundry-small"), {.C = 512, .H = 4}).block.F == 1365);
  CHECK(resized(preset("gpt2"), {.C = 512, .H = 4}).block.D == 128);
  CHECK(resized(preset("foundry-small"), {.C = 512}).block.D == 64);
  config = preset("foundry-small");
  config.T_max = 0;
  REFUSES(expect_config(config), "config: T_max, the context: wanted at least 1, got 0");
  for (const float wrong : {0.0f, -1.0f, NAN, INFINITY}) {
    config = preset("foundry-small");
    config.embedding_scale = wrong, config.logit_cap = wrong;
    const std::string scale = "config: embedding_scale: wanted a number above 0, got ",
                      cap = "; logit_cap: wanted 0 or a number above 0, got ";
    if (wrong == 0) REFUSES(expect_config(config), scale + "0");
    if (wrong == -1) REFUSES(expect_config(config), scale + "-1" + cap + "-1");
    if (std::isnan(wrong)) REFUSES(expect_config(config), scale + "nan" + cap + "nan");
    if (std::isinf(wrong)) REFUSES(expect_config(config), scale + "inf" + cap + "inf");
  }
  config = preset("foundry-small");
  config.logit_scale = 0;
  REFUSES(expect_config(config), "config: logit_scale: wanted a number above 0, got 0");
  Config own = preset("foundry-small");
  own.block.D = 48;  // not C / H
  CHECK(resized(own, {.L = 2}).block.D == 48);
}

TEST_CASE("refusals: weights, ids and room, before anything is written") {
  const Case c = gpt2();
  const Model model = c.model();
  ModelState state(c.config, 7, {.chunk = 4});
  Tensor<1> logits = xt::ones<float>({53});
  const auto go = [&](const Ids& ids) { forward(model, state, ids, row(logits)); };
  REFUSES(go({}), "T, the tokens: wanted at least 1, got 0");
  REFUSES(go({1, 2, 3, 4, 5, 53}), "ids: token 5 is 53, outside [0, 53), the vocabulary");
  REFUSES(go(Ids(8, 1)), "ids: wanted at most S = 7 tokens in all, got 0 + 8");
  CHECK(state.length() == 0);
  go(Ids(7, 1));
  const Tensor<1> before = logits;
  REFUSES(go({1}), "ids: wanted at most S = 7 tokens in all, got 7 + 1");
  CHECK(state.length() == 7);
  CHECK(all_close(logits, before, 0));
  REFUSES(truncate(state, 8), "position, the tokens to keep: wanted at most the length 7, got 8");
  REFUSES(forward(model, state, Ids{1}, Row(logits.data(), 9)),
          "ids: wanted at most S = 7 tokens in all, got 7 + 1");
  reset(state);
  REFUSES(forward(model, state, Ids{1}, Row(logits.data(), 9)),
          "logits: wanted shape [1, 53], got [1, 9]");
  REFUSES(language_model(Ids(), model), "T, the tokens: wanted 1 to T_max = 17, got 0");
  REFUSES(language_model(Ids(18, 1), model), "T, the tokens: wanted 1 to T_max = 17, got 18");
  REFUSES(ModelState(c.config, 18),
          "S, the positions to make room for: wanted 1 to T_max = 17, got 18");
  // Were it not S that is looked at first, the next look would divide by it.
  REFUSES(ModelState(c.config, 0, {.chunk = 0}),
          "S, the positions to make room for: wanted 1 to T_max = 17, got 0");
  REFUSES(ModelState(c.config, 7, {.chunk = 0}),
          "chunk, the rows of a pass: wanted at least 1, got 0");
  REFUSES(ModelState(c.config, 7, {.sequences = 0}), "sequences: wanted at least 1, got 0");
  REFUSES(next_token_loss(one_row(logits), Ids{1}),
          "T, the tokens of a loss: wanted at least 2, got 1");

  const Model other(llama().config, llama().weights());
  Config brief = c.config;
  brief.T_max = 6;
  Random random(1);
  REFUSES(forward(Model(brief, draw_model(brief, random)), state, Ids{1}, row(logits)),
          "state: wanted one of at most T_max = 6 positions, got S = 7");
  REFUSES(
      forward(other, state, Ids{1}, row(logits)),
      "state: wanted one made for L = 3, C = 30, got L = 3, C = 24");  // though logits is not [61]

  ModelWeights weights = c.weights();
  weights.head = weights.embedding;
  REFUSES(Model(c.config, weights), "head: wanted shape [0, 0], got [53, 24]");
  weights.blocks[2].w_q = weights.blocks[2].feed_forward.w_up;
  REFUSES(Model(c.config, weights), "layer 2: w_q: wanted shape [24, 24], got [96, 24]");
  weights.blocks.pop_back();
  REFUSES(Model(c.config, weights), "blocks: wanted L = 3, got 2");

  weights = c.weights();
  weights.positions = packed_nothing(17, 24);
  REFUSES(Model(c.config, weights), "positions: wanted floats, got packed numbers");
}

}  // namespace t2t::language_model_test
