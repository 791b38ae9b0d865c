// The time that norms take, alone and compared with a block's matrix products. The program prints
// it; no model uses it.
#pragma once

#include <fmt/core.h>

#include "02_normalization/fast/layer_norm_rows.hpp"
#include "02_normalization/fast/rms_norm_rows.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "random.hpp"
#include "rows.hpp"
#include "timing/measure.hpp"

namespace t2t {

struct Settings {
  std::size_t T = 512, C = 576;
  float eps = 1e-5f;
};

inline Tensor<1> ones(std::size_t C) { return xt::ones<float>({C}); }
inline Tensor<1> zeros(std::size_t C) { return xt::zeros<float>({C}); }

inline void show_speed(const Settings& set) {
  constexpr std::size_t T = 4096, C = 2048;
  Random random(1);
  const Tensor<2> x = random.normal<2>({T, C});
  const Tensor<1> gain = ones(C), bias = zeros(C);
  Tensor<2> y = empty(T, C);
  const double bytes = 2.0 * double(x.size()) * sizeof(float);

  print_section("Speed");
  fmt::print("  x [{}, {}], larger than the caches, {} threads\n\n", T, C, thread_count());
  const auto line = [&](const char* name, const std::function<void()>& work) {
    print_roofline_bytes(name, median_seconds(work), bytes, copy_bandwidth(), "copying memory");
  };
  line("RMSNorm, formula", [&] { y = rms_norm(x, gain, set.eps); });
  line("RMSNorm, row kernel", [&] { rms_norm_rows(x, row(gain), set.eps, y); });
  line("LayerNorm, formula", [&] { y = layer_norm(x, gain, bias, set.eps); });
  line("LayerNorm, row kernel", [&] { layer_norm_rows(x, row(gain), row(bias), set.eps, y); });
}

/// The two norms of one block, compared with its matrix products.
inline void show_share_of_a_block(const Settings& set) {
  const std::size_t T = set.T, C = set.C, G_D = (C + 2) / 3, F = (8 * C + 2) / 3;
  Random random(1);
  const Tensor<2> x = random.normal<2>({T, C}), wide = random.normal<2>({T, F});
  const Tensor<2> w_c = random.normal<2>({C, C}), w_g = random.normal<2>({G_D, C});
  const Tensor<2> w_up = random.normal<2>({F, C}), w_down = random.normal<2>({C, F});
  const Tensor<1> gain = ones(C), bias = zeros(C);
  Tensor<2> y = empty(T, C), y_g = empty(T, G_D), y_f = empty(T, F), z = empty(T, C);

  const double products = median_seconds([&] {
    for (int i = 0; i < 2; ++i) matmul_bt(x, w_c, y);     // queries, output
    for (int i = 0; i < 2; ++i) matmul_bt(x, w_g, y_g);   // keys, values
    for (int i = 0; i < 2; ++i) matmul_bt(x, w_up, y_f);  // gate, up
    matmul_bt(wide, w_down, y);
  });
  const Pair rows = median_seconds_in_turn(
      [&] {
        for (int i = 0; i < 2; ++i) layer_norm_rows(x, row(gain), row(bias), set.eps, z);
      },
      [&] {
        for (int i = 0; i < 2; ++i) rms_norm_rows(x, row(gain), set.eps, z);
      });
  const Pair formula = median_seconds_in_turn(
      [&] {
        for (int i = 0; i < 2; ++i) z = layer_norm(x, gain, bias, set.eps);
      },
      [&] {
        for (int i = 0; i < 2; ++i) z = rms_norm(x, gain, set.eps);
      });

  print_section("Is RMSNorm faster for a model?");
  fmt::print("  One block, T={} C={} F={}: its seven matrix products take {}\n\n", T, C, F,
             duration_text(products));
  Table table({"both norms of the block", ">LayerNorm", ">RMSNorm", ">saved, of a block's time"});
  const auto line = [&](const char* name, const Pair& pair) {
    table.add(
        {name, duration_text(pair.first), duration_text(pair.second),
         fmt::format("{:.2f} %", 100 * (pair.first - pair.second) / (products + pair.first))});
  };
  line("row kernels", rows);
  line("formulas, with temporaries", formula);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "A slow norm leaves more to save. Two row kernels, both near the speed of memory, differ by "
      "a small part of a block's time.");
}

}  // namespace t2t
