// Chapter 20: a layer's experts on several ranks, each with its own tokens: forward.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "20_split_models/expert_layer.hpp"
#include "20_split_models/expert_parallel/exchange_costs.hpp"
#include "20_split_models/expert_parallel/expert_capacity.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"

namespace t2t::parallel_experts_tests {

/// Chapter 14's result for all tokens on one rank.
static Tensor<2> on_one_rank(const Layer& some) {
  const Mixture mixture = some.whole();
  ExpertsScratch scratch(T, C, F, mixture.E(), mixture.settings.k, mixture.activation);
  Tensor<2> y = empty(T, C);
  experts_rows(all_tokens(), mixture, scratch, y);
  return y;
}

/// The first rank whose rows are not these, or an error; "" if there is none.
static std::string first_other(const OnRanks& got, const Tensor<2>& want, Tokens how) {
  if (!got.error.empty()) return got.error;
  for (std::size_t r = 0; r < got.results.size(); ++r) {
    const Floats own = floats_of(cut(want, own_tokens(how, got.results.size(), r)));
    if (got.results[r] != own)
      return "rank " + std::to_string(r) + ": " + first_wrong({"", {got.results[r]}}, own);
  }
  return "";
}

TEST_CASE("each token's result has the bits of one rank with all tokens") {
  // Experts that the ranks divide evenly and unevenly; one choice, several, and all of them.
  const Layer cases[] = {layer(5, 1), layer(7, 3), layer(8, 2), layer(6, 2, true), layer(5, 5)};
  for (const Layer& some : cases) {
    const Tensor<2> want = on_one_rank(some);
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const Tokens how : {Tokens::even, Tokens::none_on_rank_0, Tokens::all_on_the_last}) {
        CAPTURE(some.whole().E());
        CAPTURE(p);
        CAPTURE(int(how));
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
          const Tensor<2> x = cut(all_tokens(), own_tokens(how, p, ranks.rank));
          const Mixture mixture = some.of_rank(ranks);
          Tensor<2> y = empty(x.shape(0), C);
          parallel_experts_rows(ranks, x, mixture, route_each(x, mixture), y);
          return floats_of(y);
        });
        CHECK(first_other(got, want, how) == "");
        if (!got.error.empty()) return;
      }
  }
}

TEST_CASE("what a layer sends is the formula's: the bytes of its actual counts") {
  for (const bool one_is_idle : {false, true})
    for (std::size_t p = 1; p <= most_ranks; ++p) {
      CAPTURE(p);
      const Layer some = layer(7, 3, one_is_idle);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const Tensor<2> x = cut(all_tokens(), own_tokens(Tokens::even, p, ranks.rank));
        const Mixture mixture = some.of_rank(ranks);
        const Routed routed = route_each(x, mixture);
        Tensor<2> y = empty(x.shape(0), C);
        const Sent before = sent();
        const KeptExperts kept = parallel_experts_rows(ranks, x, mixture, routed, y);
        const Sent now = sent() - before;
        const Tensor<2> counts = counts_of_ranks(ranks, kept.exchange.home, 7);
        const Sent want = counts_cost(7, p, ranks.rank) + rows_cost(counts, C, ranks.rank);
        return {float(now.messages), float(now.bytes), float(want.messages), float(want.bytes),
                float(xt::sum(counts)())};
      });
      CHECK(got.error == "");
      if (!got.error.empty()) return;
      for (const Floats& of_rank : got.results) {
        CHECK(of_rank[0] == 3 * float(p - 1));
        CHECK(of_rank[1] == of_rank[3]);
        CHECK(of_rank[2] == 3 * float(p - 1));
        CHECK(of_rank[4] == T * 3);
      }
    }
}

TEST_CASE("by hand: an even load sends 2·k·C·(p − 1)/p floats a token") {
  // 12 tokens on each of 4 ranks, 8 experts, k = 2: 3 choices for each expert from each rank.
  const Tensor<2> counts = 3 * xt::ones<float>({4, 8});
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(rows_cost(counts, 10, r) == Sent{6, 12 * (2 * 2 * 10) * 3 / 4 * sizeof(float)});
    CHECK(counts_cost(8, 4, r) == Sent{3, 6 * sizeof(float)});
  }
  // All choices are rank 0's expert: it sends results only, the others rows only.
  Tensor<2> to_one = xt::zeros<float>({4, 8});
  for (std::size_t r = 0; r < 4; ++r) to_one(r, 0) = 12;
  CHECK(rows_cost(to_one, 10, 0) == Sent{6, 36 * 10 * sizeof(float)});
  CHECK(rows_cost(to_one, 10, 3) == Sent{6, 12 * 10 * sizeof(float)});
}

}  // namespace t2t::parallel_experts_tests
