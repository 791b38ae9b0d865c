#include "19_ranks/collectives/pairs.hpp"

#include <fmt/format.h>

#include "19_ranks/collectives/messages.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "shapes.hpp"

namespace t2t {

void pairs_all_reduce(const Communicator& ranks, std::span<std::vector<float>> own,
                      std::size_t parts) {
  expect(parts >= ranks.size, "parts", fmt::format("at least {}", ranks.size), parts);
  const Range mine = range_of(parts, ranks.size, ranks.rank);
  expect(own.size() == mine.size(), "own parts", fmt::format("{}", mine.size()), own.size());
  const auto owner = [&](std::size_t part) { return range_with(parts, ranks.size, part); };
  for (std::size_t apart = 1; apart < parts; apart *= 2)
    for (std::size_t part = mine.begin; part < mine.end; ++part) {
      std::vector<float>& sum = own[part - mine.begin];
      const bool is_first = part % (2 * apart) == 0 && part + apart < parts;
      const bool is_second = part % (2 * apart) == apart;
      if (is_second && part - apart < mine.begin)
        send(ranks, sum, owner(part - apart), Purpose::reduce);
      if (is_first && part + apart < mine.end) add_row(sum, own[part + apart - mine.begin]);
      if (is_first && part + apart >= mine.end) {
        const Row second = room_for(sum.size());
        receive(ranks, second, owner(part + apart), Purpose::reduce);
        add_row(sum, second);
      }
    }
  tree_broadcast(ranks, own[0]);
}

}  // namespace t2t
