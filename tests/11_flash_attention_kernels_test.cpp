// What must be true of every rung of the ladder; run on the stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "11_flash_attention/kernels/kernels.hpp"
#include "support/hashed_numbers.hpp"
#include "support/kernels/attention_problem.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::flash_attention_kernels_test {

#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few tiles show what many do
static constexpr int many = 140;
static const std::vector<int> lengths = {1, 70}, starts = {10}, group_sizes = {7};
static constexpr int most_sections = 1;
static const std::vector<std::string> orders = {"1"};
#else
static constexpr int many = 1000;
static const std::vector<int> lengths = {1, 31, 33, 127}, starts = {0, 10, 63, 64, 65, 95, 200},
                              group_sizes = {1, 4, 7, 16};
static constexpr int most_sections = 3;
static const std::vector<std::string> orders = {"reverse", "1", "2", "3"};
#endif

/// Sets a variable of the environment as long as it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Setting() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::string before_;
};

template <int P>
static void decode_in(const AttentionCall<bf16>& call) {
  DecodeScratch scratch(decode_scratch(call, P));
  attend_decode(call, P, scratch);
  synchronize();
}

template <int Section>
static void swizzle_in(const AttentionCall<bf16>& call) {
  attend_swizzle_async(call, Section);
}

template <int Blocks>
static void persistent_in(const AttentionCall<bf16>& call) {
  attend_persistent(call, Blocks);
}

template <class Number>
struct Rung {
  std::string name;
  void (*attend)(const AttentionCall<Number>&);
  int oldest = 80, newest = 999;  // compute capabilities that have its instructions
  bool runs_here() const {
    const int capability = compute_capability();
    return oldest <= capability && capability <= newest;
  }
};
static const std::vector<Rung<float>> float_rungs = {{"fused", attend_fused},
                                                     {"shared tiles", attend_shared_tiles}};
static const std::vector<Rung<bf16>> bf16_rungs = {
    {"tensor cores", attend_tensor_cores},      {"swizzle, async", swizzle_in<0>},
    {"decode, 1 stretch", decode_in<1>},        {"decode, 3 stretches", decode_in<3>},
    {"bulk copies", attend_bulk_copies, 90},    {"warpgroups", attend_warpgroup_products, 90, 90},
    {"roles", attend_warp_specialized, 90, 90}, {"overlapped", attend_overlapped, 90, 90},
    {"persistent", persistent_in<2>, 90, 90}};

template <class Number>
static double worst_error(const Rung<Number>& rung, AttentionProblem<Number>& problem) {
  std::string fault;  // what the stand-in reports, for which a GPU may hang or compute anything
  try {
    rung.attend(problem.call());
  } catch (const std::runtime_error& reported) {
    fault = reported.what();
  }
  CHECK(fault == "");
  return fault.empty() ? problem.worst_error() : INFINITY;
}

/// These rungs, against float64.
template <class Number>
static void check(std::span<const Rung<Number>> rungs, const AttentionSizes& n, Layout layout) {
  CAPTURE(n.T);
  CAPTURE(n.S);
  CAPTURE(n.D);
  CAPTURE(n.causal);
  CAPTURE(n.start);
  AttentionProblem<Number> problem(n, layout, 1);
  for (const auto& rung : rungs) {
    if (!rung.runs_here()) continue;
    CAPTURE(rung.name);
    CHECK(worst_error(rung, problem) <= 1);
  }
}
static void check(const AttentionSizes& n, Layout layout = Layout::tight) {
  check<float>(float_rungs, n, layout);
  check<bf16>(bf16_rungs, n, layout);
}

TEST_CASE("every rung: float64 agrees at every size, masked or not") {
  for (const int D : {64, 128})
    for (const int T : lengths)
      for (const int S : lengths)
        for (const bool causal : {false, true})
          check({.B = 1, .T = T, .S = S, .H = 1, .G = 1, .D = D, .causal = causal},
                T % 2 == S % 4 ? Layout::gaps : Layout::tight);
}

TEST_CASE("every rung: many tiles, so that what is carried between them matters" *
          doctest::test_suite("slow")) {
  check({.B = 1, .T = many / 9, .S = many, .H = 1, .G = 1, .D = 64});
  check({.B = 1, .T = 33, .S = many, .H = 1, .G = 1, .D = 128, .causal = true, .start = many - 33});
  check({.B = 1, .T = many, .S = 99, .H = 1, .G = 1, .D = 64, .causal = true});
}

TEST_CASE("rungs 6 to 10: in any order of warps and copies, with groups that see unequally many") {
  if (has_gpu()) return;  // a GPU chooses its own order
  for (const std::string& order : orders) {
    CAPTURE(order);
    const Setting of_threads("T2T_ORDER", order.c_str());
    for (const int D : {64, 128}) {
      AttentionSizes n{.B = 1, .T = 128, .S = 400, .H = 1, .G = 1, .D = D, .causal = true};
      n.start = 300;  // the first 64 queries see three tiles of keys, the next four
      check<bf16>(std::span(bf16_rungs).last(5), n, Layout::tight);
    }
  }
}

TEST_CASE("every rung: the same bits in each run, in any order of threads") {
  AttentionProblem<bf16> problem(
      {.B = 1, .T = 100, .S = 200, .H = 1, .G = 1, .D = 64, .causal = true, .start = 100},
      Layout::tight, 1);
  const auto run = [&](const Rung<bf16>& rung, const std::string& order) {
    const Setting of_threads("T2T_ORDER", order.c_str());
    rung.attend(problem.call());
    synchronize();
    return problem.written();
  };
  for (const auto& rung : bf16_rungs) {
    if (!rung.runs_here()) continue;
    CAPTURE(rung.name);
    const std::vector<bf16> first = run(rung, "forward");
    for (int i = 0; i < (has_gpu() ? 100 : 2); ++i) {
      const std::vector<bf16> again = run(rung, std::to_string(i));
      CHECK(std::memcmp(first.data(), again.data(), first.size() * sizeof(bf16)) == 0);
    }
  }
}

TEST_CASE("every rung: batches, groups of heads, rows that lie apart or in one buffer" *
          doctest::test_suite("slow")) {
  AttentionSizes n{.B = 2, .T = 20, .S = 90, .H = 6, .G = 2, .D = 64, .causal = true, .start = 70};
  check(n, Layout::gaps);
  n.S = n.T = 70, n.start = 0;
  check(n, Layout::fused);
  n = {.B = 2, .T = 3, .S = 40, .H = 4, .G = 2, .D = 128};
  check(n, Layout::gaps);
}

TEST_CASE(
    "every rung: a start inside the keys, at their end, past it, and more queries than keys") {
  for (const int start : starts)
    check({.B = 1, .T = 5, .S = 100, .H = 2, .G = 1, .D = 64, .causal = true, .start = start});
  check({.B = 1, .T = 140, .S = 20, .H = 1, .G = 1, .D = 64, .causal = true});
}

TEST_CASE("every rung: high scores do not overflow") {
  check({.B = 1, .T = 40, .S = 150, .H = 1, .G = 1, .D = 64, .deviation = 40});
  // In four tiles of 128 keys the highest score rises again and again.
  check({.B = 1, .T = 40, .S = 500, .H = 1, .G = 1, .D = 64, .deviation = 40});
  // The first tile's scores are some 200, the last one's below 50: exp(150) is infinite.
  check({.B = 1, .T = 9, .S = 200, .H = 1, .G = 1, .D = 64, .deviation = 90, .fading = true});
}

TEST_CASE("every rung: a NaN reaches the queries that see it, in its own channel") {
  for (const auto& rung : bf16_rungs) {
    if (!rung.runs_here()) continue;
    CAPTURE(rung.name);
    std::vector<bf16> ones(3 * 64, __float2bfloat16(1)), values = ones;
    values[64] = __float2bfloat16(std::nanf(""));
    const DeviceBuffer<bf16> q{std::span<const bf16>(ones)}, v{std::span<const bf16>(values)};
    DeviceBuffer<bf16> out(3 * 64);
    const Strides strides = row_major(3, 1, 64);
    rung.attend({q.data(), q.data(), v.data(), out.data(), strides, strides, strides, strides, 1, 3,
                 3, 1, 1, 64, true, 0});
    const std::vector<bf16> got = out.download();
    for (int t = 0; t < 3; ++t) CHECK(__bfloat162float(got[t * 64 + 1]) == 1);
    for (int t = 1; t < 3; ++t) {
      CAPTURE(t);
      CAPTURE(__bfloat162float(got[t * 64]));
      CHECK(std::isnan(__bfloat162float(got[t * 64])));
    }
  }
}

TEST_CASE("swizzle, async: any number of heads in a section, and a last section with fewer" *
          doctest::test_suite("slow")) {
  const Rung<bf16> rungs[] = {{"4", swizzle_in<4>}, {"1", swizzle_in<1>}, {"100", swizzle_in<100>}};
  const auto some = std::span<const Rung<bf16>>(rungs).first(most_sections);
  AttentionSizes n{
      .B = 3, .T = 200, .S = 40, .H = 2, .G = 1, .D = 64};  // two tiles of each of 6 heads
  check(some, n, Layout::gaps);
  n.causal = true;
  check(some, n, Layout::tight);
}

TEST_CASE("swizzle, async: a section's keys and values take at most 16 MiB of L2") {
  AttentionCall<bf16> call{};
  const auto heads = [&](int B, int S, int H, int G, int D) {
    call.B = B, call.S = S, call.H = H, call.G = G, call.D = D;
    return heads_of_section(call);
  };
  CHECK(heads(1, 16384, 16, 16, 128) == 2);  // exactly 8 MiB for each head
  CHECK(heads(1, 16385, 16, 16, 128) == 1);
  CHECK(heads(1, 16384, 16, 4, 128) == 8);  // four heads share keys
  CHECK(heads(1, 1 << 20, 16, 16, 128) == 1);
  CHECK(heads(2, 1, 4, 4, 64) == 8);  // all there are
}

TEST_CASE("every rung fits the shared memory of each GPU") {
  if (has_gpu()) return;  // only the stand-in can be each of these GPUs
  for (const std::string card : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(card);
    const Setting of_gpu("T2T_CARD", card.c_str());
    for (const int D : {64, 128}) check({.B = 1, .T = 3, .S = 9, .H = 1, .G = 1, .D = D});
  }
}

TEST_CASE("persistent: any number of blocks, each with any number of tiles" *
          doctest::test_suite("slow")) {
  const std::vector<Rung<bf16>> rungs = {{"0", persistent_in<0>, 90, 90},
                                         {"1", persistent_in<1>, 90, 90},
                                         {"5", persistent_in<5>, 90, 90},
                                         {"100", persistent_in<100>, 90, 90}};
  AttentionSizes n{.B = 2, .T = 300, .S = 200, .H = 2, .G = 1, .D = 64};
  check<bf16>(rungs, n, Layout::gaps);
  n.causal = true;
  check<bf16>(rungs, n, Layout::tight);
  n.D = 128, n.S = 400, n.start = 100;
  check<bf16>(rungs, n, Layout::gaps);
}

TEST_CASE("persistent: what threads have written is fenced before TMA stores it") {
  if (has_gpu()) return;  // only the stand-in keeps a record of who wrote what
  const Setting strict("T2T_PROXIES", "1");
  const std::vector<Rung<bf16>> rungs = {{"persistent", persistent_in<1>, 90, 90}};
  check<bf16>(rungs, {.B = 1, .T = 5, .S = 9, .H = 2, .G = 1, .D = 64}, Layout::tight);
}

TEST_CASE("rungs 6 to 10 name the GPU that they want") {
  if (has_gpu()) return;  // only the stand-in can be each of these GPUs
  AttentionProblem<bf16> problem({.B = 1, .T = 2, .S = 2, .H = 1, .G = 1, .D = 64}, Layout::tight,
                                 1);
  const AttentionCall<bf16> call = problem.call();
  {
    const Setting ampere("T2T_CARD", "sm_80");
    REFUSES_AS(attend_bulk_copies(call),
               "bulk_copies: wanted compute capability 9.0 or newer, got 8.0", std::runtime_error);
    REFUSES_AS(attend_overlapped(call), "overlapped: wanted compute capability 9.0, got 8.0",
               std::runtime_error);
  }
  {
    const Setting blackwell("T2T_CARD", "sm_120");
    REFUSES_AS(attend_persistent(call), "persistent: wanted compute capability 9.0, got 12.0",
               std::runtime_error);
  }
  REFUSES(attend_persistent(call, -1), "blocks: wanted at least 0, got -1");
}

TEST_CASE("swizzle, async: tiles of 16 keys, where two blocks with 48 have no room") {
  if (has_gpu()) return;  // only the stand-in can be each of these GPUs
  const Setting of_gpu("T2T_CARD", "sm_89");
  const std::vector<Rung<bf16>> rungs = {{"4", swizzle_in<1>}};
  for (const bool causal : {false, true})
    check<bf16>(rungs, {.B = 1, .T = 150, .S = 150, .H = 1, .G = 1, .D = 128, .causal = causal},
                Layout::gaps);
}

TEST_CASE("decode: how many blocks a multiprocessor runs, by its shared memory") {
  if (has_gpu()) return;  // only the stand-in can be each of these GPUs
  // 48 KiB a block at D = 64 and 96 at D = 128, and 1 KiB each for CUDA.
  const auto blocks = [](const char* card, int D) {
    const Setting of_gpu("T2T_CARD", card);
    return decode_blocks(D);
  };
  CHECK(blocks("sm_80", 64) == 3);
  CHECK(blocks("sm_80", 128) == 1);
  CHECK(blocks("sm_89", 64) == 2);
  CHECK(blocks("sm_89", 128) == 1);
  CHECK(blocks("sm_90", 64) == 4);
  CHECK(blocks("sm_90", 128) == 2);
}

TEST_CASE("what the bench checks: a right result passes, and each wrong row does not") {
  for (const bool heads_first : {false, true}) {
    CAPTURE(heads_first);
    Tensors<bf16> x{2, 40, 40, 4, 2, 64, true, heads_first};
    const AttentionCall<bf16> call = x.call();
    attend_swizzle_async(call);
    CHECK(worst_error(x) <= 1);
    std::vector<bf16> out = x.out.download();
    for (bf16& number : out) number = __float2bfloat16(__bfloat162float(number) + 0.1f);
    x.out.upload(out);
    CHECK(worst_error(x) > 1);
    for (bf16& number : out) number = __float2bfloat16(std::nanf(""));
    x.out.upload(out);
    CHECK(worst_error(x) == INFINITY);
  }
}

TEST_CASE("decode: any number of stretches, empty ones too, for groups of every size" *
          doctest::test_suite("slow")) {
  const std::vector<Rung<bf16>> rungs = {
      {"1", decode_in<1>}, {"2", decode_in<2>}, {"7", decode_in<7>}, {"40", decode_in<40>}};
  for (const int N : group_sizes) {
    CAPTURE(N);
    AttentionSizes n{.B = 2, .T = 1, .S = 300, .H = 2 * N, .G = 2, .D = 64};
    check<bf16>(rungs, n, Layout::gaps);
    // Three queries near the beginning of a cache: most stretches hold nothing that they see, and
    // with 7 heads the pairs fill more than one tile.
    n.T = 3, n.causal = true, n.start = 20;
    check<bf16>(rungs, n, Layout::gaps);
  }
}

TEST_CASE("decode: the same bits whichever block arrives last, and with a scratch used before") {
  if (has_gpu()) return;  // a GPU chooses its own order
  constexpr int P = 6;
  AttentionProblem<bf16> small({.B = 1, .T = 1, .S = 90, .H = 4, .G = 2, .D = 64}, Layout::tight,
                               1);
  AttentionProblem<bf16> large(
      {.B = 2, .T = 3, .S = 170, .H = 14, .G = 2, .D = 64, .causal = true, .start = 60},
      Layout::gaps, 2);
  DecodeScratch scratch(decode_scratch(large.call(), P));
  for (AttentionProblem<bf16>* problem : {&small, &large}) {
    const auto bytes_in = [&](const char* order) {
      const Setting of_blocks("T2T_ORDER", order);
      attend_decode(problem->call(), P, scratch);
      CHECK(problem->worst_error() <= 1);
      for (const unsigned arrived : scratch.arrived.download()) CHECK(arrived == 0);
      const std::vector<bf16> out = problem->written();
      return std::string(reinterpret_cast<const char*>(out.data()), out.size() * sizeof(bf16));
    };
    const std::string bytes = bytes_in("forward");
    for (const std::string& order : orders) CHECK(bytes_in(order.c_str()) == bytes);
  }
}

TEST_CASE("decode: the order in which stretches arrive changes no bit, where they nearly cancel") {
  if (has_gpu()) return;  // a GPU chooses its own order
  constexpr int P = 6, S = 16 * P, H = 3, D = 64;
  // All keys have the same weight. In each stretch, one value of 2^20 outweighs the others, with a
  // sign that changes from stretch to stretch.
  Tensor<2> values = numbers(1, 1, 0, std::size_t(S), std::size_t(D));
  for (std::size_t s = 0; s < S; s += 16)
    for (float& number : row(values, s)) number = s / 16 % 2 == 0 ? 0x1p20f : -0x1p20f;
  const DeviceBuffer<bf16> q = on_device(in_bf16(std::vector<float>(H * D)));
  const DeviceBuffer<bf16> k = on_device(in_bf16(std::vector<float>(S * D)));
  const DeviceBuffer<bf16> v = on_device(in_bf16(values));
  DeviceBuffer<bf16> out(H * D);
  const Strides queries = row_major(1, H, D), keys = row_major(S, 1, D);
  const AttentionCall<bf16> call{q.data(), k.data(), v.data(), out.data(), queries, keys,
                                 keys,     queries,  1,        1,          S,       H,
                                 1,        D,        false,    0};
  DecodeScratch scratch(decode_scratch(call, P));
  attend_decode(call, P, scratch);
  const std::vector<float> first = floats_of(out.download());
  for (const std::string& order : orders) {
    CAPTURE(order);
    const Setting of_blocks("T2T_ORDER", order.c_str());
    attend_decode(call, P, scratch);
    CHECK(floats_of(out.download()) == first);
  }
}

TEST_CASE("decode: stretches fill the card, and are never shorter than 256 keys") {
  CHECK(decode_splits(1, 1, 264) == 1);
  CHECK(decode_splits(1, 256, 264) == 1);
  CHECK(decode_splits(4, 1024, 264) == 4);       // too few keys to fill 264 places
  CHECK(decode_splits(8, 1 << 16, 264) == 29);   // 232 of 264 places, 88 %; 28 take 84.8 %
  CHECK(decode_splits(1, 1 << 20, 264) == 109);  // 85 % of what 128, the most, would use
  CHECK(decode_splits(264, 1 << 16, 264) == 1);  // full already
  CHECK(decode_splits(512, 1 << 16, 264) == 1);  // 97 % of two rounds
  CHECK(decode_splits(140, 1 << 16, 264) == 5);  // 700 of 3 rounds' 792; 1 would leave half idle
}

TEST_CASE("rows must begin at multiples of 16 bytes") {
  alignas(16) float rows[8] = {};
  const Strides strides = {64, 64, 64}, odd = {64, 66, 64};
  const char* words = "k: wanted rows that begin at multiples of 16 bytes, got ";
  AttentionCall<float> call{rows, rows + 1, rows, rows, strides, strides, strides, strides,
                            1,    1,        1,    1,    1,       64,      false,   0};
  REFUSES(expect_tiles(call), words + std::string("4"));
  call.k = rows, call.k_strides = odd;
  REFUSES(expect_tiles(call), words + std::string("264"));
  call.k = nullptr;
  REFUSES(expect_tiles(call), "k: wanted device memory, got 0");
}

TEST_CASE("a call that no rung takes is refused") {
  AttentionProblem<float> floats({.B = 1, .T = 2, .S = 2, .H = 1, .G = 1, .D = 64}, Layout::tight,
                                 1);
  AttentionProblem<bf16> bf16s({.B = 1, .T = 2, .S = 2, .H = 1, .G = 1, .D = 64}, Layout::tight, 1);
  AttentionCall<float> in_float = floats.call();
  AttentionCall<bf16> in_bf16 = bf16s.call();
  DecodeScratch scratch({64, 0});
  REFUSES(attend_decode(in_bf16, 0, scratch), "splits: wanted 1 to 65535, got 0");
  REFUSES(attend_decode(in_bf16, 2, scratch), "floats of scratch: wanted at least 260, got 64");
  DecodeScratch without_counter({260, 0});
  REFUSES(attend_decode(in_bf16, 2, without_counter),
          "counters of scratch: wanted at least 1, got 0");
  AttentionCall<bf16> long_call = in_bf16;
  REFUSES(attend_swizzle_async(in_bf16, -1), "section: wanted at least 0, got -1");
  long_call.T = 65535 * 16 + 1;
  REFUSES(attend_decode(long_call, 1, scratch), "T·H/G: wanted at most 1048560, got 1048561");
  in_float.D = in_bf16.D = 96;
  const char* words = "D: wanted 64 or 128, got 96";
  for (const auto& rung : float_rungs) REFUSES(rung.attend(in_float), words);
  for (const auto& rung : bf16_rungs) REFUSES(rung.attend(in_bf16), words);
  REFUSES(query_tiles(1 << 30, 65535, 128),
          "tiles of queries, times B·H: wanted below 2147483648, got 549747425280");
}

}  // namespace t2t::flash_attention_kernels_test
