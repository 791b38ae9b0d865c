// The solutions to the problems on paper of docs/01_embedding.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "01_embedding/embedding.hpp"
#include "01_embedding/neighbours.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution ids_of_a_price() {
  const std::vector<int> sign = byte_ids("€"), price = byte_ids("5 €");
  return {"ids of a price", fmt::format("With their marks, the bits of € are {:08b}, or {}. The "
                                        "text has 3 characters and {} ids: {}.",
                                        fmt::join(sign, " "), fmt::join(sign, ", "), price.size(),
                                        fmt::join(price, ", "))};
}

/// Llama 3.2 1B.
constexpr std::size_t V = 128256, C = 2048;

static Solution tied_table() {
  const std::size_t all = 1235814400, table = V * C;
  return {"tied table",
          fmt::format(
              "{} · {} = {} parameters, {:.1f} % of all. A separate head has as many, for {} in "
              "all.",
              with_commas(V), C, with_commas(table), 100 * double(table) / double(all),
              with_commas(all + table))};
}

static Solution cost_of_a_look_up() {
  return {"cost of a look-up",
          fmt::format("V·C = {} multiplications, all but {} of them with 0. The look-up makes none "
                      "and reads 2 · {} = {} bytes, whatever V is.",
                      with_commas(V * C), C, C, 2 * C)};
}

static Solution longer_row() {
  const Tensor<2> table = {{1, 0}, {4, 3}, {-2, 5}};  // [V, C]
  const std::vector<int> ids = {0};
  const Tensor<2> logits = unembed(embed(ids, table), table);  // [1, V]
  const std::size_t best =
      std::size_t(std::ranges::max_element(row(logits, 0)) - row(logits, 0).begin());
  return {
      "longer row",
      fmt::format("The logits are {}. Token {} has the largest, although the cosine with its "
                  "row is only {:.1f}: that row is {:.0f} times as long.",
                  fmt::join(row(logits, 0), ", "), best, cosine(row(table, 0), row(table, best)),
                  std::hypot(table(best, 0), table(best, 1)))};
}

std::vector<Solution> solutions() {
  return {ids_of_a_price(), tied_table(), cost_of_a_look_up(), longer_row()};
}

}  // namespace t2t
