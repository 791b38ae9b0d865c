#include "11_flash_attention/shows/figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "11_flash_attention/flash_attention.hpp"
#include "figure/figure.hpp"

namespace t2t {

static constexpr std::size_t T = 256;
static constexpr double left = 88, top = 52, pixel = 1.55;  // of a key, and of a query

/// How many blocks there are of each kind.
struct Blocks {
  std::size_t full = 0, partly = 0, skipped = 0;
};

/// The blocks of one block of queries, t to t + tokens - 1.
static void draw_row(Figure& figure, std::size_t t, std::size_t tokens, std::size_t keys,
                     Blocks& blocks) {
  const std::size_t by_all = keys_seen(t, T, T, Mask::causal).end;
  const std::size_t by_some = keys_seen(t, tokens, T, T, Mask::causal).end;
  const double y = top + pixel * double(t), height = pixel * double(tokens) - 2;
  figure.text({left - 8, y + height / 2 + 4.5}, fmt::format("{} to {}", t, t + tokens - 1),
              {Tone::quiet, Anchor::end, 12});
  for (std::size_t s = 0; s < T; s += keys) {
    const Box whole = {left + pixel * double(s), y, pixel * double(keys) - 2, height};
    if (s >= by_some) {
      ++blocks.skipped;
      figure.frame(whole, {.width = 0.5});
      continue;
    }
    const bool full = s + keys <= by_all;
    ++(full ? blocks.full : blocks.partly);
    Box computed = whole;  // the last block ends after the last key that one of its queries sees
    computed.width = pixel * double(std::min(keys, by_some - s)) - 2;
    figure.box(computed, full ? Tone::first : Tone::second, full ? 0.3 : 0.75);
    figure.text({whole.x + 3, y + height - 3}, fmt::format("{}", s / keys + 1),
                {.tone = full ? Tone::ink : Tone::paper, .size = 12});
  }
}

static void draw_legend(Figure& figure, double y, const Blocks& blocks) {
  const auto line = [&](double at, Tone tone, double strength, const std::string& words) {
    if (strength > 0) figure.box({left, at - 12, 16, 16}, tone, strength);
    figure.frame({left, at - 12, 16, 16}, {.width = 0.5});
    figure.text({left + 24, at}, words, {.size = 13});
  };
  line(y, Tone::first, 0.3, fmt::format("{} blocks: every query sees every key", blocks.full));
  line(y + 24, Tone::second, 0.75,
       fmt::format("{} blocks: computed up to the last key seen", blocks.partly));
  line(y + 48, Tone::quiet, 0, fmt::format("{} blocks: no key is seen, skipped", blocks.skipped));
}

std::string figure_of_blocks() {
  const FlashScratch scratch(9, 3, 64);
  const std::size_t tokens = scratch.tokens(), keys = scratch.blocks().keys;
  const double size = pixel * double(T);
  Figure figure(left + size + 24, top + size + 96, "Blocks of scores that flash attention computes",
                fmt::format("{0} causal queries and keys, in blocks of {1} queries and {2} keys. "
                            "Each row of blocks is computed from left to right. Blocks below the "
                            "diagonal are computed in full. The diagonal crosses the last computed "
                            "block of each row, which ends at the last key that one of its queries "
                            "sees. Blocks above the diagonal are skipped.",
                            T, tokens, keys));
  for (std::size_t s = 0; s < T; s += keys)
    figure.text({left + pixel * double(s), top - 8},
                fmt::format("{}{} to {}", s == 0 ? "keys " : "", s, s + keys - 1),
                {.tone = Tone::quiet, .size = 12});
  figure.text({left - 8, top - 8}, "queries", {Tone::quiet, Anchor::end, 12});
  figure.text({left, top - 30}, "numbers: the order in a row; the line: each query's own key",
              {.size = 12});
  Blocks blocks;
  for (std::size_t t = 0; t < T; t += tokens) draw_row(figure, t, tokens, keys, blocks);
  figure.line({{left, top}, {left + size, top + size}}, {Tone::ink, 1.5});
  draw_legend(figure, top + size + 28, blocks);
  return figure.svg();
}

}  // namespace t2t
