#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "19_ranks/collectives/all_to_all.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "19_ranks/shows/show_costs.hpp"
#include "program/print.hpp"

namespace t2t {

struct Collective {
  std::string name;
  std::function<void()> run;
  Sent formula;  // for this rank
};

static std::vector<Collective> collectives_of(const Communicator& ranks, Row x, Row y) {
  const std::size_t n = x.size(), size = ranks.size, rank = ranks.rank;
  const auto exchange_all = [=] {
    const std::vector<std::size_t> counts(size, n / size);
    all_to_all(ranks, x.first(n / size * size), counts, y.first(n / size * size), counts);
  };
  return {
      {"ring reduce-scatter", [=] { ring_reduce_scatter(ranks, x); },
       ring_reduce_scatter_cost(n, size, rank)},
      {"ring all-gather", [=] { ring_all_gather(ranks, x); }, ring_all_gather_cost(n, size, rank)},
      {"ring all-reduce", [=] { ring_all_reduce(ranks, x); }, ring_all_reduce_cost(n, size, rank)},
      {"tree all-reduce", [=] { tree_all_reduce(ranks, x); }, tree_all_reduce_cost(n, size, rank)},
      {"all-to-all", exchange_all, all_to_all_cost(n / size * size, size)}};
}

Tensor<2> show_counts(const Communicator& world, std::size_t n) {
  std::vector<float> x(n), y(n);
  const std::vector<Collective> all = collectives_of(world, x, y);
  Tensor<2> shown = empty(all.size(), 4);
  Table table({"collective", ">messages: formula", ">counted", ">bytes: formula", ">counted"});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Sent before = sent();
    all[i].run();
    const Sent counted = sent() - before, formula = all[i].formula;
    expect_on_all(world, counted == formula,
                  all[i].name + ": the messages counted are not the formula's");
    const double figures[] = {double(formula.messages), double(counted.messages),
                              double(formula.bytes), double(counted.bytes)};
    std::vector<std::string> cells = {all[i].name};
    for (std::size_t k = 0; k < 4; ++k) {
      const double most = largest_value(world, figures[k]);
      shown(i, k) = float(most);
      cells.push_back(with_commas(std::size_t(most)));
    }
    table.add(cells);
  }
  if (world.rank != 0) return shown;
  print_section(fmt::format("What a rank sends, for {} floats on {}", with_commas(n),
                            ranks_text(world.size)));
  table.print();
  fmt::print("\n");
  print_paragraph("Of ranks that send unequally, the one that sends most.");
  return shown;
}

}  // namespace t2t
