// What must be true of drafts: from the sequence they are what followed before, and from a model
// they are what it would say.
#include <doctest/doctest.h>

#include <vector>

#include "09_language_model/generate.hpp"
#include "15_serving/speculation/draft.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::drafts_test {

using std::size_t;

static Model small_model() {
  const Config config{.block = llama_style(64, 4, 2, 96), .L = 2, .V = 96, .T_max = 300};
  Random random(3);
  return Model(config, draw_model(config, random));
}

TEST_CASE("by hand: a draft from the text is what followed its longest end before") {
  const Drafter drafter = lookup_drafter(3, 2);
  CHECK(drafter(Ids{1, 2, 3, 4, 5, 1, 2, 3}, 2) == Ids{4, 5});
  CHECK(drafter(Ids{1, 2, 3, 4, 5, 1, 2, 3}, 9) == Ids{4, 5, 1, 2, 3});
  CHECK(drafter(Ids{9, 2, 3, 4, 5, 1, 2, 3}, 1) == Ids{4});           // two tokens are enough
  CHECK(drafter(Ids{9, 9, 3, 4, 5, 1, 2, 3}, 1).empty());             // one is not
  CHECK(drafter(Ids{1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3}, 1) == Ids{8});  // the last place
  CHECK(drafter(Ids{1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3}, 1) == Ids{7});  // the longest end
  CHECK(drafter(Ids{6, 6, 6, 6}, 3) == Ids{6});                       // the end may meet itself
  CHECK(drafter(Ids{1, 2}, 3).empty());
  CHECK(drafter(Ids{}, 3).empty());
  CHECK(drafter(Ids{1, 2, 3, 1, 2}, 0).empty());
  REFUSES(lookup_drafter(2, 3), "shortest, the tokens to look for: wanted 1 to 2, got 3");
  REFUSES(lookup_drafter(2, 0), "shortest, the tokens to look for: wanted 1 to 2, got 0");
}

TEST_CASE("a draft from a model is its greedy answer, whatever it read before") {
  const Model model = small_model();
  const auto greedy_answer = [&](const Ids& ids, size_t k) {
    ModelState state(model.config(), 60);
    Random random(0);
    return generate(model, state, ids, {.most = k, .sampling = {.temperature = 0}}, random);
  };
  const Drafter drafter = model_drafter(model, 40);
  const std::vector<Ids> sequences = {{1, 2, 3},    {1, 2, 3, 4, 5}, {1, 2, 3, 4},
                                      {1, 2, 3, 4}, {1, 7},          {8}};
  for (const Ids& ids : sequences) CHECK(drafter(ids, 5) == greedy_answer(ids, 5));
  Ids ids = {3};
  for (size_t round = 0; round < 6; ++round) {
    const Ids drafts = drafter(ids, 3);
    CHECK(drafts == greedy_answer(ids, 3));
    // Two drafts are accepted, and then another token comes.
    ids.insert(ids.end(), {drafts[0], drafts[1], int(round)});
  }
  // Of 40 positions the last draft needs none.
  CHECK(drafter(Ids(38, 1), 5).size() == 3);
  CHECK(drafter(Ids(40, 1), 5).size() == 1);
  CHECK(drafter(Ids(41, 1), 5).empty());
  CHECK(drafter(Ids{1}, 0).empty());
}

}  // namespace t2t::drafts_test
