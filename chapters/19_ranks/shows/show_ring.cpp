#include "19_ranks/shows/show_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "program/print.hpp"

namespace t2t {

/// What all ranks have, on rank 0: [size, n]. Each brings a row, and zeros for the others'.
static Tensor<2> gathered(const Communicator& ranks, ConstRow x) {
  Tensor<2> all = xt::zeros<float>({ranks.size, x.size()});
  std::ranges::copy(x, row(all, ranks.rank).begin());
  tree_reduce(ranks, {all.data(), all.size()});
  return all;
}

/// Rank 0 prints what each rank has, and what it sends next.
static Tensor<2> show_state(const Communicator& ranks, ConstRow x, const std::string& title,
                            RingStep (*next)(std::size_t, std::size_t, std::size_t),
                            std::size_t step) {
  const Tensor<2> all = gathered(ranks, x);
  if (ranks.rank != 0) return all;
  print_paragraph(title);
  std::vector<std::string> header = {"rank"};
  for (std::size_t c = 0; c < ranks.size; ++c) header.push_back(fmt::format(">chunk {}", c));
  if (next != nullptr) header.push_back("sends");
  Table table(header);
  for (std::size_t r = 0; r < ranks.size; ++r) {
    std::vector<std::string> cells = {fmt::format("{}", r)};
    for (std::size_t c = 0; c < ranks.size; ++c)
      cells.push_back(fmt::format("{:0{}.0f}", all(r, c), ranks.size));
    if (next != nullptr)
      cells.push_back(fmt::format("chunk {} to rank {}", next(r, ranks.size, step).sends,
                                  (r + 1) % ranks.size));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  return all;
}

Tensor<2> show_ring(const Communicator& world) {
  constexpr std::size_t most = 6;  // ranks whose sums a line holds
  Communicator ranks = first_ranks(world, std::min(world.size, most));
  if (ranks.size == 0) return empty(0, 0);
  const std::size_t size = ranks.size;
  std::vector<float> x(size, float(std::pow(10, ranks.rank)));
  if (ranks.rank == 0) {
    print_section(fmt::format("An all-reduce on a ring of {}", ranks_text(size)));
    print_paragraph(
        "Rank 0 has a 1 in each chunk, rank 1 a 10, rank 2 a 100, and so on: a sum's digits tell "
        "which ranks are in it.");
    fmt::print("\n");
  }
  const auto steps = size - 1;
  for (std::size_t step = 0; step < steps; ++step) {
    show_state(ranks, x, fmt::format("Reduce-scatter, step {} of {}:", step + 1, steps),
               reduce_scatter_step, step);
    run_reduce_scatter_step(ranks, x, step);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    show_state(ranks, x, fmt::format("All-gather, step {} of {}:", step + 1, steps),
               all_gather_step, step);
    run_all_gather_step(ranks, x, step);
  }
  const Tensor<2> end = show_state(ranks, x, "At the end, every rank has every sum:", nullptr, 0);
  free_communicator(ranks);
  return end;
}

}  // namespace t2t
