#include "17_fine_tuning/rewards/answers_to.hpp"

#include "17_fine_tuning/rewards/draw_answers.hpp"

namespace t2t {

std::vector<Transcript> answers_to(const Model& model, const std::vector<Sum>& asked,
                                   std::size_t most, std::uint64_t seed) {
  std::vector<std::vector<int>> prompts;
  for (const Sum& sum : asked) prompts.push_back(sum_ids(sum_prompt(sum)));
  return draw_answers(model, prompts, {sum_end, most, seed});
}

std::vector<Sum> repeated(const std::vector<Sum>& sums, std::size_t m) {
  std::vector<Sum> asked;
  for (const Sum& sum : sums) asked.insert(asked.end(), m, sum);
  return asked;
}

}  // namespace t2t
