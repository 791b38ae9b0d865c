#include "17_fine_tuning/program/sums_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "17_fine_tuning/preferences/policy.hpp"
#include "17_fine_tuning/rewards/answers_to.hpp"
#include "17_fine_tuning/rewards/draw_answers.hpp"
#include "17_fine_tuning/rewards/pass_at_k.hpp"
#include "program/progress.hpp"

namespace t2t {

Model taught_sums(const std::vector<Sum>& sums, std::size_t steps, std::uint64_t seed,
                  const SumTeacher& teacher) {
  constexpr std::size_t B = 128;
  const Config config = sums_config();
  Random random(seed);
  Policy policy(Model(config, draw_model(config, random)),
                {B, sums_T, {{3e-3f, 3e-3f, 20, steps}, {.beta2 = 0.98f, .decay = 0}, 1}});
  Batch batch = make_batch(B, sums_T);
  for (std::size_t n = 0; n < steps; ++n) {
    std::vector<Transcript> lessons;
    for (std::size_t b = 0; b < B; ++b) {
      const Sum& sum = sums[std::size_t(random.next_uniform() * double(sums.size()))];
      lessons.push_back(sum_lesson(sum, teacher(sum, random)));
    }
    fill(batch, lessons);
    const StepReport step = learn_answers(policy, batch);
    show_progress(fmt::format("{}  loss {:.3f} ", steps_done(step.n, steps), step.loss));
  }
  show_progress("");
  return Model(config, policy.model().weights());
}

SumScores score_sums(const Model& model, const std::vector<Sum>& sums, std::size_t m,
                     std::uint64_t seed) {
  const std::vector<Transcript> answers = answers_to(model, repeated(sums, m), sum_most, seed);
  SumScores scores{};
  scores.right.resize(sums.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::vector<int> answer = answer_of(answers[i]);
    scores.right[i / m] += right_answer(sums[i / m], answer) == 1;
    scores.length += double(answer.size()) / double(answers.size());
  }
  scores.pass_1 = mean_pass_at_k(m, scores.right, 1);
  scores.pass_8 = mean_pass_at_k(m, scores.right, std::min<std::size_t>(8, m));
  scores.pass_m = mean_pass_at_k(m, scores.right, m);
  return scores;
}

}  // namespace t2t
