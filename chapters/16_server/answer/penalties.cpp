#include "16_server/answer/penalties.hpp"

#include <utility>

namespace t2t {

static void penalize(const Penalties& penalties, std::span<const int> answer, Row logits) {
  for (const auto& [id, bias] : penalties.bias) logits[std::size_t(id)] += float(bias);
  std::map<int, std::size_t> counts;
  for (const int id : answer) ++counts[id];
  for (const auto& [id, n] : counts)
    logits[std::size_t(id)] -= float(penalties.frequency * double(n) + penalties.presence);
}

AnswerFilter with_penalties(const Penalties& penalties, AnswerFilter other) {
  if (penalties.presence == 0 && penalties.frequency == 0 && penalties.bias.empty()) return other;
  return [penalties, other = std::move(other)](std::span<const int> answer, Row logits) {
    penalize(penalties, answer, logits);
    if (other) other(answer, logits);
  };
}

}  // namespace t2t
