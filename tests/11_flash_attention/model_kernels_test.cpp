// What must be true of the kernels around attention in a whole model; run on the stand-in, and on a
// GPU where one is.
#include "11_flash_attention/kernels/model/model_kernels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "11_flash_attention/kernels/kernels.hpp"
#include "cuda/graph.hpp"
#include "support/hashed_numbers.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::model_kernels_test {

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float eps = 1e-5f;
#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few tiles show what many do
static const std::vector<int> rows = {1, 4, 5, 40}, inputs = {72}, outputs = {65};
#else
static const std::vector<int> rows = {1, 4, 5, 33, 130}, inputs = {8, 72, 264},
                              outputs = {1, 65, 130};
#endif

static Numbers some(std::uint32_t seed, int count, float scale = 4, float middle = 0) {
  const Tensor<1> x = numbers(seed, scale, middle, std::size_t(count));
  return {x.begin(), x.end()};
}
/// Numbers that a bf16 holds.
static Numbers some_rounded(std::uint32_t seed, int count, float scale = 4) {
  return floats_of(in_bf16(some(seed, count, scale)));
}

/// A stream of more rows than are read, its gain, and scratch for the norms.
struct Stream {
  int T, C;
  Numbers x = some(1, 2 * T * C, 4, 1), gain = some(2, C, 1, 1);
  DeviceBuffer<float> on_x = on_device(x), on_gain = on_device(gain);
  DeviceBuffer<bf16> scratch{std::size_t(T * C)};

  NormedRows rows(const int* which = nullptr) {
    return {on_x.data(), which, on_gain.data(), eps, scratch.data()};
  }
  /// The norms as the kernel rounds them.
  Numbers normed() {
    launch_rms_norm(rows(), T, C);
    return floats_of(scratch.download());
  }
};

TEST_CASE("the embedding: each token's row, as it is in the table") {
  for (const int C : {8, 72, 200}) {
    CAPTURE(C);
    const int V = 7;
    const Numbers table = some_rounded(3, V * C);
    const std::vector<int> ids = {6, 0, 3, 3};
    const DeviceBuffer<bf16> on_table = on_device(in_bf16(table));
    const DeviceBuffer<int> on_ids = on_device(ids);
    DeviceBuffer<float> x(ids.size() * std::size_t(C));
    launch_embed(on_table.data(), on_ids.data(), int(ids.size()), C, x.data());
    Numbers want;
    for (const int id : ids)
      want.insert(want.end(), table.begin() + id * C, table.begin() + (id + 1) * C);
    CHECK(x.download() == want);
  }
}

TEST_CASE("RMSNorm to bf16: float64 agrees, for the rows that are named") {
  for (const int C : {8, 72, 576, 1032}) {
    CAPTURE(C);
    Stream s{.T = 5, .C = C};
    const std::vector<int> which = {9, 0, 4, 4, 7};
    const DeviceBuffer<int> on_which = on_device(which);
    launch_rms_norm(s.rows(on_which.data()), s.T, C);
    Doubles want, bound;
    for (const int t : which) {
      double squares = 0;
      for (int c = 0; c < C; ++c) squares += double(s.x[t * C + c]) * s.x[t * C + c] / C;
      for (int c = 0; c < C; ++c) {
        want.push_back(s.gain[c] * s.x[t * C + c] / std::sqrt(squares + eps));
        // A lane's sum of C / 32 squares, the warp's 5 additions, and the other operations.
        bound.push_back((u_bf16 + (C / 32 + 24) * u_float) * std::abs(want.back()));
      }
    }
    CHECK(worst(floats_of(s.scratch.download()), want, bound) <= 1);
  }
}

/// Sums of products in float64, and what a sum of their sizes may be off by: a float addition by u
/// of what it adds to, one of the tensor cores, which cut digits off, by 2u.
struct Sums {
  Doubles sum, bound;
};
static Sums sums_of(const Numbers& x, const Numbers& w, int T, int in, int out) {
  const ExactProduct exact = exact_product(x, w, T, in, out);
  Sums sums{exact.sums, {}};
  for (const double size : exact.sizes) sums.bound.push_back(2 * in * u_float * size);
  return sums;
}

/// The first `count` numbers of y; the others must be NaN still.
static Numbers written(const DeviceBuffer<float>& y, int count) {
  const Numbers all = y.download();
  CHECK(std::all_of(all.begin() + count, all.end(), [](float x) { return std::isnan(x); }));
  return {all.begin(), all.begin() + count};
}
static Numbers written(const DeviceBuffer<bf16>& y, int count) {
  const Numbers all = floats_of(y.download());
  CHECK(std::all_of(all.begin() + count, all.end(), [](float x) { return std::isnan(x); }));
  return {all.begin(), all.begin() + count};
}

template <class Check>
static void for_all_sizes(Check check) {
  for (const int T : rows)
    for (const int in : inputs)
      for (const int out : outputs) {
        CAPTURE(T);
        CAPTURE(in);
        CAPTURE(out);
        check(T, in, out);
      }
}

TEST_CASE("products of few rows and of many: float64 agrees at every size") {
  for_all_sizes([](int T, int in, int out) {
    Stream s{.T = T, .C = in};
    const Numbers w = some_rounded(4, out * in, 1);
    const DeviceBuffer<bf16> on_w = on_device(in_bf16(w));
    DeviceBuffer<float> y(std::size_t(T * out + 200));
    launch_store_product(s.rows(), on_w.data(), T, in, out, y.data());
    const Numbers got = written(y, T * out);
    const Sums want = sums_of(s.normed(), w, T, in, out);
    CHECK(worst(got, want.sum, want.bound) <= 1);
  });
}

TEST_CASE("a product that is added: float64 agrees, and what was there before is kept") {
  for_all_sizes([](int T, int in, int out) {
    const Numbers x = some_rounded(5, T * in), w = some_rounded(6, out * in, 1);
    const DeviceBuffer<bf16> on_x = on_device(in_bf16(x)), on_w = on_device(in_bf16(w));
    Numbers before = some(7, T * out, 40);
    before.resize(before.size() + 200, std::nanf(""));
    DeviceBuffer<float> y = on_device(before);
    launch_add_product(on_x.data(), on_w.data(), T, in, out, y.data());
    Sums want = sums_of(x, w, T, in, out);
    for (std::size_t i = 0; i < want.sum.size(); ++i) {
      want.sum[i] += before[i];
      want.bound[i] += u_float * std::abs(want.sum[i]);
    }
    CHECK(worst(written(y, T * out), want.sum, want.bound) <= 1);
  });
}

TEST_CASE("gate, up and SwiGLU in one product: float64 agrees") {
  for_all_sizes([](int T, int in, int out) {
    Stream s{.T = T, .C = in};
    const Numbers w_gate = some_rounded(8, out * in, 1), w_up = some_rounded(9, out * in, 1);
    const DeviceBuffer<bf16> on_gate = on_device(in_bf16(w_gate)), on_up = on_device(in_bf16(w_up));
    DeviceBuffer<bf16> y(std::size_t(T * out + 200));
    launch_swiglu_product(s.rows(), on_gate.data(), on_up.data(), T, in, out, y.data());
    const Numbers got = written(y, T * out), x = s.normed();
    const Sums gate = sums_of(x, w_gate, T, in, out), up = sums_of(x, w_up, T, in, out);
    Doubles want, bound;
    for (std::size_t i = 0; i < gate.sum.size(); ++i) {
      const double silu = gate.sum[i] / (1 + std::exp(-gate.sum[i]));
      want.push_back(silu * up.sum[i]);
      // silu's slope is at most 1.1; exp, the division and the products are 8 roundings at most.
      const double of_sums =
          1.1 * gate.bound[i] * std::abs(up.sum[i]) + std::abs(silu) * up.bound[i];
      bound.push_back(1.01 * (of_sums + (u_bf16 + 8 * u_float) * std::abs(want.back())));
    }
    CHECK(worst(got, want, bound) <= 1);
  });
}

TEST_CASE("a row's product has the same bits alone as among few rows, and as among many") {
  const int in = 72, out = 65;
  const Numbers w = some_rounded(4, out * in, 1);
  const DeviceBuffer<bf16> on_w = on_device(in_bf16(w));
  const auto last_of = [&](int T, int row) {
    Stream s{.T = T, .C = in, .x = some(1, 300 * in)};
    std::vector<int> which(std::size_t(T), 0);
    which.back() = row;
    const DeviceBuffer<int> on_which = on_device(which);
    DeviceBuffer<float> y(std::size_t(T * out));
    launch_store_product(s.rows(on_which.data()), on_w.data(), T, in, out, y.data());
    const Numbers all = y.download();
    return Numbers(all.end() - out, all.end());
  };
  CHECK(last_of(1, 200) == last_of(4, 200));
  CHECK(last_of(5, 200) == last_of(33, 200));
  CHECK(last_of(5, 200) != last_of(5, 201));
}

TEST_CASE("RoPE and append: each token at its own position of its own sequence, and only there") {
  for (const int D : {64, 128})
    for (const RopePairs pairs : {RopePairs::neighbours, RopePairs::halves}) {
      CAPTURE(D);
      const int H = 4, G = 2, S = 9, T = 3, sequences = 2, heads = H + 2 * G, half = D / 2;
      const std::vector<int> positions = {7, 0, 3}, of = {1, 0, 1};
      const Numbers qkv = some(10, T * heads * D), angles = some(11, S * half, 6);
      Numbers cos, sin;
      for (const float a : angles) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
      const DeviceBuffer<float> on_qkv = on_device(qkv), on_cos = on_device(cos),
                                on_sin = on_device(sin);
      const DeviceBuffer<int> on_positions = on_device(positions), on_of = on_device(of);
      DeviceBuffer<bf16> q(std::size_t(T * H * D)), keys(std::size_t(sequences * G * S * D));
      DeviceBuffer<bf16> values(keys.size());
      launch_rope_and_append(on_qkv.data(), {on_positions.data(), on_of.data()}, on_cos.data(),
                             on_sin.data(), pairs, T, H, G, D, q.data(),
                             {keys.data(), values.data(), S});

      // What is wanted of one head, and where it is: the last argument begins the place.
      double most = 0;
      const auto check = [&](int t, int head, const Numbers& got, std::size_t at) {
        const float* x = &qkv[std::size_t((t * heads + head) * D)];
        for (int i = 0; i < half; ++i) {
          const bool near = pairs == RopePairs::neighbours;
          const int first = near ? 2 * i : i, second = near ? 2 * i + 1 : i + half;
          const bool turns = head < H + G;
          const double c = turns ? cos[positions[t] * half + i] : 1;
          const double s = turns ? sin[positions[t] * half + i] : 0;
          const double size = std::abs(x[first]) + std::abs(x[second]);
          const Doubles want = {x[first] * c - x[second] * s, x[first] * s + x[second] * c};
          const Doubles bound = {u_bf16 * std::abs(want[0]) + 4 * u_float * size,
                                 u_bf16 * std::abs(want[1]) + 4 * u_float * size};
          most = std::max(most, worst({got[at + first], got[at + second]}, want, bound));
        }
      };
      const Numbers got_q = floats_of(q.download()), got_k = floats_of(keys.download());
      const Numbers got_v = floats_of(values.download());
      for (int t = 0; t < T; ++t) {
        for (int h = 0; h < H; ++h) check(t, h, got_q, std::size_t((t * H + h) * D));
        for (int g = 0; g < G; ++g) {
          const auto at = std::size_t(((of[t] * G + g) * S + positions[t]) * D);
          check(t, H + g, got_k, at);
          check(t, H + G + g, got_v, at);
        }
      }
      CHECK(most <= 1);
      for (const Numbers& cache : {got_k, got_v})
        CHECK(std::count_if(cache.begin(), cache.end(), [](float x) { return !std::isnan(x); }) ==
              T * G * D);
    }
}

TEST_CASE("decode with a start on the device: the bits of the call that knows it") {
  const int H = 3, G = 1, D = 64, room = 300, P = 3;
  const DeviceBuffer<bf16> q = on_device(in_bf16(some(12, 2 * H * D, 1)));
  const DeviceBuffer<bf16> k = on_device(in_bf16(some(13, room * D)));
  const DeviceBuffer<bf16> v = on_device(in_bf16(some(14, room * D)));
  DeviceBuffer<bf16> out(q.size());
  const Strides of_rows = row_major(2, H, D), of_cache = {long(room) * D, D, long(room) * D};
  AttentionCall<bf16> call = {q.data(), k.data(), v.data(), out.data(), of_rows, of_cache,
                              of_cache, of_rows,  1,        2,          room,    H,
                              G,        D,        true,     0};
  DecodeScratch scratch(decode_scratch(call, P));
  for (const int start : {0, 15, 100, 298}) {
    CAPTURE(start);
    const DeviceBuffer<int> on_start = on_device(std::vector<int>{start});
    call.start = 0, call.S = room;
    attend_decode(call, P, scratch, on_start.data());
    const Numbers got = floats_of(out.download());
    call.start = start, call.S = start + 2;
    attend_decode(call, P, scratch);
    CHECK(got == floats_of(out.download()));
  }
}

TEST_CASE("a graph runs its launches when it is launched, with what the memory holds then") {
  const int C = 8;
  const Numbers table = some_rounded(3, 4 * C);
  const DeviceBuffer<bf16> on_table = on_device(in_bf16(table));
  DeviceBuffer<int> id = on_device(std::vector<int>{1});
  DeviceBuffer<float> x(C);
  const auto row_of_table = [&](int t) {
    return Numbers(table.begin() + t * C, table.begin() + (t + 1) * C);
  };
  const auto embed = [&] { launch_embed(on_table.data(), id.data(), 1, C, x.data()); };
  embed();  // on a GPU, a kernel is loaded when it is first launched
  x.upload(Numbers(C, std::nanf("")));
  const Graph graph(embed);
  CHECK(std::isnan(x.download()[0]));  // nothing has run
  for (const int wanted : {2, 0}) {
    id.upload(std::vector<int>{wanted});
    graph.launch();
    CHECK(x.download() == row_of_table(wanted));
  }
  // After work that throws, launches run at once again.
  CHECK_THROWS_AS(Graph([&] { throw std::runtime_error("lost"); }), std::runtime_error);
  id.upload(std::vector<int>{3});
  embed();
  CHECK(x.download() == row_of_table(3));
}

TEST_CASE("the model's kernels refuse sizes and pointers that they cannot take") {
  alignas(16) float memory[16] = {};
  float* x = memory;
  bf16* w = reinterpret_cast<bf16*>(memory);
  const NormedRows rows = {x, nullptr, x, eps, w};
  REFUSES(launch_embed(w, nullptr, 1, 8, x), "ids: wanted device memory, got 0");
  REFUSES(launch_rms_norm(rows, 0, 8), "T: wanted at least 1, got 0");
  REFUSES(launch_rms_norm({x, nullptr, x, -1, w}, 1, 8), "eps: wanted 0 or more, got -1");
  REFUSES(launch_store_product(rows, w, 0, 8, 1, x), "T: wanted 1 to 65535, got 0");
  REFUSES(launch_store_product(rows, w, 1, 12, 1, x), "in: wanted a multiple of 8, got 12");
  REFUSES(launch_store_product(rows, w, 1, 8, 4194241, x), "out: wanted 1 to 4194240, got 4194241");
  REFUSES(launch_store_product(rows, w + 1, 1, 8, 1, x),
          "w: wanted rows that begin at multiples of 16 bytes, got 2");
  REFUSES(launch_add_product(nullptr, w, 1, 8, 1, x), "x: wanted device memory, got 0");
  REFUSES(launch_swiglu_product(rows, w, nullptr, 1, 8, 1, w), "w_up: wanted device memory, got 0");
  REFUSES(launch_rope_and_append(x, {nullptr, nullptr}, x, x, RopePairs::halves, 1, 1, 1, 64, w,
                                 {w, w, 1}),
          "positions: wanted device memory, got 0");
  REFUSES(launch_rope_and_append(x, {nullptr, nullptr}, x, x, RopePairs::halves, 1, 1, 1, 32, w,
                                 {w, w, 1}),
          "D: wanted 64 or 128, got 32");
}

}  // namespace t2t::model_kernels_test
