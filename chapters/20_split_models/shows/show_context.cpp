#include "20_split_models/shows/show_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/context_parallel/ring_attention.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static constexpr DividedSequence shown = {256, TokenOrder::zigzag, 9, 3};
static constexpr std::size_t D = 16;

static Tensor<2> rows_of(const Tensor<2>& x, const std::vector<std::size_t>& positions) {
  Tensor<2> own = empty(positions.size(), x.shape(1));
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::ranges::copy(row(x, positions[i]), row(own, i).begin());
  return own;
}

static std::string ranges_text(const std::vector<Range>& ranges) {
  std::string text;
  for (const Range& range : ranges)
    if (range.size() > 0)
      text += fmt::format("{}{}–{}", text.empty() ? "" : ", ", range.begin, range.end - 1);
  return text;
}

static std::string work_text(const std::vector<Range>& ranges, std::size_t size) {
  const double all = double(shown.T) * double(shown.T + 1) / 2;
  return fmt::format("{:.2f}", double(pairs_of(ranges)) * double(size) / all);
}

static void print_tokens(std::size_t size) {
  print_section(fmt::format("{} tokens on {}", shown.T, ranks_text(size)));
  Table table({"rank", "neighbours", ">work", "zigzag", ">work", ">bytes sent"});
  for (std::size_t r = 0; r < size; ++r) {
    const auto near = token_ranges(TokenOrder::neighbours, shown.T, size, r);
    const auto zigzag = token_ranges(TokenOrder::zigzag, shown.T, size, r);
    table.add({fmt::format("{}", r), ranges_text(near), work_text(near, size), ranges_text(zigzag),
               work_text(zigzag, size), with_commas(ring_attention_cost(shown, D, size, r).bytes)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Work: pairs of a query and a key that it sees, as a multiple of the mean. All ranks wait "
      "for the one that has most.");
}

Tensor<2> show_context(const Communicator& world, std::uint64_t seed) {
  Random random(seed);
  const Tensor<2> q = random.normal<2>({shown.T, shown.H * D});
  const Tensor<2> k = random.normal<2>({shown.T, shown.G * D});
  const Tensor<2> v = random.normal<2>({shown.T, shown.G * D});
  const auto own = positions_in(token_ranges(shown.order, shown.T, world.size, world.rank));
  const Sent before = sent();
  const Tensor<2> out =
      ring_attention(world, shown, rows_of(q, own), rows_of(k, own), rows_of(v, own));
  const Sent counted = sent() - before;
  expect_on_all(world, counted == ring_attention_cost(shown, D, world.size, world.rank),
                "ring attention: the messages counted are not the formula's");

  const Tensor<2> want =
      rows_of(grouped_query_attention(q, k, v, shown.H, shown.G, Mask::causal), own);
  double difference = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    difference = std::max(difference, std::abs(double(out.data()[i]) - want.data()[i]));
  difference = largest_value(world, difference);
  if (world.rank != 0) return out;
  print_tokens(world.size);
  print_paragraph(fmt::format(
      "The bytes are the formula's, and the program has counted as many on each rank. No element "
      "of the result is further than {:.1g} from chapter 06's attention over the whole sequence.",
      difference));
  return out;
}

}  // namespace t2t
