// What must be true of the plain kernels for a GPU; run on the stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "04_causal_attention/gpu_bench/naive_steps.hpp"
#include "04_causal_attention/kernels/attention_naive.hpp"
#include "support/apart.hpp"
#include "support/kernels/attention_problem.hpp"
#include "support/refuses.hpp"

using namespace t2t;

static double worst_error(const AttentionSizes& sizes, Layout layout = Layout::tight) {
  AttentionProblem<float> problem(sizes, layout, 1);
  const AttentionCall<float> call = problem.call();
  DeviceBuffer<float> scores(naive_scores(call));
  attend_naive(call, scores.data());
  return problem.worst_error();
}

TEST_CASE("naive kernels: float64 agrees at every size, masked or not") {
  for (const int T : {1, 31, 33, 70})
    for (const int S : {1, 31, 33, 127})
      for (const bool causal : {false, true}) {
        CAPTURE(T);
        CAPTURE(S);
        CAPTURE(causal);
        CHECK(worst_error({.B = 1, .T = T, .S = S, .H = 2, .G = 2, .D = 64, .causal = causal}) <=
              1);
      }
  CHECK(worst_error({.B = 1, .T = 3, .S = 1000, .H = 1, .G = 1, .D = 128}) <= 1);
  for (const int D : {1, 4, 33, 96}) {
    CAPTURE(D);
    CHECK(worst_error({.B = 1, .T = 9, .S = 9, .H = 2, .G = 2, .D = D, .causal = true}) <= 1);
  }
}

TEST_CASE("naive kernels: batches, groups of heads, a start, and rows that lie apart") {
  AttentionSizes sizes{
      .B = 2, .T = 9, .S = 40, .H = 6, .G = 2, .D = 64, .causal = true, .start = 20};
  for (const Layout layout : {Layout::tight, Layout::gaps}) CHECK(worst_error(sizes, layout) <= 1);
  sizes.S = sizes.T;
  CHECK(worst_error(sizes, Layout::fused) <= 1);
}

TEST_CASE("naive kernels: high scores do not overflow") {
  CHECK(worst_error({.B = 1, .T = 5, .S = 50, .H = 1, .G = 1, .D = 64, .deviation = 40}) <= 1);
}

static void attend_with(int B, int T, int S, int H, int G, int D, int start) {
  alignas(16) float rows[4] = {};
  const Strides strides = {64, 64, 64};
  attend_naive(
      {rows, rows, rows, rows, strides, strides, strides, strides, B, T, S, H, G, D, true, start},
      rows);
}

TEST_CASE("a call that no kernel takes is refused") {
  REFUSES(attend_with(0, 1, 1, 1, 1, 64, 0), "B: wanted at least 1, got 0");
  REFUSES(attend_with(1, 0, 1, 1, 1, 64, 0), "T: wanted at least 1, got 0");
  REFUSES(attend_with(1, 1, 0, 1, 1, 64, 0), "S: wanted at least 1, got 0");
  REQUIRE(ending_apart([] { expect_sizes(1, 1, 1, 1, 0, 64, 0); }).starts_with("threw"));
  REFUSES(attend_with(1, 1, 1, 1, 0, 64, 0), "G: wanted at least 1, got 0");
  REFUSES(attend_with(1, 1, 1, 3, 2, 64, 0), "H: wanted a multiple of G, got 3");
  REFUSES(attend_with(1, 1, 1, 1, 1, 0, 0), "D: wanted at least 1, got 0");
  REFUSES(attend_with(1, 1, 1, 1, 1, 64, -1), "start: wanted at least 0, got -1");
  REFUSES(attend_with(65536, 1, 1, 1, 1, 64, 0), "B·H: wanted at most 65535, got 65536");
  REFUSES(attend_with(1, 524281, 1, 1, 1, 64, 0), "T: wanted at most 524280, got 524281");
  const int last = std::numeric_limits<int>::max() - 128;  // of the positions, with T = 2
  CHECK_NOTHROW(expect_sizes(1, 2, 1, 1, 1, 64, last - 2));
  CHECK_THROWS_AS(expect_sizes(1, 2, 1, 1, 1, 64, last - 1), std::invalid_argument);
}

TEST_CASE("by hand: 2 heads of 64 are 128 numbers a token, and 3 tokens 384 a text") {
  const Strides strides = row_major(3, 2, 64);
  CHECK(strides.batch == 384);
  CHECK(strides.token == 128);
  CHECK(strides.head == 64);
}

TEST_CASE("memory that is missing is refused by its name") {
  float rows[64] = {};
  const Strides strides = {64, 64, 64};
  AttentionCall<float> call{rows, rows, rows, rows, strides, strides, strides, strides,
                            1,    1,    1,    1,    1,       64,      false,   0};
  for (const auto& [name, place] : {std::pair("q", &call.q), {"k", &call.k}, {"v", &call.v}}) {
    const float* there = std::exchange(*place, nullptr);
    REFUSES(attend_naive(call, rows), name + std::string(": wanted device memory, got 0"));
    *place = there;
  }
  call.out = nullptr;
  REFUSES(attend_naive(call, rows), "out: wanted device memory, got 0");
}

TEST_CASE("by hand: 70 queries, 33 keys and 2 heads take 36 blocks of scores and 36 of rows") {
  AttentionCall<float> call{};
  call.B = 1, call.T = 70, call.S = 33, call.H = 2;
  const NaiveLaunches launches = naive_launches(call);
  const auto count = [](dim3 size) { return size.x * size.y * size.z; };
  CHECK(count(launches.scores.grid) == 2 * 9 * 2);  // of 32 keys and 8 queries
  CHECK(count(launches.scores.block) == 256);
  CHECK(count(launches.softmax.grid) == 18 * 2);  // of 4 rows
  CHECK(count(launches.softmax.block) == 128);
  CHECK(count(launches.values.grid) == count(launches.softmax.grid));
}

/// The three kernels one by one, as the bench on a GPU times them.
struct Steps {
  explicit Steps(bool causal) : x{2, 40, 40, 4, 2, 64, causal} {
    launch_naive_scores(call, scores.data());
  }
  void softmax() { launch_naive_softmax(call, scores.data()); }
  void values() { launch_naive_values(call, scores.data()); }

  /// Of the whole buffer of scores, after each number was changed.
  template <class Change>
  void change_scores(Change change) {
    std::vector<float> numbers = scores.download();
    for (float& number : numbers) number = change(number);
    scores.upload(numbers);
  }

  Tensors<float> x;
  AttentionCall<float> call = x.call();
  DeviceBuffer<float> scores{naive_scores(call)};
};

TEST_CASE("what the bench checks: the right result of each kernel passes") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    Steps steps(causal);
    CHECK(scores_error(steps.x, steps.scores) <= 1);
    steps.softmax();
    CHECK(weights_error(steps.x, steps.scores) <= 1);
    steps.values();
    CHECK(worst_error(steps.x) <= 1);
    steps.x.forget_out();
    attend_naive(steps.call, steps.scores.data());
    CHECK(worst_error(steps.x) <= 1);
  }
}

TEST_CASE("what the bench checks: scores that are wrong, missing or seen do not pass") {
  const float infinity = std::numeric_limits<float>::infinity();
  Steps steps(true);
  steps.change_scores([](float score) { return score * 1.001f; });
  CHECK(scores_error(steps.x, steps.scores) > 1);
  steps.change_scores([](float) { return std::numeric_limits<float>::quiet_NaN(); });
  CHECK(scores_error(steps.x, steps.scores) == infinity);
  launch_naive_scores(steps.call, steps.scores.data());
  steps.change_scores([&](float score) { return score == -infinity ? 0 : score; });
  CHECK(scores_error(steps.x, steps.scores) == infinity);
}

TEST_CASE("what the bench checks: weights that are wrong, missing or seen do not pass") {
  Steps steps(true);
  CHECK(weights_error(steps.x, steps.scores) > 1);  // still scores
  steps.softmax();
  steps.change_scores([](float weight) { return weight * 1.001f; });
  CHECK(weights_error(steps.x, steps.scores) > 1);
  steps.change_scores([](float weight) { return weight == 0 ? 1e-6f : weight / 1.001f; });
  CHECK(weights_error(steps.x, steps.scores) == std::numeric_limits<double>::infinity());
  steps.change_scores([](float) { return std::numeric_limits<float>::quiet_NaN(); });
  CHECK(weights_error(steps.x, steps.scores) == std::numeric_limits<double>::infinity());
}

TEST_CASE("what the bench checks: a result that is wrong or missing does not pass") {
  Steps steps(true);
  steps.softmax(), steps.values();
  std::vector<float> out = steps.x.out.download();
  for (float& number : out) number += 0.001f;
  steps.x.out.upload(out);
  CHECK(worst_error(steps.x) > 1);
  steps.x.forget_out();
  CHECK(worst_error(steps.x) == std::numeric_limits<double>::infinity());
}
