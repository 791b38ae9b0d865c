#include "25_sinks/shows/show_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "25_sinks/layers/layer_caches.hpp"
#include "25_sinks/mxfp4/mxfp4.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

namespace {
/// As transformers' configurations and llama.cpp's programs have them.
struct Published {
  const char* name;
  std::size_t L, G, D, period, window, readers;
};
}  // namespace

void show_layer_caches() {
  print_section("Caches of models whose layers differ: 2 bytes per element");
  static constexpr Published models[] = {{"SmolLM3 3B, 9 layers without RoPE", 36, 4, 128, 1, 0, 0},
                                         {"gpt-oss-20b", 24, 8, 64, 2, 128, 0},
                                         {"Gemma 3n E4B", 35, 2, 256, 5, 512, 15},
                                         {"Gemma 3n E4B without sharing", 35, 2, 256, 5, 512, 0}};
  constexpr std::size_t S = 32768;
  Table table({"model", ">layers", ">with a cache", ">of these, windows", ">at 32,768 tokens",
               ">if all kept all"});
  for (const Published& model : models) {
    const std::vector<BlockSettings> layers =
        alternating_layers(model.L, model.G, model.D, model.period, model.window);
    const std::vector<std::size_t> owners = last_of_kind(layers, model.readers);
    std::size_t windows = 0;
    for (std::size_t l = 0; l < model.L; ++l) windows += owners[l] == l && layers[l].window > 0;
    const double all = 2.0 * 2 * double(model.L * model.G * model.D * S);
    table.add({model.name, fmt::format("{}", model.L), fmt::format("{}", model.L - model.readers),
               fmt::format("{}", windows), bytes_text(layer_cache_bytes(layers, owners, S, 2)),
               bytes_text(all)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "A layer with a window keeps the keys of its window alone, and a reader keeps none. A layer "
      "without RoPE keeps as much as any other.");
}

void show_gpt_oss_weights() {
  print_section("What gpt-oss-20b weighs");
  constexpr double C = 2880, H = 64, G = 8, D = 64, F = 2880, E = 32, k = 4, L = 24, V = 201088;
  Table table({"part", ">parameters", ">of these per token", ">bytes", ">as BF16"});
  double all = 0, used = 0, stored = 0;
  const auto add = [&](const char* part, double count, double share, double bits) {
    all += count, used += count * share, stored += count * bits / 8;
    table.add({part, with_commas(std::size_t(count)), with_commas(std::size_t(count * share)),
               bytes_text(count * bits / 8), bytes_text(2 * count)});
  };
  constexpr double mxfp4_bits = 8.0 * double(mxfp4_bytes) / double(mxfp4_numbers);
  add("embedding", V * C, 0, 16);
  add("attention", L * (C * D * (2 * H + 2 * G) + D * (H + 2 * G) + C + H), 1, 16);
  add("norms and routers", L * (2 * C + E * (C + 1)) + C, 1, 32);
  add("experts' matrices", L * E * 3 * C * F, k / E, mxfp4_bits);
  add("experts' biases", L * E * (2 * F + C), k / E, 32);
  add("head", V * C, 1, 16);
  table.add({"together", with_commas(std::size_t(all)), with_commas(std::size_t(used)),
             bytes_text(stored), bytes_text(2 * all)});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "By formula, from its published sizes. A token reads one row of the embedding, which is not "
      "counted, and 4 of the 32 experts of each layer.");
}

}  // namespace t2t
