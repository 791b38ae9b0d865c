#include "05_kv_cache/shows/show_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "01_embedding/byte_text.hpp"
#include "05_kv_cache/babbler/babbler.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "program/print.hpp"

namespace t2t {

/// The first rows and columns of head 0: [rows, cols].
static Tensor<2> corner(const Tensor<3>& cache, std::size_t rows, std::size_t cols) {
  return xt::view(cache, 0, xt::range(0, rows), xt::range(0, cols));
}

void show_storage(const std::vector<int>& ids, const KvCache& cache) {
  print_section("What the cache holds");
  const std::size_t rows = std::min<std::size_t>({cache.length + 2, cache.keys.shape(1), 16});
  const std::size_t D = cache.keys.shape(2), cols = std::min<std::size_t>(D, 16);
  Tensor<2> both = xt::zeros<float>({rows, 2 * cols + 1});  // keys, a gap, values
  const std::size_t filled = std::min(rows, cache.length);
  const auto of_filled = [&](std::size_t from) {
    return xt::view(both, xt::range(0, filled), xt::range(from, from + cols));
  };
  of_filled(0) = corner(cache.keys, filled, cols);
  of_filled(cols + 1) = corner(cache.values, filled, cols);

  std::vector<std::string> labels;
  for (std::size_t s = 0; s < rows; ++s)
    labels.push_back(fmt::format("{} {:>2}", s < cache.length ? byte_text(ids[s]) : ".", s));
  fmt::print("  {:<{}}values\n", fmt::format("     keys of head 0, {} of {}", cols, D),
             2 * cols + 7);
  print_heat_map(both, {.row_labels = labels, .col_labels = {}, .diverging = true});
  fmt::print("\n");
  print_paragraph(
      "Each line is a position; the last lines are not filled yet. The same letter has the same "
      "values wherever it stands, since this layer's input is the letter's embedding alone. Its "
      "keys differ, because each was rotated by its own position.");
}

void show_session(Babbler& babbler, const std::vector<int>& ids, std::size_t S) {
  print_section("A session");
  KvCache cache = make_kv_cache(babbler.H, S, babbler.width() / babbler.H);
  Table table({"call", ">T", ">position", ">length after", fmt::format("of S = {}", S), "next"});
  const auto line = [&](const char* call, const std::string& T, const std::string& position,
                        int next) {
    table.add({call, T, position, fmt::format("{}", cache.length),
               bar(double(cache.length) / double(S), 24), next < 0 ? "" : quoted_byte(next)});
  };
  const auto through = [&](const char* call, std::span<const int> tokens) {
    const std::size_t position = cache.length;
    const int next = next_byte(logits_with(babbler, tokens, cache));
    line(call, fmt::format("{}", tokens.size()), fmt::format("{}", position), next);
    return next;
  };

  const std::span<const int> prompt(ids);
  const std::size_t half = prompt.size() / 2;
  int next = 0;
  if (half > 0) through("prefill, first half", prompt.first(half));
  next = through("prefill, the rest", prompt.subspan(half));
  for (const char* call : {"decode", "decode"}) next = through(call, {&next, 1});
  truncate(cache, half);
  line("truncate to the first half", "", "", -1);
  next = through("prefill, the rest again", prompt.subspan(half));
  reset(cache);
  line("reset", "", "", -1);
  through("prefill, in one call", prompt);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "One function makes all of these calls; only T differs. The next byte after the prompt is "
      "the same, however many calls the prompt came in. After truncate, only the second half went "
      "through the layer again.");
}

void show_refusals() {
  print_section("Refused");
  KvCache cache = make_kv_cache(2, 8, 4);
  const Tensor<2> six = xt::ones<float>({6, 8}), three = xt::ones<float>({3, 8});
  const Tensor<2> none = empty(0, 8);
  append(cache, six, six);
  const auto refused = [&](const Tensor<2>& x) {
    try {
      append(cache, x, x);
    } catch (const std::invalid_argument& error) {
      fmt::print("  {}\n", error.what());
    }
  };
  refused(three);
  refused(none);
  fmt::print("  length after both refusals: {}\n", cache.length);
}

}  // namespace t2t
