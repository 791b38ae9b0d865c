#include "06_gqa/shows/costs.hpp"

#include <fmt/core.h>

#include <string>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "program/print.hpp"

namespace t2t {

void print_costs() {
  print_section("What is stored: C = 576, H = 9, D = 64, 30 layers, 8192 tokens");
  Table table({">G", ">parameters of q, k, v, o", ">cache, 16 bits", ""});
  for (const std::size_t G : {9, 3, 1}) {
    const double mebibytes = double(kv_cache_bytes(30, G, 8192, 64, 2)) / (1 << 20);
    table.add({std::to_string(G), with_commas(30 * grouped_parameters(576, 9, G, 64)),
               fmt::format("{:.0f} MiB", mebibytes), bar(double(G) / 9, 27)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The sizes are those of SmolLM2-135M, which has G = 3. The cache is proportional to G. The "
      "parameters fall less, since w_q and w_o stay the same.");
}

void print_operations() {
  print_section("What is computed: one token, one layer, the same sizes");
  const double C = 576, H = 9, D = 64, S = 8192;
  const double q_and_out = 2 * 2 * C * H * D, attention = 2 * 2 * H * S * D;
  Table table(
      {">G", ">q and out", ">k and v", ">scores, weighted sums", ">total", ">cache, 16 bits"});
  for (const std::size_t G : {9, 3, 1}) {
    const double k_and_v = 2 * 2 * C * double(G) * D;
    const auto millions = [](double flops) { return fmt::format("{:.2f} M", flops / 1e6); };
    table.add({std::to_string(G), millions(q_and_out), millions(k_and_v), millions(attention),
               millions(q_and_out + k_and_v + attention),
               fmt::format("{:.1f} MiB", double(kv_cache_bytes(1, G, 8192, 64, 2)) / (1 << 20))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Multiplications and additions, over 8192 cached tokens. Only the projections of k and v "
      "fall with G. All H query heads are still multiplied with all the keys, so the products of "
      "attention stay the same. What falls is the number of bytes read from the cache.");
}

void print_models() {
  print_section("Which models share keys and values");
  Table models({"model", ">L", ">H", ">G", ">D", ">cache per token, 16 bits", ">with G = H"});
  struct Model {
    const char* name;
    std::size_t L, H, G, D;
  };
  for (const auto& [name, L, H, G, D] : {Model{"LLaMA 1 and 2, 7B", 32, 32, 32, 128},
                                         {"Llama 2, 70B", 80, 64, 8, 128},
                                         {"Llama 3, 8B", 32, 32, 8, 128},
                                         {"Mistral 7B", 32, 32, 8, 128},
                                         {"SmolLM2-135M", 30, 9, 3, 64},
                                         {"Falcon-7B", 32, 71, 1, 64}}) {
    const auto kibibytes = [L = L, D = D](std::size_t heads) {
      return fmt::format("{:.1f} KiB", double(kv_cache_bytes(L, heads, 1, D, 2)) / 1024);
    };
    models.add({name, std::to_string(L), std::to_string(H), std::to_string(G), std::to_string(D),
                kibibytes(G), kibibytes(H)});
  }
  models.print();
}

}  // namespace t2t
