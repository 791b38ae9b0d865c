// What must be true of learning from rewards: answers are drawn from the p that is learned, they
// end where they end, and rewards are what they say.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "17_fine_tuning/rewards/draw_answers.hpp"
#include "17_fine_tuning/rewards/pass_at_k.hpp"
#include "17_fine_tuning/rewards/reward_trainer.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::rewards_test {

using std::size_t;

static Model drawn(std::uint64_t seed = 5, float scale = 1) {
  Random random(seed);
  ModelWeights weights = draw_model(sums_config(), random);
  weights.embedding = Tensor<2>(scale * weights.embedding.floats());
  return Model(sums_config(), std::move(weights));
}
static Ids ids_of(const char* text) { return sum_ids(text); }

// pass@k.

TEST_CASE("pass@k by hand") {
  CHECK(pass_at_k(4, 1, 2) == 0.5);  // 3 of the 6 pairs hold the right answer
  CHECK(pass_at_k(4, 0, 4) == 0);
  CHECK(pass_at_k(4, 1, 4) == 1);
  CHECK(pass_at_k(4, 3, 2) == 1);  // no pair of wrong answers is left
  CHECK(pass_at_k(4, 4, 1) == 1);
  CHECK(std::abs(pass_at_k(10, 2, 2) - 17.0 / 45) < 1e-15);
  const std::vector<size_t> right = {1, 0, 4};
  CHECK(std::abs(mean_pass_at_k(4, right, 2) - 0.5) < 1e-15);
  REFUSES(pass_at_k(4, 5, 1), "right answers: wanted at most 4, all answers, got 5");
  REFUSES(pass_at_k(4, 1, 5), "k: wanted 1 to 4, all answers, got 5");
  REFUSES(pass_at_k(4, 1, 0), "k: wanted 1 to 4, all answers, got 0");
  REFUSES(mean_pass_at_k(4, std::vector<size_t>{}, 1), "questions: wanted at least 1, got 0");
}

TEST_CASE("the mean of pass@k over all draws is the probability of a right answer among k") {
  for (const size_t m : {3, 16})
    for (const size_t k : {1, 2, 3})
      for (const double p : {0.03, 0.4, 0.9}) {
        CAPTURE(m);
        CAPTURE(k);
        double mean = 0, choices = 1;
        for (size_t r = 0; r <= m; ++r) {
          mean += choices * std::pow(p, double(r)) * std::pow(1 - p, double(m - r)) *
                  pass_at_k(m, r, k);
          choices *= double(m - r) / double(r + 1);
        }
        CHECK(std::abs(mean - (1 - std::pow(1 - p, double(k)))) < 1e-13);
      }
}

// Sums.

TEST_CASE("by hand: prompts, answers, and what both rewards give for them") {
  const Sum sum = {37, 25}, small = {4, 5};
  CHECK(sum_prompt(sum) == "37+25=");
  CHECK(sum_prompt(small) == "04+05=");
  CHECK(sum_answer(sum) == "62");
  CHECK(sum_answer(sum, 3) == "062");
  CHECK(sum_answer({99, 99}, 3) == "198");
  CHECK(sum_text(ids_of("62.")) == "62.");
  const Transcript lesson = sum_lesson(sum, "62");
  CHECK(lesson.ids == ids_of("37+25=62."));
  CHECK(answer_of(lesson) == ids_of("62."));
  struct Case {
    const char* answer;
    double right, begins;
  };
  for (const auto& [answer, right, begins] :
       {Case{"62.", 1, 1}, Case{"6.", 0, 1}, Case{".", 0, 1}, Case{"62", 0, 0}, Case{"2.", 0, 0},
        Case{"622.", 0, 0}, Case{"062.", 0, 0}, Case{"63.", 0, 0}, Case{"", 0, 0}}) {
    CAPTURE(answer);
    CHECK(right_answer(sum, ids_of(answer)) == right);
    CHECK(begins_right(sum, ids_of(answer)) == begins);
  }
  REFUSES(sum_ids("3x"), "symbols of a sum: wanted some of 0123456789+=., got x");
}

TEST_CASE("all sums are there once, and none is both held out and learned") {
  const SumsSplit split = split_sums(200, 1), other = split_sums(200, 2);
  CHECK(split.held_out.size() == 200);
  CHECK(split.train.size() == 9800);
  std::set<int> all;
  for (const std::vector<Sum>* list : {&split.held_out, &split.train})
    for (const Sum& sum : *list) all.insert(100 * sum.a + sum.b);
  CHECK(all.size() == 10000);
  const auto same = [](const Sum& x, const Sum& y) { return x.a == y.a && x.b == y.b; };
  CHECK_FALSE(std::ranges::equal(split.held_out, other.held_out, same));
  REFUSES(split_sums(10000, 1), "sums that are held out: wanted below 10000, got 10000");
}

// Answers.

TEST_CASE("an answer is its prompt's, ends with its end mark, and differs from its neighbour's") {
  const Model model = drawn();
  const std::vector<Ids> prompts = {ids_of("37+25="), ids_of("1="), ids_of("37+25=")};
  std::vector<Ids> many;
  for (size_t i = 0; i < 60; ++i) many.push_back(prompts[i % 3]);
  const std::vector<Transcript> answers = draw_answers(model, many, {sum_end, 5, 7});
  const std::vector<Transcript> again = draw_answers(model, many, {sum_end, 5, 7});
  REQUIRE(answers.size() == 60);
  size_t ended = 0;
  std::set<Ids> different;
  for (size_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto& [ids, learned] = answers[i];
    CHECK(again[i].ids == ids);
    const size_t given = many[i].size();
    REQUIRE(ids.size() > given);
    REQUIRE(learned.size() == ids.size());
    CHECK(std::equal(many[i].begin(), many[i].end(), ids.begin()));
    for (size_t t = 0; t < ids.size(); ++t) CHECK(learned[t] == (t >= given));
    const auto end = std::find(ids.begin() + std::ptrdiff_t(given), ids.end(), sum_end);
    if (end != ids.end())
      CHECK((end + 1 == ids.end()));
    else
      CHECK(ids.size() == given + 5);
    ended += end != ids.end();
    if (i % 3 != 1) different.insert(answer_of(answers[i]));
  }
  CHECK((ended > 0 && ended < 60));
  CHECK(different.size() > 30);  // of 40 answers to one prompt
}

TEST_CASE("tokens are drawn with the probabilities that are learned") {
  // Logits far enough apart for another temperature to show.
  const Model model = drawn(5, 20);
  constexpr size_t n = 2000;
  const Ids prompt = ids_of("37+25=");
  const std::vector<Transcript> answers =
      draw_answers(model, std::vector<Ids>(n, prompt), {sum_end, 1, 3});
  ModelState state(model.config(), 12);
  Tensor<1> logits = empty(13);
  forward(model, state, prompt, row(logits));
  double sum = 0, p[13], counts[13] = {};
  for (size_t v = 0; v < 13; ++v) sum += p[v] = std::exp(double(logits(v)));
  for (const Transcript& answer : answers) ++counts[answer.ids.back()];
  double highest = 0;
  for (size_t v = 0; v < 13; ++v) {
    CAPTURE(v);
    p[v] /= sum;
    highest = std::max(highest, p[v]);
    // Five standard deviations of a share of n draws.
    CHECK(std::abs(counts[v] / n - p[v]) <= 5 * std::sqrt(p[v] * (1 - p[v]) / n) + 1e-3);
  }
  REQUIRE((highest > 0.3 && highest < 0.95));

  // What the passes of training say of a drawn token is its ln p.
  Batch batch = make_batch(1, 6);
  fill(batch, std::vector{answers[0]});
  WeightedPasses passes(model.config(), 1, 6);
  const double ln_p = passes.log_p(model, batch)[5];
  CHECK(std::abs(ln_p - std::log(p[answers[0].ids.back()])) < 1e-4);
}

TEST_CASE("answers that can't be drawn are refused") {
  const Model model = drawn();
  REFUSES(draw_answers(model, {}, {sum_end, 5, 1}), "prompts: wanted at least 1, got 0");
  REFUSES(draw_answers(model, {{1}}, {sum_end, 0, 1}),
          "most, the tokens of an answer: wanted at least 1, got 0");
  REFUSES(draw_answers(model, {{1}}, {13, 5, 1}),
          "end, the mark of an answer's end: wanted in [0, 13), got 13");
}

// Steps.

static RewardOptions small_options() {
  RewardOptions options{.questions = 3, .step = {{1e-3f, 1e-3f, 0, 10}, {.decay = 0}, 1}};
  options.grpo.group = 4;
  return options;
}
static double by_first_digit(const Sum&, const Ids& answer) { return double(answer[0]) / 12; }

TEST_CASE("steps from a seed are the same bits, and from another seed others") {
  const std::vector<Sum> sums = split_sums(9000, 1).train;
  RewardOptions options = small_options();
  RewardTrainer a(drawn(), sums, by_first_digit, options),
      b(drawn(), sums, by_first_digit, options);
  options.seed = 2;
  RewardTrainer other(drawn(), sums, by_first_digit, options);
  bool differs = false;
  for (size_t n = 1; n <= 3; ++n) {
    const RewardReport of_a = a.step(), of_b = b.step(), of_other = other.step();
    CHECK(of_a.n == n);
    CHECK(of_a.reward == of_b.reward);
    CHECK(of_a.gradient_norm == of_b.gradient_norm);
    CHECK((of_a.reward > 0 && of_a.reward < 1));
    CHECK((of_a.length >= 1 && of_a.length <= 5));
    CHECK(of_a.clipped == 0);  // of the only pass, in which nothing has moved yet
    differs = differs || of_a.reward != of_other.reward;
  }
  CHECK(differs);
  const auto embedding = [](const RewardTrainer& of) {
    return of.model().weights().embedding.floats();
  };
  CHECK(all_close(embedding(a), embedding(b), 0));
}

TEST_CASE("in a second pass over the same answers, ratios are to the model that drew them") {
  const std::vector<Sum> sums = split_sums(9000, 1).train;
  RewardOptions options = small_options();
  options.passes = 2;
  options.grpo.epsilon = 1e-6;  // each token that has moved at all in its direction is clipped
  RewardTrainer trainer(drawn(), sums, by_first_digit, options);
  CHECK(trainer.step().clipped > 0.3);
}

TEST_CASE("the reference is the model before the first step, and stays so") {
  const std::vector<Sum> sums = split_sums(9000, 1).train;
  RewardOptions options = small_options();
  options.grpo.kappa = 0.01;
  RewardTrainer trainer(drawn(), sums, by_first_digit, options);
  CHECK(trainer.step().moved == 0);
  double moved = 0;
  for (int n = 0; n < 10; ++n) moved = trainer.step().moved;
  CHECK(moved != 0);
}

TEST_CASE("the answers of a group answer one question, and those of a step several") {
  const std::vector<Sum> sums = split_sums(9000, 1).train;
  std::vector<int> asked;
  const auto listed = [&](const Sum& sum, const Ids&) {
    asked.push_back(100 * sum.a + sum.b);
    return double(asked.size());
  };
  RewardTrainer trainer(drawn(), sums, listed, small_options());
  trainer.step(), trainer.step();
  REQUIRE(asked.size() == 24);
  for (size_t i = 0; i < 24; ++i) CHECK(asked[i] == asked[i - i % 4]);
  CHECK(std::set<int>(asked.begin(), asked.end()).size() == 6);
}

TEST_CASE("a reward that is the same for all answers changes nothing") {
  const std::vector<Sum> sums = split_sums(9000, 1).train;
  const Model before = drawn();
  RewardTrainer trainer(
      drawn(), sums, [](const Sum&, const Ids&) { return 1.0; }, small_options());
  const RewardReport report = trainer.step();
  CHECK(report.equal == 1);
  CHECK(report.gradient_norm == 0);
  CHECK(all_close(trainer.model().weights().embedding.floats(), before.weights().embedding.floats(),
                  0));
}

TEST_CASE("steps without sums, questions or passes are refused") {
  const std::vector<Sum> sums = split_sums(9000, 1).train, none;
  RewardOptions options = small_options();
  REFUSES(RewardTrainer(drawn(), none, by_first_digit, options),
          "sums to learn from: wanted at least 1, got 0");
  options.passes = 0;
  REFUSES(RewardTrainer(drawn(), sums, by_first_digit, options),
          "passes over the same answers: wanted at least 1, got 0");
  options.passes = 1, options.questions = 0;
  REFUSES(RewardTrainer(drawn(), sums, by_first_digit, options),
          "questions of a step: wanted at least 1, got 0");
}

}  // namespace t2t::rewards_test
