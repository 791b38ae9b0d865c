// What a Hopper GPU does beside the threads of a block: on the stand-in, and on such a GPU where
// there is one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "cuda/device.hpp"
#include "cuda/hopper_features.hpp"
#include "support/refuses.hpp"

using namespace t2t;

namespace {

/// Whether the device has tiles that the hardware copies, and products of warpgroups.
bool has_tiles() { return compute_capability() >= 90; }
bool has_warpgroups() { return compute_capability() == 90; }

/// `count` numbers −1, 0 and 1 in an order without a pattern.
std::vector<bf16> small_numbers(std::size_t count, unsigned seed) {
  std::vector<bf16> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    numbers.push_back(__float2bfloat16(static_cast<float>(seed >> 16 & 0xff) > 170  ? 1.0f
                                       : static_cast<float>(seed >> 16 & 0xff) > 85 ? 0.0f
                                                                                    : -1.0f));
  }
  return numbers;
}

std::vector<float> floats(const std::vector<bf16>& numbers) {
  std::vector<float> floats;
  for (const bf16 number : numbers) floats.push_back(__bfloat162float(number));
  return floats;
}

/// Calls check() in several orders of what a GPU may do in any order.
template <class Check>
void in_all_orders(Check check) {
  for (const char* order : {"forward", "reverse", "1", "2", "3", "4", "5", "6"}) {
    CAPTURE(order);
    setenv("T2T_ORDER", order, 1);
    check();
  }
  unsetenv("T2T_ORDER");
}

}  // namespace

TEST_CASE("a box is copied, with zeros outside of its tensor, and its chunks are swizzled") {
  if (!has_tiles()) return;
  struct Case {
    int D, token;
  };
  for (const Case c : {Case{64, 0}, Case{64, 32}, Case{128, 16}, Case{128, 40}}) {
    CAPTURE(c.D);
    CAPTURE(c.token);
    constexpr int B = 2, T = 45, heads = 3, box = 24;
    const HeadRows shape{
        nullptr, B,  T, heads, c.D, std::int64_t{T} * heads * c.D, std::int64_t{heads} * c.D,
        c.D,     box};
    const std::vector<bf16> x = small_numbers(static_cast<std::size_t>(B * T * heads * c.D), 7);
    in_all_orders([&] {
      const CopiedBox copied = copied_box(x, shape, c.token, 1, 1);
      const std::vector<float> tile = floats(copied.tile), tensor = floats(copied.tensor),
                               all = floats(x);
      int wrong = 0;
      for (int row = 0; row < box; ++row) {
        for (int channel = 0; channel < c.D; ++channel) {
          const int token = c.token + row;
          const int at = ((T + token) * heads + 1) * c.D + channel;
          const int chunk = channel % 64 / 8 ^ row % 8;
          const int place = (channel / 64 * box + row) * 64 + chunk * 8 + channel % 8;
          wrong += tile[place] != (token < T ? all[at] : 0);
          if (token < T) wrong += tensor[at] != all[at];
        }
      }
      CHECK(wrong == 0);
      float elsewhere = 0, stored = 0;
      for (int i = 0; i < B * T * heads * c.D; ++i) elsewhere += std::abs(tensor[i]);
      for (int row = 0; row < box && c.token + row < T; ++row)
        for (int channel = 0; channel < c.D; ++channel)
          stored += std::abs(all[((T + c.token + row) * heads + 1) * c.D + channel]);
      CHECK(elsewhere == stored);  // nothing else was written
    });
  }
}

TEST_CASE("a ring of tiles hands each of them from its producer to its readers") {
  if (!has_tiles()) return;
  for (const int T : {1, 16, 33, 160}) {
    CAPTURE(T);
    const std::vector<bf16> x = small_numbers(static_cast<std::size_t>(T * 64), 11);
    std::vector<float> wanted(64);
    for (int i = 0; i < T * 64; ++i) wanted[i % 64] += __bfloat162float(x[i]);
    in_all_orders([&] { CHECK(ring_sums(x, T) == wanted); });
  }
}

TEST_CASE("a warpgroup multiplies tiles, and what its registers hold by a tile") {
  if (!has_warpgroups()) return;
  for (const int D : {64, 128}) {
    for (const int keys : {64, 128}) {
      CAPTURE(D);
      CAPTURE(keys);
      const std::vector<bf16> q = small_numbers(static_cast<std::size_t>(64 * D), 3),
                              k = small_numbers(static_cast<std::size_t>(keys * D), 5);
      std::vector<float> scores(64 * keys), means(64 * D);
      for (int row = 0; row < 64; ++row) {
        for (int key = 0; key < keys; ++key) {
          float& score = scores[row * keys + key];
          for (int i = 0; i < D; ++i)
            score += __bfloat162float(q[row * D + i]) * __bfloat162float(k[key * D + i]);
          for (int i = 0; i < D; ++i)
            means[row * D + i] += score * __bfloat162float(k[key * D + i]);
        }
      }
      in_all_orders([&] {
        const Products got = products(q, k, D, keys);
        CHECK(got.scores == scores);  // integers below 256: no rounding anywhere
        CHECK(got.means == means);
      });
    }
  }
}

TEST_CASE("on the stand-in a tile and a product's sums are NaN until they are waited for") {
  if (device_name() != "CPU stand-in") return;
#ifdef __SANITIZE_THREAD__
  return;  // to read a tile too early is a race
#endif
  const std::vector<float> early = read_too_early();
  CHECK(std::isnan(early[0]));
  CHECK(std::isnan(early[1]));
  CHECK(early[2] == 16);
}

TEST_CASE("a warpgroup gives its registers to others, which wait for them") {
  if (!has_warpgroups()) return;
  in_all_orders([] { CHECK(shared_registers() == std::vector<int>(384, 1)); });
}

TEST_CASE("a warp arrives at a named barrier without waiting there") {
  in_all_orders([] {
    const std::vector<int> out = handed_over();
    for (int i = 0; i < 64; ++i) CHECK(out[i] == (i < 32 ? i : 2 * (i - 32)));
  });
}

TEST_CASE("a tensor that the hardware cannot copy is refused") {
  alignas(16) bf16 data[8];
  const HeadRows good{data, 1, 8, 2, 64, 1024, 128, 64, 8};
  const auto refuses = [&](auto change, const char* what) {
    HeadRows rows = good;
    change(rows);
    REFUSES(map_dimensions(rows), what);
  };
  refuses([](HeadRows& r) { r.D = 96; }, "tensor_map: D: wanted a multiple of 64, got 96");
  refuses([](HeadRows& r) { r.T = 0; }, "tensor_map: T: wanted at least 1, got 0");
  refuses([](HeadRows& r) { r.box_tokens = 257; },
          "tensor_map: box_tokens: wanted 1 to 256, got 257");
  refuses(
      [](HeadRows& r) { r.token_stride = 0; },
      "tensor_map: token_stride: wanted a multiple of 8 elements, above 0 and below 2^39, got 0");
  refuses(
      [](HeadRows& r) { r.head_stride = 68; },
      "tensor_map: head_stride: wanted a multiple of 8 elements, above 0 and below 2^39, got 68");
  refuses([](HeadRows& r) { ++r.data; },
          "tensor_map: address of the data, modulo 16: wanted 0, got 2");
  CHECK(map_dimensions(good).stride[4] == 16);  // of a single sequence, never used
}
