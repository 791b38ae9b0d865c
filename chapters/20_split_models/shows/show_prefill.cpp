#include "20_split_models/shows/show_prefill.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/context_parallel/context_prefill.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static Config prefill_config(std::size_t T) {
  return {.block = llama_style(64, 4, 2, 176), .L = 2, .V = 256, .T_max = T, .tied = true};
}

/// The most memory that this process has had, in bytes. macOS counts bytes, others KiB.
static double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return double(usage.ru_maxrss);
#else
  return double(usage.ru_maxrss) * 1024;
#endif
}

struct ShownPrefill {
  Sent sent;
  std::size_t bytes;
  double grown;  // by how much the process's peak memory has grown
};
static ShownPrefill run_prefill(const Communicator& world, const Model& model,
                                const std::vector<int>& ids, Row logits) {
  const double before = peak_memory();
  const Sent already = sent();
  ContextPrefill prefill(world, model, ids.size());
  prefill.logits_of_last(ids, logits);
  return {sent() - already, prefill.bytes(), peak_memory() - before};
}

/// Chapter 09's logits with chapter 11's attention, on this rank alone.
static void run_alone(const Model& model, const std::vector<int>& ids, Row logits) {
  const BlockSettings& s = model.config().block;
  ModelState state(model.config(), ids.size(), {.kernel = flash_kernel(s.H, s.G, s.D, ids.size())});
  forward(model, state, ids, logits);
}

static void print_ranks(const Communicator& world, const Config& config, std::size_t T) {
  print_section(fmt::format("The prefill of {} tokens on {}", T, ranks_text(world.size)));
  Table table({">rank", ">tokens", ">bytes needed", ">bytes sent", ">messages"});
  for (std::size_t r = 0; r < world.size; ++r) {
    const std::size_t own = tokens_in(token_ranges(TokenOrder::zigzag, T, world.size, r));
    const Sent cost = context_prefill_cost(config, T, world.size, r);
    table.add({fmt::format("{}", r), with_commas(own),
               with_commas(context_prefill_bytes(config, T, world.size, r)),
               with_commas(cost.bytes), fmt::format("{}", cost.messages)});
  }
  table.print();
  fmt::print("\n");
}

Tensor<2> show_prefill(const Communicator& world, std::size_t T, std::uint64_t seed) {
  const Config config = prefill_config(T);
  Random random(seed);
  const Model model(config, draw_model(config, random));
  std::vector<int> ids;
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int(random.next_uniform() * float(config.V)));
  Tensor<2> logits = empty(2, config.V);
  const ShownPrefill shown = run_prefill(world, model, ids, row(logits, 0));
  const bool equal = shown.sent == context_prefill_cost(config, T, world.size, world.rank) &&
                     shown.bytes == context_prefill_bytes(config, T, world.size, world.rank);
  expect_on_all(world, equal, "prefill: what was counted or measured is not the formula's");
  const std::vector<double> grown = value_of_each(world, shown.grown);
  if (world.rank != 0) return logits;
  run_alone(model, ids, row(logits, 1));
  double difference = 0;
  for (std::size_t v = 0; v < config.V; ++v)
    difference = std::max(difference, std::abs(double(logits(0, v)) - double(logits(1, v))));
  print_ranks(world, config, T);
  print_paragraph(fmt::format(
      "By formula; on each rank the program has counted as many. {}",
      difference < 1e-4 ? "All logits of the last token are within 0.0001 of those of rank 0 alone."
                        : fmt::format("Some logit of the last token is {:.2g} from rank 0's alone.",
                                      difference)));
  print_section("How much the ranks' peak memory has grown");
  for (std::size_t r = 0; r < world.size; ++r)
    fmt::print("  rank {}: {:.1f} MB, by formula {:.1f} MB\n", r, grown[r] / 1e6,
               double(context_prefill_bytes(config, T, world.size, r)) / 1e6);
  return logits;
}

}  // namespace t2t
