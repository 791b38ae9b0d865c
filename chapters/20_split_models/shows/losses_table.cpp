#include "20_split_models/shows/losses_table.hpp"

#include <fmt/format.h>

#include "19_ranks/shows/ranks_text.hpp"
#include "program/print.hpp"

namespace t2t {

Tensor<2> print_losses(std::size_t ranks, const std::vector<double>& alone,
                       const std::vector<double>& divided) {
  Table table(
      {">step", ">loss on 1 rank", fmt::format(">on {}", ranks_text(ranks)), ">difference"});
  Tensor<2> losses = empty(alone.size(), 2);
  for (std::size_t n = 0; n < alone.size(); ++n) {
    losses(n, 0) = float(alone[n]), losses(n, 1) = float(divided[n]);
    if (n == 0 || (n + 1) % 5 == 0)
      table.add({fmt::format("{}", n + 1), fmt::format("{:.7f}", alone[n]),
                 fmt::format("{:.7f}", divided[n]), fmt::format("{:.1g}", divided[n] - alone[n])});
  }
  table.print();
  return losses;
}

}  // namespace t2t
