// Chapter 19: what sharded training is made of, namely shards, and sums in pairs of parts.
#include <doctest/doctest.h>

#include <bit>
#include <vector>

#include "19_ranks/collectives/pairs.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/on_ranks.hpp"
#include "19_ranks/sharded/shards.hpp"

namespace t2t::sharded_parts_tests {

using Floats = std::vector<float>;

TEST_CASE("by hand: which sums of 7 parts are held, and what remains on two ranks") {
  PairTree tree(7);
  const std::size_t additions[] = {0, 1, 0, 2, 0, 1, 2}, held[] = {1, 1, 2, 1, 2, 2, 1};
  for (std::size_t part = 0; part < 7; ++part) {
    CAPTURE(part);
    CHECK(tree.add({part, part + 1}) == additions[part]);
    CHECK(tree.sums().size() == held[part]);
  }
  // Rank 0 of two has parts 0, 1 and 2, rank 1 has 3, and 4 to 6, which are one node of the tree.
  const std::vector<Range> first = sums_held({0, 3}, 7).sums, second = sums_held({3, 7}, 7).sums;
  REQUIRE(first.size() == 2);
  CHECK((first[0].end == 2 && first[1].begin == 2));
  REQUIRE(second.size() == 2);
  CHECK((second[0].end == 4 && second[1].begin == 4 && second[1].end == 7));
}

TEST_CASE("parts that come one by one become one sum, and few sums are held on the way") {
  for (std::size_t parts = 1; parts <= 70; ++parts) {
    CAPTURE(parts);
    const HeldSums all = sums_held({0, parts}, parts);
    CHECK(all.sums.size() == 1);
    CHECK(all.most <= std::size_t(std::bit_width(parts)) + 1);
    for (std::size_t ranks = 1; ranks <= std::min<std::size_t>(parts, 9); ++ranks) {
      PairTree tree(parts);
      for (std::size_t r = 0; r < ranks; ++r)
        for (const Range sum : sums_held(range_of(parts, ranks, r), parts).sums) tree.add(sum);
      CHECK(tree.sums().size() == 1);
    }
  }
}

TEST_CASE("by hand: two ranks get their chunks of all rows, in the order of ranks") {
  const OnRanks got = on_ranks(2, [](const Communicator& ranks) {
    const Floats a = {1, 2, 3}, b = {4, 5, 6}, c = {7, 8, 9};
    const std::vector<ConstRow> own =
        ranks.rank == 0 ? std::vector<ConstRow>{a, b} : std::vector<ConstRow>{c};
    return own_chunks(ranks, own, {2, 1}, 3);
  });
  REQUIRE(got.error == "");
  CHECK(got.results[0] == Floats{1, 4, 7});
  CHECK(got.results[1] == Floats{2, 3, 5, 6, 8, 9});
}

TEST_CASE("sums in pairs that are scattered have the bits of pairs_all_reduce") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t parts : {5, 6, 7, 8, 13}) {
      const std::size_t n = 11;
      const OnRanks whole = on_ranks(p, [&](const Communicator& ranks) {
        std::vector<Floats> own;
        const Range mine = range_of(parts, p, ranks.rank);
        for (std::size_t part = mine.begin; part < mine.end; ++part)
          own.push_back(fractions(part, n));
        pairs_all_reduce(ranks, own, parts);
        return own[0];
      });
      const OnRanks scattered = on_ranks(p, [&](const Communicator& ranks) {
        // Here every rank brings each of its parts as a row.
        std::vector<Floats> own;
        std::vector<std::size_t> rows;
        std::vector<Range> added;
        for (std::size_t r = 0; r < p; ++r) rows.push_back(range_of(parts, p, r).size());
        for (std::size_t part = 0; part < parts; ++part) added.push_back({part, part + 1});
        const Range mine = range_of(parts, p, ranks.rank);
        for (std::size_t part = mine.begin; part < mine.end; ++part)
          own.push_back(fractions(part, n));
        const Floats chunks = own_chunks(ranks, {own.begin(), own.end()}, rows, n);
        std::vector<Floats> held(sums_held({0, parts}, parts).most,
                                 Floats(range_of(n, p, ranks.rank).size()));
        PairTree tree(parts);
        add_in_pairs(tree, added, chunks, {held.begin(), held.end()});
        Floats sum(n);
        std::ranges::copy(held[0], chunk_of(sum, p, ranks.rank).begin());
        ring_all_gather(ranks, sum);
        return sum;
      });
      CAPTURE(p);
      CAPTURE(parts);
      REQUIRE(whole.error == "");
      CHECK(first_wrong(scattered, whole.results[0]) == "");
    }
}

static ListedTensor listed(std::string_view name, Row numbers) {
  return {{name, numbers.size(), 1, Role::matrix}, numbers};
}

TEST_CASE("a shard is a rank's chunk of each tensor") {
  Floats a = {0, 1, 2, 3, 4, 5, 6}, b = {7};
  const std::vector<ListedTensor> tensors = {listed("a", a), listed("b", b)};
  const Communicator second = {MPI_COMM_NULL, 1, 3};
  const std::vector<ListedTensor> chunks = chunks_of(second, tensors);
  CHECK(chunks[0].numbers.data() == &a[2]);
  CHECK(chunks[0].numbers.size() == 2);
  CHECK(chunks[1].numbers.empty());
  Shards shards(second, tensors);
  CHECK(shards.row().size() == 2);
  CHECK(shards.list()[0].numbers.data() == shards.row().data());
  CHECK(shards.list()[1].info.name == "b");
}

}  // namespace t2t::sharded_parts_tests
