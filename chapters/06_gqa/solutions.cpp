// The solutions to the problems on paper of docs/06_gqa.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution cache_of_qwen() {
  const std::size_t L = 28, H = 28, G = 4, D = 128, S = 32768;
  return {"cache of Qwen2.5 7B",
          fmt::format("2 · {} · {} · {} · 2 = {} bytes per token, {} in all. With G = {} it would "
                      "be {}.",
                      L, G, D, with_commas(kv_cache_bytes(L, G, 1, D, 2)),
                      bytes_text(double(kv_cache_bytes(L, G, S, D, 2))), H,
                      bytes_text(double(kv_cache_bytes(L, H, S, D, 2))))};
}

static Solution group_of_a_head() {
  const std::size_t h = 20, H = 28, G = 4;
  return {"group of a head",
          fmt::format("{} heads share a group, and {} / {}, rounded down, is {}. (If the heads "
                      "were given to the groups in turn, as {} mod {}, it would be {}.)",
                      H / G, h, H / G, group_of(h, H, G), h, G, h % G)};
}

/// Llama 3 8B.
constexpr std::size_t C = 4096, H = 32, G = 8, D = 128;

static Solution parameters_of_attention() {
  const std::size_t grouped = grouped_parameters(C, H, G, D), all = grouped_parameters(C, H, H, D);
  return {"parameters of attention",
          fmt::format("2·C·D·(H + G) = {}; with G = H it would be {}. {:.1f} % are saved, since "
                      "only two of the four matrices become smaller.",
                      with_commas(grouped), with_commas(all),
                      100 * (1 - double(grouped) / double(all)))};
}

static Solution flops_for_a_byte() {
  const auto ratio = [](std::size_t groups) {
    return 4 * double(H * D) / double(kv_cache_bytes(1, groups, 1, D, 2));
  };
  return {"FLOPs for a byte",
          fmt::format("For each position, 4·H·D FLOPs meet 2·G·D·2 bytes: H / G = {:g}. With G = H "
                      "it is {:g}. The FLOPs are the same; the bytes are fewer.",
                      ratio(G), ratio(H))};
}

std::vector<Solution> solutions() {
  return {cache_of_qwen(), group_of_a_head(), parameters_of_attention(), flops_for_a_byte()};
}

}  // namespace t2t
