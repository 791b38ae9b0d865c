#include "11_flash_attention/shows/show_ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "program/print.hpp"

namespace t2t {

/// A pair of a query and a key needs 4·D FLOPs, and 2·D elements: the key and its value.
struct Rung {
  const char* name;
  double queries;       // that use a key and value fetched once
  double number_bytes;  // 4 in float32, 2 in bf16
  double score_trips;   // how often a score is written to memory or read from it

  double flops(double D) const { return 4 * D; }
  double bytes(double D) const { return (2 * D / queries + score_trips) * number_bytes; }
  double intensity(double D) const { return flops(D) / bytes(D); }
};

void show_ladder() {
  const double T = 4096, D = 128;
  print_section("What the rungs request: one head, 4096 queries and keys, D = 128");
  // Rung 0 writes a score, reads it for the highest, reads and writes it twice more, as an
  // exponential and as a weight, and reads the weight once for each 32 channels: 6 + D/32 trips.
  // Tiled products with the scores in memory write a score, read it, write the weight and read
  // that: 4 trips. An H100's tensor cores do 989 TFLOP/s in bf16, its other units 67 in float32,
  // and its memory moves 3.35 TB/s (NVIDIA's data sheet of the SXM card).
  const double memory = 3.35e12;
  Table table({"kernel", ">queries per key", ">requested", ">FLOP/byte", ">ridge", ""});
  for (const auto& [rung, peak] : {std::pair{Rung{"rung 0, float32", 1, 4, 6 + D / 32}, 67e12},
                                   {Rung{"rung 1, float32", 1, 4, 0}, 67e12},
                                   {Rung{"rung 2, float32", 64, 4, 0}, 67e12},
                                   {Rung{"tiled, scores stored, bf16", 128, 2, 4}, 989e12},
                                   {Rung{"rung 3, bf16", 64, 2, 0}, 989e12},
                                   {Rung{"rung 4, bf16", 128, 2, 0}, 989e12}}) {
    const double intensity = rung.intensity(D), ridge = peak / memory;
    table.add({rung.name, fmt::format("{:.0f}", rung.queries),
               fmt::format("{:.1f} MB", T * T * rung.bytes(D) / 1e6),
               fmt::format("{:.2f}", intensity), fmt::format("{:.0f}", ridge),
               bar(std::min(1.0, intensity / ridge), 16)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("Without a mask, each does the same {:.1f} GFLOP. The table counts the bytes of "
                  "keys, values and scores that the kernels request, whether they come from a "
                  "cache or from memory. The ridge point is the GPU's peak divided by its memory's "
                  "bytes per second; the bar is FLOP/byte as a share of it. Reading q, k and v and "
                  "writing out moves {:.1f} MB in float32 and {:.1f} MB in bf16.",
                  4 * T * T * D / 1e9, 4 * T * D * 4 / 1e6, 4 * T * D * 2 / 1e6));
}

}  // namespace t2t
