#include "17_fine_tuning/program/learn_preferences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "17_fine_tuning/preferences/dpo.hpp"
#include "17_fine_tuning/preferences/policy.hpp"
#include "17_fine_tuning/program/sums_model.hpp"
#include "17_fine_tuning/rewards/answers_to.hpp"
#include "17_fine_tuning/rewards/draw_answers.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t pairs_of_a_step = 64;

/// Two answers to a sum, and what the reference says of them.
struct PreferredAnswer {
  Transcript chosen, rejected;
  AnswerPair reference = {0, 0};
};

static std::string padded_answer(const Sum& sum) { return sum_answer(sum, 3); }
static bool has_two_formats(const Sum& sum) { return padded_answer(sum) != sum_answer(sum); }

/// "62" rather than "062".
static std::vector<PreferredAnswer> format_pairs(const std::vector<Sum>& sums) {
  std::vector<PreferredAnswer> pairs;
  for (const Sum& sum : sums)
    if (has_two_formats(sum) && pairs.size() < 2000)
      pairs.push_back({sum_lesson(sum, sum_answer(sum)), sum_lesson(sum, padded_answer(sum))});
  return pairs;
}

/// A right answer rather than a wrong one, both drawn from the model: one pair for each of some
/// sums to which it gave both.
static std::vector<PreferredAnswer> answer_pairs(const Model& model, const std::vector<Sum>& sums,
                                                 std::uint64_t seed) {
  constexpr std::size_t asked = 2000, m = 8;
  const std::vector<Sum> chosen(sums.begin(), sums.begin() + asked);
  const std::vector<Transcript> answers = answers_to(model, repeated(chosen, m), sum_most, seed);
  std::vector<PreferredAnswer> pairs;
  for (std::size_t i = 0; i < asked; ++i) {
    std::optional<std::size_t> right, wrong;
    for (std::size_t j = i * m; j < (i + 1) * m; ++j)
      (right_answer(sums[i], answer_of(answers[j])) == 1 ? right : wrong) = j;
    if (right && wrong) pairs.push_back({answers[*right], answers[*wrong]});
  }
  return pairs;
}

/// The chosen answers of some pairs, counted past the end from the start again, then the rejected.
static void fill(Batch& batch, const std::vector<PreferredAnswer>& pairs, std::size_t first,
                 std::vector<double>& reference) {
  const std::size_t P = batch.B / 2;
  std::vector<Transcript> answers(batch.B);
  reference.resize(batch.B);
  for (std::size_t i = 0; i < P; ++i) {
    const PreferredAnswer& pair = pairs[(first + i) % pairs.size()];
    answers[i] = pair.chosen, answers[P + i] = pair.rejected;
    reference[i] = pair.reference.chosen, reference[P + i] = pair.reference.rejected;
  }
  fill(batch, answers);
}

/// Two numbers for each pair: all that is ever needed of the reference.
static void score_pairs(const Model& model, std::vector<PreferredAnswer>& pairs) {
  constexpr std::size_t P = pairs_of_a_step;
  WeightedPasses passes(model.config(), 2 * P, sums_T);
  Batch batch = make_batch(2 * P, sums_T);
  std::vector<double> none;
  for (std::size_t first = 0; first < pairs.size(); first += P) {
    fill(batch, pairs, first, none);
    const std::vector<double> scores = answer_log_p(batch, passes.log_p(model, batch));
    for (std::size_t i = 0; i < P && first + i < pairs.size(); ++i)
      pairs[first + i].reference = {scores[i], scores[P + i]};
  }
}

/// The last two columns: right and zeros, or pass@1 and pass@8.
struct PairScores {
  double first, second;
};

/// Of the answers to sums with two formats, how many are right in either, and begin with a zero.
static PairScores score_formats(const Model& model, const std::vector<Sum>& held_out) {
  constexpr std::size_t m = 8;
  std::vector<Sum> chosen;
  std::ranges::copy_if(held_out, std::back_inserter(chosen), has_two_formats);
  const std::vector<Sum> asked = repeated(chosen, m);
  const std::vector<Transcript> answers = answers_to(model, asked, sum_most, 8);
  PairScores scores{};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string text = sum_text(answer_of(answers[i]));
    const bool right = text == sum_answer(asked[i]) + "." || text == padded_answer(asked[i]) + ".";
    scores.first += right / double(answers.size());
    scores.second += text.starts_with('0') / double(answers.size());
  }
  return scores;
}

static PairScores score_answers(const Model& model, const std::vector<Sum>& held_out) {
  const SumScores scores = score_sums(model, held_out, 16, 9);
  return {scores.pass_1, scores.pass_8};
}

/// All steps, with a line of the table before the first, after some and after the last.
static void learn_pairs(Policy& policy, const std::vector<PreferredAnswer>& pairs,
                        std::size_t steps, const DpoOptions& options, Table& table,
                        const std::function<PairScores(const Model&)>& score) {
  Batch batch = make_batch(2 * pairs_of_a_step, sums_T);
  std::vector<double> reference;
  std::vector<float> weights(batch.targets.size());
  const std::size_t every = std::max<std::size_t>(1, steps / 5);
  for (std::size_t n = 0; n <= steps; ++n) {
    fill(batch, pairs, n * pairs_of_a_step, reference);
    const std::vector<double> scores = answer_log_p(batch, policy.log_p(batch));
    const DpoReport report = dpo_weights(batch, scores, reference, options, weights);
    if (n % every == 0 || n == steps) {
      const PairScores now = score(policy.model());
      table.add({fmt::format("{}", n), fmt::format("{:.3f}", report.loss),
                 fmt::format("{:.2f}", report.in_order), fmt::format("{:+.2f}", report.chosen),
                 fmt::format("{:+.2f}", report.rejected), fmt::format("{:.2f}", now.first),
                 fmt::format("{:.2f}", now.second)});
    }
    if (n < steps) policy.step_on(batch, weights);
    show_progress(fmt::format("{}  loss {:.3f} ", steps_done(n, steps), report.loss));
  }
  show_progress("");
}

static void expect_preferences(const SumFlags& flags) {
  if (flags.preferences != "formats" && flags.preferences != "answers")
    throw std::invalid_argument("--preferences: wanted formats or answers, got " +
                                flags.preferences);
  expect(flags.rate > 0, "--rate", "more than 0", flags.rate);
  expect(flags.beta > 0, "--beta", "more than 0", flags.beta);
  expect(flags.sft >= 0, "--sft", "at least 0", flags.sft);
}

int learn_preferences(const Program& program, const SumFlags& flags) {
  expect_preferences(flags);
  const bool formats = flags.preferences == "formats";
  const std::size_t steps = formats && !program.given("steps") ? 30 : flags.steps;
  const std::size_t taught = formats && !program.given("taught") ? 900 : flags.taught;
  const SumsSplit sums = split_sums(200, 1);
  Model start =
      taught_sums(sums.train, taught, program.seed(), [&](const Sum& sum, Random& random) {
        return formats && random.next_uniform() < 0.5 ? padded_answer(sum) : sum_answer(sum);
      });
  std::vector<PreferredAnswer> pairs =
      formats ? format_pairs(sums.train) : answer_pairs(start, sums.train, program.seed());
  expect(!pairs.empty(), "pairs of answers", "at least 1", 0);
  score_pairs(start, pairs);

  Policy policy(std::move(start),
                {2 * pairs_of_a_step,
                 sums_T,
                 {{flags.rate, flags.rate, 0, steps}, {.beta2 = 0.98f, .decay = 0}, 1}});
  print_section(formats ? "62 rather than 062" : "Right answers rather than wrong ones");
  Table table({"steps", ">loss", ">in order", ">chosen", ">rejected",
               formats ? ">right" : ">pass@1", formats ? ">zeros" : ">pass@8"});
  learn_pairs(policy, pairs, steps, {double(flags.beta), double(flags.sft)}, table,
              [&](const Model& model) {
                return (formats ? score_formats : score_answers)(model, sums.held_out);
              });
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} steps of {} pairs, after {} steps of supervised fine-tuning; there are {} pairs in all. "
      "Loss, order and the changes of ln p of whole answers are those of the next {} pairs, the "
      "last two columns those of held-out sums.",
      steps, pairs_of_a_step, taught, pairs.size(), pairs_of_a_step));
  return 0;
}

}  // namespace t2t
