// What must be true of the kernels of the experts; run on the stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "14_mixture_of_experts/kernel_problem.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;
using Numbers = std::vector<float>;

#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few tiles show what many do
static const std::vector<int> tokens = {9}, widths = {8, 72}, crowds = {65};
#else
static const std::vector<int> tokens = {1, 9, 70}, widths = {8, 64, 136, 200},
                              crowds = {64, 65, 130};
#endif

static Tensor<2> zeros(size_t rows, size_t cols) { return numbers(0, 0, 0, rows, cols); }

static void check(const Problem& p) {
  CAPTURE(p.n.T);
  CAPTURE(p.n.E);
  CAPTURE(p.n.k);
  CAPTURE(p.n.C);
  CAPTURE(p.n.F);
  const Expected want = expected(p);
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const Ran got = run(p, form);
    CHECK(got.fault == "");
    CHECK(worst(got.hidden, want.hidden, want.hidden_bound) <= 1);
    CHECK(std::ranges::all_of(got.past, [](float number) { return std::isnan(number); }));
    CHECK(worst(got.y, want.y, want.y_bound) <= 1);
  }
}

TEST_CASE("by hand: two tokens, two experts, and what is written where") {
  Problem p = problem({.T = 2, .E = 2, .k = 1, .C = 8, .F = 8});
  p.x = zeros(2, 8);
  Tensor<2> router = zeros(2, 8), gate = zeros(8, 8), up = gate, down = gate;
  p.x(0, 1) = 2, p.x(1, 0) = 1;
  router(0, 0) = 1, router(1, 1) = 1;  // token 0 to expert 1, token 1 to expert 0
  p.router = router;
  gate(3, 1) = 50, up(3, 1) = 0.5f, down(7, 3) = 0.25f;
  p.experts[0].w_gate = zeros(8, 8);
  p.experts[1].w_gate = gate, p.experts[1].w_up = up, p.experts[1].w_down = down;
  p.route_anew();
  Numbers hidden(16, 0.0f), y(16, 0.0f);
  hidden[8 + 3] = 100;  // row 1 is expert 1's, for token 0: silu(100) = 100, times 1
  y[7] = 25;
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const Ran got = run(p, form);
    CHECK(got.hidden == hidden);
    CHECK(got.results == y);
    CHECK(got.y == y);
  }
}

TEST_CASE("the kernels compute the formula, for any number of experts and of choices") {
  for (const int E : {1, 8, 64})
    for (const int k : {1, 2, 8})
      for (const int T : tokens)
        if (k <= E) check(problem({.T = T, .E = E, .k = k, .C = 72, .F = 40}));
}

TEST_CASE("widths that fill no tile, one and more than one") {
  for (const int C : widths)
    for (const int F : widths) check(problem({.T = 9, .E = 3, .k = 2, .C = C, .F = F}));
}

TEST_CASE("more tiles of rows than a band holds, and more than one tile of columns") {
  check(problem({.T = 20, .E = 20, .k = 3, .C = 16, .F = 264}));
  check(problem({.T = 9, .E = 3, .k = 2, .C = 264, .F = 16}));
}

TEST_CASE("more experts than a warp has lanes, and a last one that begins a new warp") {
  for (const int E : {31, 32, 33, 100}) check(problem({.T = 20, .E = E, .k = 3, .C = 16, .F = 16}));
}

TEST_CASE("all tokens want one expert, or two, and all others have none") {
  for (const int T : crowds)
    for (const int k : {1, 2}) {
      Problem p = problem({.T = T, .E = 40, .k = k, .C = 16, .F = 24});
      Tensor<2> router = zeros(40, 16);
      for (float& number : row(router, 35)) number = 1;
      p.router = router;
      p.x = rounded(numbers(1, 1, 1, size_t(T), 16));  // above 0, so expert 35 scores highest
      p.route_anew();
      REQUIRE(p.assignment.count(35) == size_t(T));
      check(p);
    }
}

TEST_CASE("what a token gets has the same bits, whichever other tokens there are") {
  Problem p = problem({.T = crowds.back(), .E = 2, .k = 2, .C = 72, .F = 40});
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const Ran all = run(p, form);
    for (const int T : {1, 7}) {
      Problem last = p;
      last.n.T = T, last.x = xt::view(p.x, xt::range(p.x.shape(0) - size_t(T), p.x.shape(0)));
      last.route_anew();  // the same choices; the last bits of weights may differ
      last.routed.weights =
          xt::view(p.routed.weights, xt::range(p.x.shape(0) - size_t(T), p.x.shape(0)));
      CHECK(run(last, form).y == Numbers(all.y.end() - long(T) * 72, all.y.end()));
    }
  }
}

TEST_CASE("no bit depends on the order of the threads") {
  const Problem p = problem({.T = 9, .E = 3, .k = 2, .C = 264, .F = 264});  // 5 steps of 64
  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const Ran one = run(p, form);
    for (const char* order : {"reverse", "1", "2"}) {
      CAPTURE(order);
      setenv("T2T_ORDER", order, 1);
      const Ran other = run(p, form);
      setenv("T2T_ORDER", before.c_str(), 1);
      CHECK(other.fault == "");
      CHECK(other.hidden == one.hidden);
      CHECK(other.y == one.y);
    }
  }
}

TEST_CASE("a NaN stays with its token") {
  Problem p = problem({.T = 20, .E = 3, .k = 2, .C = 16, .F = 16});
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const float number = p.x(7, 3);
    const Numbers before = run(p, form).y;
    p.x(7, 3) = std::nanf("");  // the choices stay as they are
    const Numbers after = run(p, form).y;
    p.x(7, 3) = number;
    for (size_t i = 0; i < before.size(); ++i) {
      CAPTURE(i);
      CHECK((i / 16 == 7 ? std::isnan(after[i]) : after[i] == before[i]));
    }
  }
}

TEST_CASE("nothing is written for rows that no expert has") {
  const Problem p = problem({.T = 20, .E = 3, .k = 2, .C = 16, .F = 16});
  std::vector<int> begin = ints(p.assignment.begin);
  const size_t rows = size_t(begin[2]) - 1;
  begin[2] = begin[3] = int(rows);  // expert 1 lacks its last row, expert 2 has none
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const Ran all = run(p, form), some = run(p, form, begin);
    for (size_t r = 0; r < 40; ++r) {
      CAPTURE(r);
      const size_t at = 16 * r, to = 16 * p.assignment.choices[r];
      for (size_t i = 0; i < 16; ++i) {
        CHECK((r < rows ? some.hidden[at + i] == all.hidden[at + i]
                        : std::isnan(some.hidden[at + i])));
        CHECK((r < rows ? some.results[to + i] == all.results[to + i]
                        : std::isnan(some.results[to + i])));
      }
    }
  }
}

TEST_CASE("by warpgroups: what threads have gathered is fenced before it is multiplied") {
  if (has_gpu()) return;  // only the stand-in keeps a record of who wrote what
  setenv("T2T_PROXIES", "1", 1);
  check(problem({.T = 5, .E = 2, .k = 2, .C = 72, .F = 8}));
  unsetenv("T2T_PROXIES");
}

TEST_CASE("by warpgroups: the GPU that it wants is named") {
  if (has_gpu()) return;  // only the stand-in can be each of these GPUs
  DeviceBuffer<bf16> x(64);
  DeviceBuffer<float> y(64);
  DeviceBuffer<int> some(8);
  const ExpertRows one{1, 1, 1, some.data(), some.data()};
  for (const auto& [card, capability] : {std::pair{"sm_80", "8.0"}, std::pair{"sm_120", "12.0"}}) {
    const std::string refusal =
        "grouped_warpgroups: wanted compute capability 9.0, got " + std::string(capability);
    setenv("T2T_CARD", card, 1);
    REFUSES_AS(launch_expert_hidden_warpgroups(one, x.data(), x.data(), x.data(), 8, 8, x.data()),
               refusal, std::runtime_error);
    REFUSES_AS(launch_expert_results_warpgroups(one, y.data(), x.data(), x.data(), 8, 8, y.data()),
               refusal, std::runtime_error);
    unsetenv("T2T_CARD");
  }
}

TEST_CASE("a token adds up its results from left to right") {
  const DeviceBuffer<float> results = on_device(Numbers{1, 2, 0x1p24f, 3, -0x1p24f, 4,  //
                                                        5, 6, 7, 8, 9, 10});
  DeviceBuffer<float> y(4);
  launch_combine(results.data(), 2, 3, 2, y.data());
  CHECK(y.download() == Numbers{0, 9, 21, 24});  // 1 + 2^24 rounds to 2^24
}

TEST_CASE("the products fit the shared memory of each GPU") {
  for (const char* card : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(card);
    setenv("T2T_CARD", card, 1);
    check(problem({.T = 2, .E = 2, .k = 1, .C = 8, .F = 8}));
    unsetenv("T2T_CARD");
  }
}

TEST_CASE("the kernels of the experts refuse sizes and pointers that they cannot take") {
  DeviceBuffer<float> memory(64);
  DeviceBuffer<int> ints(8);
  float* y = memory.data();
  auto* x = reinterpret_cast<bf16*>(y);
  const int* some = ints.data();
  const ExpertRows one{1, 1, 1, some, some};
  for (const ExpertForm& form : forms()) {
    CAPTURE(form.name);
    const auto hidden = [&](const ExpertRows& rows, int C, int F, const bf16* w_up) {
      form.hidden(rows, x, x, w_up, C, F, x);
    };
    const auto result = [&](const ExpertRows& rows, int C, int F, float* to) {
      form.results(rows, y, x, x, C, F, to);
    };
    REFUSES(hidden({0, 1, 1, some, some}, 8, 8, x), "T: wanted at least 1, got 0");
    REFUSES(hidden({1, 0, 1, some, some}, 8, 8, x), "k: wanted at least 1, got 0");
    REFUSES(result({1, 1, 0, some, some}, 8, 8, y), "E: wanted at least 1, got 0");
    REFUSES(result({1 << 20, 1 << 11, 1, some, some}, 8, 8, y),
            "T·k: wanted at most 2147483647, got 2147483648");
    REFUSES(hidden({1, 1, 1, nullptr, some}, 8, 8, x), "begin: wanted device memory, got 0");
    REFUSES(result({1, 1, 1, some, nullptr}, 8, 8, y), "choices: wanted device memory, got 0");
    REFUSES(hidden(one, 12, 8, x), "C: wanted a multiple of 8, got 12");
    REFUSES(result(one, 8, 12, y), "F: wanted a multiple of 8, got 12");
    REFUSES(hidden(one, 0, 8, x), "C: wanted at least 1, got 0");
    REFUSES(hidden(one, 8, 4194248, x), "F: wanted at most 4194240, got 4194248");
    REFUSES(result(one, 8388488, 8, y), "C: wanted at most 8388480, got 8388488");
    REFUSES(hidden(one, 8, 8, nullptr), "w_up: wanted device memory, got 0");
    REFUSES(hidden(one, 8, 8, x + 1), "w_up: wanted an address that is a multiple of 16, got 2");
    REFUSES(result(one, 8, 8, y + 1), "results: wanted an address that is a multiple of 16, got 4");
  }
  REFUSES(launch_combine(y, 1, 0, 1, y), "k: wanted at least 1, got 0");
  REFUSES(launch_combine(nullptr, 1, 1, 1, y), "results: wanted device memory, got 0");
}
