// What must be true of training's parts: backward passes by hand, formulas beside kernels, the
// optimizer, the order of the texts, and a run that goes on after a stop.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "10_pretrained/load_model.hpp"
#include "10_pretrained/tokenizer.hpp"
#include "13_training/activation_backward.hpp"
#include "13_training/attention_backward.hpp"
#include "13_training/embedding_backward.hpp"
#include "13_training/flash_backward.hpp"
#include "13_training/linear_backward.hpp"
#include "13_training/norm_backward.hpp"
#include "13_training/run_folder.hpp"
#include "13_training/training_text.hpp"
#include "all_close.hpp"
#include "files.hpp"
#include "hashed_numbers.hpp"
#include "linalg.hpp"
#include "refuses.hpp"

using namespace t2t;
using std::size_t;

static constexpr double u = 0x1p-24;

TEST_CASE("by hand: a product's three gradients, added to what was there") {
  const Tensor<2> x = {{1, 2}, {3, 4}}, w = {{5, 6}, {7, 8}}, dy = {{1, 0}, {0, 2}};
  Tensor<2> dx = {{100, 100}, {100, 100}}, dw = {{10, 10}, {10, 10}};
  Tensor<1> db = {1, 1};
  add_input_gradient(dy, w, dx);
  add_weight_gradient(dy, x, dw);
  add_bias_gradient(dy, db);
  CHECK(all_close(dx, Tensor<2>{{105, 106}, {114, 116}}, 0));
  CHECK(all_close(dw, Tensor<2>{{11, 12}, {16, 18}}, 0));
  CHECK(all_close(db, Tensor<1>{2, 3}, 0));
}

TEST_CASE("by hand: the norm of (3, 4) hands back what stands at a right angle on it") {
  // r = 1/√12.5, x̂ = (0.8485, 1.1314); u = (1, 0) has the mean 0.4243 along x̂.
  const NormGradients got =
      norm_backward(Tensor<2>{{3, 4}}, {{1, 1}, {}}, Norm::rms, 0, Tensor<2>{{1, 0}});
  CHECK(all_close(got.x, Tensor<2>{{0.181019f, -0.135765f}}, 1e-6));
  CHECK(all_close(got.weights.gain, Tensor<1>{0.848528f, 0}, 1e-6));
  CHECK(std::abs(3 * got.x(0, 0) + 4 * got.x(0, 1)) < 1e-6);
}

/// y's gradient by each number of x, from two calls at either side: Σ dy·(f(x + h) − f(x − h)) /
/// 2h.
template <class F>
static Tensor<2> by_differences(F f, const Tensor<2>& x, const Tensor<2>& dy, float h = 0.01f) {
  Tensor<2> dx = empty(x.shape(0), x.shape(1));
  for (size_t i = 0; i < x.size(); ++i) {
    Tensor<2> above = x, below = x;
    above.data()[i] += h, below.data()[i] -= h;
    const Tensor<2> a = f(above), b = f(below);
    double sum = 0;
    for (size_t j = 0; j < a.size(); ++j)
      sum += double(dy.data()[j]) * (double(a.data()[j]) - double(b.data()[j]));
    dx.data()[i] = float(sum / (double(above.data()[i]) - double(below.data()[i])));
  }
  return dx;
}
// With h = 0.01 a difference has an error of h²/6 times a third derivative of a few units, and of
// some roundings of the values divided by h.
static constexpr double of_differences = 2e-3;

TEST_CASE("both norms: formula, kernel and small changes agree") {
  for (const Norm kind : {Norm::rms, Norm::layer}) {
    const Tensor<2> x = numbers(1, 4, 0.5f, 5, 67), dy = numbers(2, 2, 0, 5, 67);
    NormWeights weights{numbers(3, 1, 1, 67), {}}, gradients{xt::zeros<float>({67}), {}};
    if (kind == Norm::layer) weights.bias = numbers(4, 1, 0, 67), gradients.bias = gradients.gain;
    const NormGradients want = norm_backward(x, weights, kind, 1e-2f, dy);
    CHECK(all_close(want.x,
                    by_differences([&](auto& at) { return norm(at, weights, kind, 1e-2f); }, x, dy),
                    of_differences));

    Tensor<2> dx = xt::ones_like(x);
    Tensor<1> scratch = empty(10);
    add_norm_backward(x, weights, kind, 1e-2f, dy, dx, gradients, row(scratch));
    const double bound = 8 * std::sqrt(67) * u * 4;
    CHECK(all_close(Tensor<2>(dx - 1), want.x, bound));
    CHECK(all_close(gradients.gain, want.weights.gain, bound));
    CHECK(all_close(gradients.bias, want.weights.bias, bound));
  }
}

TEST_CASE("activations: slopes, kernels and small changes agree") {
  using enum Activation;
  const Tensor<2> x = numbers(1, 9, 0.001f, 3, 37), up = numbers(2, 4, 0, 3, 37);
  const Tensor<2> dy = numbers(3, 2, 0, 3, 37);
  for (const Activation activation : {relu, gelu, gelu_tanh, silu}) {
    CAPTURE(activation_name(activation));
    const Tensor<2> want = dy * activation_slope(activation, x);
    Tensor<2> dx = dy;
    activate_backward_rows(activation, x, dx);
    CHECK(all_close(dx, want, 64 * u));
    if (activation == relu) continue;  // its slope jumps
    CHECK(all_close(want, by_differences([&](auto& at) { return activate(activation, at); }, x, dy),
                    of_differences));
  }
  for (const Activation activation : {glu, reglu, geglu, geglu_tanh, swiglu}) {
    CAPTURE(activation_name(activation));
    Tensor<2> dup = dy, dgate = empty(3, 37);
    gated_backward_rows(activation, x, up, dup, dgate);
    CHECK(all_close(dgate, Tensor<2>(dy * up * activation_slope(activation, x)), 128 * u));
    CHECK(
        all_close(dup, Tensor<2>(dy * gated(activation, x, Tensor<2>(xt::ones_like(x)))), 256 * u));
  }
  CHECK(activation_slope(relu, Tensor<2>{{-1, 0, 2}}) == Tensor<2>{{0, 0, 1}});
  CHECK(activation_slope(silu, Tensor<2>{{0}})(0, 0) == 0.5f);
  Tensor<2> dx = dy;
  REFUSES(activate_backward_rows(swiglu, x, dx),
          "activation: wanted one without a gate, got swiglu");
}

TEST_CASE("by hand: softmax of two equal scores passes half a difference") {
  CHECK(all_close(softmax_backward({{0.5f, 0.5f}}, {{1, 0}}), Tensor<2>{{0.25f, -0.25f}}, 0));
}

TEST_CASE("attention: the formula's gradients are what small changes give") {
  constexpr size_t T = 7, H = 6, G = 2, D = 5;
  const Tensor<2> q = numbers(1, 2, 0, T, H * D), k = numbers(2, 2, 0, T, G * D);
  const Tensor<2> v = numbers(3, 2, 0, T, G * D), dout = numbers(4, 2, 0, T, H * D);
  for (const Mask mask : {Mask::causal, Mask::sliding(3), Mask::none}) {
    const AttentionGradients got = attention_backward(q, k, v, H, G, mask, dout);
    const auto with = [&](const auto& q, const auto& k, const auto& v) {
      return grouped_query_attention(q, k, v, H, G, mask);
    };
    CHECK(all_close(got.q, by_differences([&](auto& x) { return with(x, k, v); }, q, dout),
                    of_differences));
    CHECK(all_close(got.k, by_differences([&](auto& x) { return with(q, x, v); }, k, dout),
                    of_differences));
    CHECK(all_close(got.v, by_differences([&](auto& x) { return with(q, k, x); }, v, dout),
                    of_differences));
  }
}

TEST_CASE("attention block by block: the formula's gradients, for each text of a batch") {
  for (const size_t T : {1, 2, 7, 48, 49, 65, 130})
    for (const auto& [H, G, D] : {std::array<size_t, 3>{6, 2, 5}, {3, 3, 16}, {4, 1, 10}})
      for (const Mask mask : {Mask::causal, Mask::sliding(20)}) {
        CAPTURE(T);
        CAPTURE(H);
        constexpr size_t B = 2;
        const size_t N = B * T, HD = H * D, GD = G * D;
        const Tensor<2> q = numbers(1, 4, 0, N, HD), k = numbers(2, 4, 0, N, GD);
        const Tensor<2> v = numbers(3, 2, 0, N, GD), dout = numbers(4, 2, 0, N, HD);
        Tensor<2> out = empty(N, HD), dq = empty(N, HD), dk = empty(N, GD), dv = empty(N, GD);
        const auto text = [&](const Tensor<2>& x, size_t b) {
          return copy_of(ConstMatrix(x).rows_from(b * T, T));
        };
        for (size_t b = 0; b < B; ++b)
          xt::view(out, xt::range(b * T, b * T + T), xt::all()) =
              grouped_query_attention(text(q, b), text(k, b), text(v, b), H, G, mask);
        FlashBackwardScratch scratch(H, G, D, T);
        flash_backward({q, k, v, out, dout}, B, H, G, mask, {dq, dk, dv}, scratch);
        // Sums of T·H/G terms of size 1, each with a few roundings.
        const double bound = 16 * std::sqrt(double(T * H / G * D)) * u;
        for (size_t b = 0; b < B; ++b) {
          const AttentionGradients want =
              attention_backward(text(q, b), text(k, b), text(v, b), H, G, mask, text(dout, b));
          CHECK(all_close(text(dq, b), want.q, bound));
          CHECK(all_close(text(dk, b), want.k, bound));
          CHECK(all_close(text(dv, b), want.v, bound));
        }
      }
  FlashBackwardScratch small(2, 1, 4, 3);
  Tensor<2> x = xt::ones<float>({4, 8}), k = xt::ones<float>({4, 4}), dk = k, dv = k, dq = x;
  REFUSES(flash_backward({x, k, k, x, x}, 3, 2, 1, Mask::causal, {dq, dk, dv}, small),
          "B, the texts: wanted a divisor of the rows, got 3");
}

TEST_CASE("RoPE's gradient is turned back, and keeps the magnitude") {
  const RopeTable table = rope_table(9, rope_frequencies(6), 1.25f);
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    const Tensor<2> x = numbers(1, 2, 0, 4, 12), dy = numbers(2, 2, 0, 4, 12);
    Tensor<2> dx = dy;
    rope_rows(dx, 6, backward_table(table), 5, pairing);
    // Turning is linear: dy·turn(x) is turn-back(dy)·x, for any x.
    const Tensor<2> y = rope(x, 6, table, 5, pairing);
    double left = 0, right = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      left += double(dy.data()[i]) * double(y.data()[i]);
      right += double(dx.data()[i]) * double(x.data()[i]);
    }
    CHECK(std::abs(left - right) < 48 * 4 * u);
  }
}

TEST_CASE("by hand: cross-entropy of two equal logits") {
  Tensor<2> logits = {{3, 3}, {1, 2}};
  std::vector<double> losses(2);
  CHECK(cross_entropy_rows(logits, std::vector{1, not_learned}, 0.5f, losses) ==
        doctest::Approx(std::log(2.0)).epsilon(1e-6));
  CHECK(all_close(logits, Tensor<2>{{0.25f, -0.25f}, {0, 0}}, u));
  CHECK(count_learned(std::vector{1, not_learned, 0}) == 2);
  REFUSES(cross_entropy_rows(logits, std::vector{1, 2}, 1, losses),
          "targets: token 1 is 2, wanted one in [0, 2), or -1 for one that is not learned");
}

TEST_CASE("by hand: a token that comes twice adds up, positions begin anew in each text") {
  Tensor<2> table = xt::zeros<float>({3, 65}), positions = table;
  Tensor<2> dx = empty(4, 65);
  for (size_t t = 0; t < 4; ++t) row(dx, t)[64] = float(t + 1), row(dx, t)[0] = 10;
  add_embedding_gradient(std::vector{2, 0, 2, 2}, dx, table);
  CHECK(table(2, 64) == 8);
  CHECK(table(0, 0) == 10);
  CHECK(table(1, 64) == 0);
  add_positions_gradient(2, dx, positions);
  CHECK(positions(0, 64) == 4);
  CHECK(positions(1, 64) == 6);
  CHECK(positions(2, 64) == 0);
}

TEST_CASE("by hand: AdamW's first step is the rate, with the sign of the gradient") {
  Tensor<1> w = {1, 1, 1}, g = {0.5f, -8, 0}, mean = {0, 0, 0}, square = mean;
  std::vector<double> scratch(1);
  const AdamWStep step{{.eps = 1e-8f}, 0.01f, 1};
  adamw_step(step, 0, row(w), row(g), row(mean), row(square), scratch);
  CHECK(all_close(w, Tensor<1>{0.99f, 1.01f, 1}, 1e-6));
  // The decay alone: a hundredth of a tenth of the weight goes.
  adamw_step({{}, 0.01f, 2}, 0.1f, row(w), row(g = {0, 0, 0}), row(mean = {0, 0, 0}),
             row(square = {0, 0, 0}), scratch);
  CHECK(all_close(w, Tensor<1>{0.98901f, 1.00899f, 0.999f}, 1e-6));
}

TEST_CASE("AdamW over 50 steps is the formula in double, with clipping") {
  constexpr size_t n = 9000;  // pieces and a part of one
  Tensor<1> w = numbers(1, 2, 0, n), mean = xt::zeros<float>({n}), square = mean;
  std::vector<double> want(w.begin(), w.end()), m(n), v(n), scratch(adamw_pieces(n));
  const AdamW options;
  for (size_t step = 1; step <= 50; ++step) {
    const Tensor<1> g = numbers(100 + std::uint32_t(step), 4, 0.1f, n);
    adamw_step({options, 0.01f, step, 0.25f}, 0.1f, row(w), row(g), row(mean), row(square),
               scratch);
    for (size_t i = 0; i < n; ++i) {
      const double x = 0.25 * double(g(i)), b1 = double(options.beta1), b2 = double(options.beta2);
      m[i] = b1 * m[i] + (1 - b1) * x, v[i] = b2 * v[i] + (1 - b2) * x * x;
      const double a = m[i] / (1 - std::pow(b1, step)), b = v[i] / (1 - std::pow(b2, step));
      want[i] -= 0.01 * (a / (std::sqrt(b) + 1e-8) + 0.1 * want[i]);
    }
  }
  double worst = 0;
  for (size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(double(w(i)) - want[i]));
  CHECK(worst < 1e-5);  // 50 steps of 0.01, each with an error of a few roundings
}

TEST_CASE("the schedule and clipping") {
  const Schedule schedule{.peak = 1, .floor = 0.2f, .warmup = 10, .steps = 110};
  CHECK(rate_at(schedule, 1) == 0.1f);
  CHECK(rate_at(schedule, 10) == 1);
  CHECK(rate_at(schedule, 60) == doctest::Approx(0.6));
  CHECK(rate_at(schedule, 110) == doctest::Approx(0.2));
  CHECK(rate_at(schedule, 200) == doctest::Approx(0.2));
  CHECK(rate_at({.peak = 1, .floor = 1, .warmup = 0, .steps = 5}, 1) == 1);
  CHECK(clip_factor(5, 1) == 0.2f);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(5, 0) == 1);
  CHECK(decays(Role::matrix));
  CHECK(decays(Role::embedding));
  CHECK_FALSE(decays(Role::gain));
  CHECK_FALSE(decays(Role::bias));
}

TEST_CASE("passages: every tenth is held out, none is in both parts") {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(2100, char('a' + i % 26)) + "\n\n";
  const SplitText split = split_by_passage(text, 10);
  CHECK(split.train.size() + split.held_out.size() == text.size());
  CHECK(split.held_out.size() == 3 * 2102);
  CHECK(split.held_out[0] == 'j');
  REFUSES(split_by_passage("short", 10),
          "text: wanted at least one passage of 2,000 bytes for each 10, got 1");
}

TEST_CASE("windows: each once in an epoch, targets one later, any place without those before") {
  std::vector<int> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int(i);
  constexpr size_t T = 16;
  Windows windows(ids, T, 7);
  const size_t count = windows.in_epoch();
  CHECK(count == 61);
  Batch batch{1, T, std::vector<int>(T), std::vector<int>(T)};
  std::vector<int> orders[2];
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    std::set<int> starts, offsets;
    for (size_t i = 0; i < count; ++i) {
      windows.fill(batch, epoch * count + i);
      starts.insert(batch.ids[0]), offsets.insert(batch.ids[0] % int(T));
      orders[epoch].push_back(batch.ids[0]);
      CHECK(batch.targets[T - 1] == batch.ids[0] + int(T));
      CHECK(batch.targets[0] == batch.ids[1]);
    }
    CHECK(starts.size() == count);
    CHECK(offsets.size() == 1);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[0][0] % int(T) != orders[1][0] % int(T));
  Windows(ids, T, 7).fill(batch, count + 5);
  CHECK(batch.ids[0] == orders[1][5]);
  REFUSES(Windows(std::span(ids).first(32), T, 1),
          "ids, the text's tokens: wanted at least 2·T + 1 = 33, got 32");
}

/// A model for bytes, and a text that it can learn.
static Config tiny() {
  Config config{.block = llama_style(32, 4, 2, 48), .L = 2, .V = 257, .T_max = 16, .tied = true};
  return config;
}
static std::vector<int> text_ids() {
  std::vector<int> ids;
  for (int i = 0; i < 600; ++i) ids.push_back(97 + i * i % 23);
  return ids;
}
static Model drawn(std::uint64_t seed = 3) {
  Random random(seed);
  return Model(tiny(), draw_model(tiny(), random));
}
static TrainingOptions options(size_t B = 4, size_t parts = 1) {
  return {.B = B, .T = 16, .parts = parts, .schedule = {5e-3f, 1e-3f, 5, 200}, .seed = 9};
}
static std::vector<float> bits_of(Trainer& trainer) {
  std::vector<float> all;
  for (const auto& list : {trainer.weights(), trainer.means(), trainer.squares()})
    for (const ListedTensor& tensor : list)
      all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
  return all;
}
static double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

TEST_CASE("one batch is learned by heart, and nothing is allocated on the way") {
  const std::vector<int> ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  Batch batch{4, 16, std::vector<int>(64), std::vector<int>(64)};
  fill_in_order(batch, ids, 0);
  double loss = 0;
  for (int i = 0; i < 200; ++i) loss = trainer.step_on(batch).loss;
  CHECK(loss < 0.05);
  CHECK(trainer.loss_of(std::span(ids).first(65)) == doctest::Approx(loss).epsilon(0.5));
}

TEST_CASE("a batch in two parts is one batch") {
  const std::vector<int> ids = text_ids();
  Trainer whole(drawn(), options(4, 1), ids), parts(drawn(), options(2, 2), ids);
  for (int i = 0; i < 3; ++i)
    CHECK(whole.step().loss == doctest::Approx(parts.step().loss).epsilon(1e-5));
  CHECK(apart(bits_of(whole), bits_of(parts)) < 1e-3);
}

TEST_CASE("gains do not decay; matrices do") {
  const std::vector<int> ids = text_ids();
  TrainingOptions with = options(), without = options();
  with.adamw.decay = 0.5f, without.adamw.decay = 0;
  Trainer a(drawn(), with, ids), b(drawn(), without, ids);
  a.step(), b.step();
  const std::vector<ListedTensor> x = a.weights(), y = b.weights();
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(full_name(x[i].info));
    CHECK(std::ranges::equal(x[i].numbers, y[i].numbers) == !decays(x[i].info.role));
  }
}

TEST_CASE("a number that is not finite stops the run and names a tensor") {
  const std::vector<int> ids = text_ids();
  Trainer trainer(drawn(), options(), ids);
  trainer.weights().back().numbers[0] = std::nanf("");
  const std::vector<float> before = bits_of(trainer);
  CHECK_THROWS_AS(trainer.step(), std::runtime_error);
  const std::vector<float> after = bits_of(trainer);
  CHECK(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)) == 0);
}

namespace {
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_training_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};
}  // namespace

TEST_CASE("a run that is saved and read goes on with the same bits") {
  const Folder folder;
  const std::vector<int> ids = text_ids();
  Trainer whole(drawn(), options(2, 2), ids), first(drawn(), options(2, 2), ids);
  LossCurve curve_of_whole, curve;
  for (int i = 0; i < 10; ++i) {
    curve_of_whole.push_back({whole.step()});
    if (i == 4) curve_of_whole.back().held_out = 5.25;
  }
  for (int i = 0; i < 5; ++i) curve.push_back({first.step()});
  curve.back().held_out = 5.25;
  first.loss_of(ids);  // measuring between steps changes nothing
  const RunFolder run{folder.path};
  save_run(run, first, byte_tokenizer(), curve);

  const GgufFile state = GgufFile::open(run.state());
  const TrainingOptions read = read_options(state);
  CHECK(read.B == 2);
  CHECK(read.parts == 2);
  CHECK(read.schedule.peak == 5e-3f);
  CHECK(read.schedule.floor == 1e-3f);
  CHECK(read.schedule.warmup == 5);
  CHECK(read.adamw.beta2 == 0.95f);
  CHECK(read.seed == 9);
  Trainer second(drawn(4), read, ids);
  LossCurve going_on = read_checkpoint(state, second);
  for (int i = 0; i < 5; ++i) going_on.push_back({second.step()});
  CHECK(apart(bits_of(whole), bits_of(second)) == 0);
  CHECK(csv_of(curve_of_whole) == csv_of(going_on));

  // The model beside it is chapter 10's.
  const GgufFile model = GgufFile::open(run.model());
  const Model loaded = read_model(model);
  CHECK(std::ranges::equal(loaded.weights().embedding.floats(),
                           first.model().weights().embedding.floats()));
  CHECK(read_tokenizer(model).encode("aé") == std::vector<int>{97, 0xc3, 0xa9});
}

TEST_CASE("a damaged checkpoint is refused") {
  const Folder folder;
  const std::vector<int> ids = text_ids();
  const std::filesystem::path path = folder.path / "state.gguf";
  Trainer trainer(drawn(), options(), ids);
  trainer.weights()[0].numbers[3] = std::nanf("");
  save_checkpoint(path, trainer, {});
  Trainer other(drawn(), options(), ids);
  REFUSES_AS(read_checkpoint(GgufFile::open(path), other),
             path.string() + ": w embedding: a number is not finite", std::runtime_error);
  trainer.weights()[0].numbers[3] = 0;
  save_checkpoint(path, trainer, {});
  CHECK(read_checkpoint(GgufFile::open(path), other).empty());
  const std::string whole = read_file(path);
  for (size_t cut = 0; cut < whole.size(); cut += whole.size() / 40 + 1) {
    write_file(path, whole.substr(0, cut));
    CHECK_THROWS_AS(read_checkpoint(GgufFile::open(path), other), std::runtime_error);
  }
}

TEST_CASE("what a killed program left behind is removed, and nothing else") {
  const Folder folder;
  for (const char* name : {".partial-a1B2c3", "state.gguf", ".partially", "x.partial-a1B2c3"})
    write_file(folder.path / name, "x");
  remove_partial_files(folder.path);
  CHECK_FALSE(std::filesystem::exists(folder.path / ".partial-a1B2c3"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 3);
}

TEST_CASE("ids in a file") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "train.ids";
  save_ids(path, std::vector{0, 5, 256});
  CHECK(std::ranges::equal(MappedIds(path, 257).ids(), std::vector{0, 5, 256}));
  REFUSES_AS(MappedIds(path, 256),
             path.string() + ": token 2 is 256, outside [0, 256), the vocabulary",
             std::runtime_error);
  write_file(path, "12345");
  REFUSES_AS(MappedIds(path, 257), path.string() + ": wanted whole numbers of 4 bytes, got 5 bytes",
             std::runtime_error);
}

TEST_CASE("a folder's text: prose of pages, other files whole, by name") {
  const Folder folder;
  REFUSES_AS(text_of_folder(folder.path),
             folder.path.string() + ": wanted files that end in .md or .txt, got none",
             std::runtime_error);
  write_file(folder.path / "b.txt", "# two\n");
  write_file(folder.path / "a.md", "# Title\n\nOne.\n\n| a table |\n\nMore.\n");
  write_file(folder.path / "c.bin", "no");
  CHECK(text_of_folder(folder.path) == "\nOne.\n\nMore.\n\n# two\n\n");
}

TEST_CASE("the curve as text") {
  LossCurve curve = {{{1, 5.5, 2.5, 1e-3f, 0.01}}, {{2, 5, 2, 2e-3f, 0.02}, 5.25}};
  CHECK(csv_of(curve) ==
        "step,loss,held_out,gradient_norm,rate,update_ratio\n"
        "1,5.500000,,2.5,0.001,0.01\n2,5.000000,5.250000,2,0.002,0.02\n");
  // A checkpoint rounds it up as a float; written as a double it would end in 2.
  CHECK(csv_of({{{1, 5.4247425, 1, 1, 1}}}).find(",5.424743,") != std::string::npos);
  const std::string drawing = drawing_of(curve, 60, 3);
  CHECK(drawing == "   5.50 │• \n   5.25 │  \n   5.00 │ •\n        step 1 to 2\n");
  CHECK(svg_of(curve).find("nan") == std::string::npos);
  CHECK(svg_of(curve).ends_with("</svg>\n"));
}
