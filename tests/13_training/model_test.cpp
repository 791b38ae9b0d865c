// What must be true of the whole backward pass: the gradients of all of a model's tensors equal
// PyTorch's, and they are what the loss changes by.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/cases.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/backward/model_backward.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/packed_stand_ins.hpp"

namespace t2t::model_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// B texts of T tokens and the token after each, as make_model.py makes them.
static Batch batch_of(size_t B, size_t T, size_t V) {
  const auto token = [&](size_t n) { return int((7 * n * n + 3 * n + 5) % V); };
  Batch batch{B, T, {}, {}};
  for (size_t b = 0; b < B; ++b)
    for (size_t n = b * (T + 1); n < b * (T + 1) + T; ++n) {
      batch.ids.push_back(token(n));
      batch.targets.push_back((n + 1) % 5 == 3 ? not_learned : token(n + 1));
    }
  return batch;
}
/// One of its texts.
static Batch text_of(const Batch& batch, size_t b) {
  const auto part = [&](const std::vector<int>& all) {
    return std::vector(all.begin() + long(b * batch.T), all.begin() + long((b + 1) * batch.T));
  };
  return {1, batch.T, part(batch.ids), part(batch.targets)};
}
static float one_over_learned(const Batch& batch) {
  return 1 / float(count_learned(batch.targets));
}

static Case small(std::string name, BlockSettings block) {
  return {std::move(name), {.block = std::move(block), .L = 2, .V = 37, .T_max = 16}, 0};
}
/// Chapter 09's models, and what they leave out: norms after the sums, a plain relu, geglu, biases
/// of q, k and v alone, RoPE of halves, and norms of heads, of both kinds.
static std::vector<Case> cases() {
  const BlockSettings block{.C = 20, .H = 4, .G = 2, .D = 6, .F = 27, .theta = 500};
  Case post = small("post", block), post_rms = small("post_rms", block);
  Case networks = small("networks", block), qwen = small("qwen", block);
  Case qwen3 = small("qwen3", block), head_layer_norms = small("head_layer_norms", block);
  BlockSettings& s = post.config.block;
  s.norm = Norm::layer, s.biases = Biases::all, s.activation = Activation::relu;
  s.uses_rope = false, post.config.learned_positions = true;
  s.norm_place = post_rms.config.block.norm_place = NormPlace::after;
  networks.config.layers = {block, block};
  networks.config.layers[0].activation = Activation::geglu;
  networks.config.layers[1].activation = Activation::relu;
  qwen.config.block.biases = Biases::qkv, qwen.config.block.pairing = Pairing::halves;
  qwen.config.tied = true;
  qwen3.config.block.head_norms = true, qwen3.config.block.pairing = Pairing::halves;
  head_layer_norms.config.block.head_norms = true, head_layer_norms.config.block.norm = Norm::layer;
  head_layer_norms.config.block.biases = Biases::qkv;
  std::vector<Case> all = {llama(), mixed(), gpt2(),          post, post_rms, networks,
                           qwen,    qwen3,   head_layer_norms};
  for (Case& c : all) c.name = "model_" + c.name;
  return all;
}

struct Named {
  std::string name;
  Tensor<1> x;
};
static Tensor<1> flat(const Tensor<1>& x) { return x; }
static Tensor<1> flat(const Weight& w) {
  Tensor<1> x = empty(w.size());
  std::ranges::copy(w.floats(), x.begin());
  return x;
}
/// All tensors that a model has, each as a row.
static std::vector<Named> named_tensors(const ModelWeights& weights, const Config& config) {
  std::vector<Named> all;
  for_each_tensor(weights, config, [&](const TensorInfo& info, const auto& tensor) {
    if (info.size() > 0) all.push_back({full_name(info), flat(tensor)});
  });
  return all;
}
static double largest(const Tensor<1>& x) {
  double most = 0;
  for (const float value : x) most = std::max(most, std::abs(double(value)));
  return most;
}
/// Σ x·y over all tensors, in double precision.
static double dot(const Tensor<1>& x, const Tensor<1>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += double(x(i)) * double(y(i));
  return sum;
}

/// Gradients of one batch after another, added up.
static ModelWeights gradients_of(const Model& model, const std::vector<Batch>& batches,
                                 float scale) {
  ModelWeights gradients = zeros_of(model.config());
  for (const Batch& batch : batches)
    Gradients(model.config(), batch.B, batch.T).add(model, batch, scale, gradients);
  return gradients;
}

/// A relative error for gradients of N tokens: chapter 09's for a forward pass; the backward pass
/// has two products for each of its products; a weight's gradient is a sum over all tokens.
static double relative_error(const Case& c, size_t N) {
  return 3 * c.bound(1) + std::sqrt(double(N)) * u;
}

/// Some gradients are 0: a bias of k without RoPE moves all scores of a query alike, and a window
/// of one key leaves nothing to choose. What is wanted is then a rounding error itself, and the
/// size of the terms that cancel is that of the model's other gradients.
static void check_close(const std::vector<Named>& got, const std::vector<Named>& want,
                        double relative) {
  double of_model = 0;
  for (const Named& tensor : want) of_model = std::max(of_model, largest(tensor.x));
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(want[i].name);
    const double own = largest(want[i].x), size = own > u * of_model ? own : of_model;
    CHECK(all_close(got[i].x, want[i].x, relative * size));
  }
}
static void check_close(const ModelWeights& got, const ModelWeights& want, const Case& c,
                        size_t N) {
  check_close(named_tensors(got, c.config), named_tensors(want, c.config), relative_error(c, N));
}

TEST_CASE("by hand: the head, the final norm and the embedding around a block that adds nothing") {
  const Config config{.block = llama_style(2, 1, 1, 2), .L = 1, .V = 2, .T_max = 1};
  Random random(1);
  ModelWeights weights = draw_model(config, random);
  weights.embedding = Tensor<2>{{3, 4}, {2, 0}};
  weights.head = Tensor<2>{{1, 0}, {0, 2}};
  weights.blocks[0].w_v = Tensor<2>{{1, 0}, {0, 1}};
  weights.blocks[0].w_o = weights.blocks[0].feed_forward.w_down =
      Tensor<2>(xt::zeros<float>({2, 2}));
  const Model model(config, std::move(weights));
  ModelWeights gradients = zeros_of(config);
  Gradients passes(config, 1, 1);

  // Token 0 is (3, 4), its norm (0.8485, 1.1314), and its logits (0.8485, 2.2627) have the
  // probabilities 0.1956 and 0.8044. Token 1 follows, so the logits' gradients are ±0.1956.
  CHECK(passes.add(model, {1, 1, {0}, {1}}, 1, gradients) ==
        doctest::Approx(0.21762).epsilon(1e-4));
  const double p = 0.195567, x0 = 0.848528, x1 = 1.131371;
  const auto check = [](const Weight& got, std::initializer_list<double> want) {
    Tensor<2> x = empty(2, 2);
    std::ranges::copy(want, x.begin());
    CHECK(all_close(got.floats(), x, 1e-5));  // eps moves them by less than 6e-6
  };
  check(gradients.head, {p * x0, p * x1, -p * x0, -p * x1});

  // The norm's result has the gradient (p, −2·p). Its part along the norm goes; the rest is divided
  // by the root mean square, √12.5, and stands at a right angle on (3, 4).
  CHECK(gradients.final_norm.gain(0) == doctest::Approx(p * x0).epsilon(1e-5));
  CHECK(gradients.final_norm.gain(1) == doctest::Approx(-2 * p * x1).epsilon(1e-5));
  const double along = (p * x0 - 2 * p * x1) / 2, r = 1 / std::sqrt(12.5);
  const double dx0 = r * (p - x0 * along), dx1 = r * (-2 * p - x1 * along);
  check(gradients.embedding, {dx0, dx1, 0, 0});

  // The block hands this on whole. A single token attends to itself, so what w_o multiplies is the
  // norm of (3, 4); nothing comes back through the zeros of w_o.
  check(gradients.blocks[0].w_o, {dx0 * x0, dx0 * x1, dx1 * x0, dx1 * x1});
  check(gradients.blocks[0].w_v, {0, 0, 0, 0});
}

TEST_CASE("the gradients of every tensor are those of PyTorch in float64") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Model model = c.model();
    const Batch batch = batch_of(3, 13, c.config.V);
    ModelWeights gradients = zeros_of(c.config);
    Gradients passes(c.config, 3, 13);
    const float scale = one_over_learned(batch);
    const double loss = passes.add(model, batch, scale, gradients) * double(scale);
    const double want_loss = double(load_npy<1>(c.file("_loss"))(0));
    CHECK(std::abs(loss - want_loss) <= c.bound(1) * want_loss);

    const Tensor<1> numbers = load_npy<1>(c.file("_gradients"));
    const std::vector<Named> got = named_tensors(gradients, c.config);
    std::vector<Named> want = got;
    size_t first = 0;
    for (Named& tensor : want)
      for (float& value : tensor.x) value = numbers(first++);
    CHECK(first == numbers.size());
    check_close(got, want, relative_error(c, 39));
  }
}

static Case foundry() {
  Case c{"model_foundry", preset("foundry-small"), 0};
  return c;
}
/// Hashed weights, tables and matrices a quarter as large: about as wide as when training begins.
static Model foundry_model() {
  ModelWeights weights = foundry().weights();
  for_each_tensor(weights, foundry().config, [](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<std::decay_t<decltype(tensor)>, Weight>)
      if (info.size() > 0) tensor.floats() *= 0.25f;
  });
  return Model(foundry().config, std::move(weights));
}

TEST_CASE("foundry-small: each gradient's norm, product with other numbers and largest number" *
          doctest::test_suite("slow")) {
  const Case c = foundry();
  const Model model = foundry_model();
  const Batch batch = batch_of(2, 48, c.config.V);
  ModelWeights gradients = zeros_of(c.config);
  Gradients passes(c.config, 2, 48);
  const float scale = one_over_learned(batch);
  const double loss = passes.add(model, batch, scale, gradients) * double(scale);
  const double want_loss = double(load_npy<1>(c.file("_loss"))(0));
  CHECK(std::abs(loss - want_loss) <= c.bound(1) * want_loss);

  // Errors e with a norm of up to ε·|g| change g's norm by as much. The hashed numbers, even in
  // [-1/2, 1/2), know nothing of e: their product with it is a random number of deviation |e|/√12,
  // of which five are allowed.
  const Tensor<2> want = load_npy<2>(c.file("_sums"));
  const double epsilon = relative_error(c, 96);
  const std::vector<Named> got = named_tensors(gradients, c.config);
  REQUIRE(got.size() == want.shape(0));
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(got[i].name);
    const Tensor<1>& x = got[i].x;
    const double norm = double(want(i, 0)), product = double(want(i, 1));
    CHECK(std::abs(std::sqrt(dot(x, x)) - norm) <= epsilon * norm);
    CHECK(std::abs(dot(x, numbers(1000, 1, 0, x.size())) - product) <=
          5 / std::sqrt(12) * epsilon * norm + u * std::abs(product));
    CHECK(std::abs(largest(x) - double(want(i, 2))) <= epsilon * double(want(i, 2)));
  }
}

TEST_CASE("a batch's gradients are the sum of its texts', in any order; twice is double") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Model model = c.model();
    const Batch batch = batch_of(2, 13, c.config.V);
    const Batch first = text_of(batch, 0), second = text_of(batch, 1);
    Batch exchanged{2, 13, second.ids, second.targets};
    std::ranges::copy(first.ids, std::back_inserter(exchanged.ids));
    std::ranges::copy(first.targets, std::back_inserter(exchanged.targets));

    const ModelWeights want = gradients_of(model, {batch}, 0.125f);
    check_close(gradients_of(model, {first, second}, 0.125f), want, c, 26);
    check_close(gradients_of(model, {exchanged}, 0.125f), want, c, 26);
    check_close(gradients_of(model, {batch, batch}, 0.0625f), want, c, 26);
  }
}

TEST_CASE("logits of some tokens at a time: the gradients are those of texts that fit at once" *
          doctest::test_suite("slow")) {
  // 4 Mi logits are 15 rows of these: three parts, of which the last has 9 rows.
  Case c{"wide", {.block = llama_style(4, 2, 1, 5), .L = 1, .V = 262'145, .T_max = 13}, 0};
  const Model model = c.model();
  const Batch batch = batch_of(3, 13, c.config.V);
  const std::vector<Batch> texts = {text_of(batch, 0), text_of(batch, 1), text_of(batch, 2)};
  check_close(gradients_of(model, {batch}, 1), gradients_of(model, texts, 1), c, 39);
}

TEST_CASE("a tied table gets the gradients of both of its uses") {
  Case tied = gpt2(), apart = gpt2();
  apart.config.tied = false;
  ModelWeights weights = tied.weights();
  const Batch batch = batch_of(3, 13, tied.config.V);
  ModelWeights got = gradients_of(Model(tied.config, weights), {batch}, 0.125f);
  weights.head = weights.embedding;
  ModelWeights want = gradients_of(Model(apart.config, std::move(weights)), {batch}, 0.125f);
  want.embedding.floats() += want.head.floats();
  want.head = Weight();
  check_close(got, want, tied, 39);
}

TEST_CASE("the loss is chapter 09's, with gradients and without") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Model model = c.model();
    Batch batch = batch_of(3, 13, c.config.V);
    Gradients passes(c.config, 3, 13);
    ModelWeights gradients = zeros_of(c.config);
    CHECK(passes.loss(model, batch) == passes.add(model, batch, 1, gradients));

    // Each token is followed by the text's next one; what follows the last is not in the text.
    double want = 0;
    for (size_t b = 0; b < 3; ++b) {
      const std::vector<int> ids = text_of(batch, b).ids;
      for (size_t t = 0; t < 13; ++t)
        batch.targets[b * 13 + t] = t == 12 ? not_learned : ids[t + 1];
      want += next_token_loss(language_model(ids, model), ids) / 3;
    }
    CHECK(std::abs(passes.loss(model, batch) / 36 - want) <= c.bound(1) * want);
  }
}

TEST_CASE("along its gradient the loss grows by the square of the gradient's norm") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Batch batch = batch_of(3, 13, c.config.V);
    ModelWeights gradients = gradients_of(c.model(), {batch}, one_over_learned(batch));
    const double slope = slope_along(gradients, c, 4e-4, [&](const Model& model) {
      return Gradients(c.config, batch.B, batch.T).loss(model, batch) *
             double(one_over_learned(batch));
    });
    CHECK(std::abs(slope - 1) < 2e-3);
  }
}

TEST_CASE("along random signs the loss has the slope that the gradient promises") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Batch batch = batch_of(3, 13, c.config.V);
    ModelWeights gradients = gradients_of(c.model(), {batch}, one_over_learned(batch));
    const double off = off_at_random(gradients, c, 1e-4, [&](const Model& model) {
      return Gradients(c.config, batch.B, batch.T).loss(model, batch) *
             double(one_over_learned(batch));
    });
    CHECK(off < 2e-3);
  }
}

static void check_same_bits(const ModelWeights& got, const ModelWeights& want, const Config& c) {
  const std::vector<Named> a = named_tensors(got, c), b = named_tensors(want, c);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].name);
    CHECK(all_close(a[i].x, b[i].x, 0));
  }
}

TEST_CASE("a step forward and back allocates nothing, and gives the same bits each time") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Model model = c.model();
    const Batch batch = batch_of(3, 13, c.config.V);
    Gradients passes(c.config, 3, 13);
    ModelWeights first = zeros_of(c.config), again = first;
    passes.add(model, batch, 0.125f, first);
    CHECK(allocates_nothing(1, [&] { passes.add(model, batch, 0.125f, again); }));
    CHECK(allocates_nothing(1, [&] { passes.loss(model, batch); }));
    check_same_bits(again, first, c.config);
  }
}

TEST_CASE("what is kept is chapter 09's account, less what is made again and the logits") {
  // llama's three layers keep 2·C + 2·H·D + 2·G·D + 2·F numbers for each of 39 tokens.
  CHECK(Gradients(llama().config, 3, 13).kept_bytes() ==
        4 * 39 * 3 * (2 * 30 + 2 * 48 + 2 * 16 + 2 * 37));
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    double made_again = 2 * double(c.config.block.C) + double(c.config.V), norms_inputs = 0;
    for (const BlockSettings& s : settings_of_all(c.config)) {
      made_again += double(2 * s.C + s.F);
      if (s.norm_place == NormPlace::after) norms_inputs += double(s.C);  // one more sum is kept
    }
    const double account = training_memory(c.config, 3, 13, 4).activations;
    CHECK(double(Gradients(c.config, 3, 13).kept_bytes()) ==
          account - 4 * 39 * (made_again - norms_inputs));
  }
}

TEST_CASE("other batches, models and gradients are refused, and here nothing was added") {
  const Case c = llama();
  const Model model = c.model();
  ModelWeights gradients = zeros_of(c.config);
  const ModelWeights zeros = gradients;
  Gradients passes(c.config, 2, 13);
  const auto add = [&](const Batch& batch) { passes.add(model, batch, 1, gradients); };
  REFUSES(add(batch_of(3, 13, 61)),
          "batch: wanted B = 2, T = 13 with 26 ids and targets, got B = 3, T = 13 with 39 and 39");
  REFUSES(add(batch_of(2, 12, 61)),
          "batch: wanted B = 2, T = 13 with 26 ids and targets, got B = 2, T = 12 with 24 and 24");
  Batch wrong = batch_of(2, 13, 61);
  wrong.targets.pop_back();
  REFUSES(passes.loss(model, wrong),
          "batch: wanted B = 2, T = 13 with 26 ids and targets, got B = 2, T = 13 with 26 and 25");
  wrong = batch_of(2, 13, 61), wrong.ids[5] = 61;
  REFUSES(add(wrong), "ids: token 5 is 61, outside [0, 61), the vocabulary");
  for (const int target : {61, -2}) {
    wrong = batch_of(2, 13, 61), wrong.targets[3] = target;
    REFUSES(add(wrong), "targets: token 3 is " + std::to_string(target) +
                            ", wanted one in [0, 61), or -1 for one that is not learned");
  }
  const Model other = gpt2().model();
  REFUSES(passes.loss(other, batch_of(2, 13, 53)),
          "model: wanted L = 3, C = 30, V = 61, got L = 3, C = 24, V = 53");

  // A packed embedding would not be read in the backward pass, and is refused all the same.
  ModelWeights weights = c.weights();
  weights.embedding = packed_nothing(61, 30);
  const Model packed(c.config, std::move(weights));
  REFUSES(passes.add(packed, batch_of(2, 13, 61), 1, gradients),
          "embedding: wanted floats, got packed numbers");
  check_same_bits(gradients, zeros, c.config);

  gradients.blocks[1].w_q = Tensor<2>(xt::zeros<float>({48, 29}));
  REFUSES(add(batch_of(2, 13, 61)), "layer 1: w_q: wanted shape [48, 30], got [48, 29]");
  gradients.blocks.pop_back();
  REFUSES(add(batch_of(2, 13, 61)), "gradients: wanted those of L = 3 blocks, got 2");
}

TEST_CASE("sizes that have no backward pass are refused") {
  const Case c = llama();
  REFUSES(Gradients(c.config, 1, 30),
          "T, the tokens of a sequence: wanted 1 to T_max = 29, got 30");
  REFUSES(Gradients(c.config, 1, 0), "T, the tokens of a sequence: wanted 1 to T_max = 29, got 0");
  REFUSES(Gradients(c.config, 0, 13), "B, the sequences of a batch: wanted at least 1, got 0");
  CHECK_THROWS_AS(Gradients(c.config, size_t(1) << 50, 1), std::runtime_error);  // memory
  Config config = c.config;
  config.layers = {config.block, config.block, config.block};
  config.layers[1].H = 4;
  REFUSES(Gradients(config, 1, 13),
          "layers: wanted H = 6, G = 2, D = 8 in all, got H = 4, G = 2, D = 8");
  config.layers[1].H = 6, config.layers[2].F = 36;
  REFUSES(Gradients(config, 1, 13), "layers: wanted the same C, H, G, D and F in all");
}

TEST_CASE("attention of a batch refuses rows that are no whole texts") {
  const Case c = llama();
  const Model model = c.model();
  BatchAttention attention(settings_of_all(c.config), 2, 5);
  Tensor<2> q = empty(9, 48), k = empty(9, 16), v = empty(9, 16), heads = empty(9, 48);
  const auto refuses = [&](const std::vector<Run>& runs, const std::string& why) {
    REFUSES(attention({model.block(0), runs, q, k, v}, heads, {}), why);
  };
  refuses({{0, 0, 5}, {1, 0, 4}}, "rows of a sequence: wanted 5, got 4");
  refuses({{0, 0, 5}, {1, 1, 4}}, "rows of a sequence: wanted 5, got 4");
  refuses({{0, 0, 5}}, "runs: wanted 9 rows in all, got 5");
  REFUSES(BatchAttention(settings_of_all(c.config), 0, 5),
          "B, the sequences of a batch: wanted at least 1, got 0");
}

}  // namespace t2t::model_test
