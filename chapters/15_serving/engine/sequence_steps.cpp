#include "15_serving/engine/sequence_steps.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

/// For how many of its prompt's tokens a sequence gets logits to hand on when it reads this many
/// tokens.
static std::size_t prompt_logits_of(const Sequence& sequence, std::size_t tokens) {
  if (!sequence.needs_prompt_logits()) return 0;
  const std::size_t end = std::min(sequence.computed + tokens, sequence.request.prompt.size() - 1);
  return end - std::min(std::max(sequence.prompt_logits_sent, sequence.computed), end);
}

/// How many drafts a sequence has room for: in its pages and those that are left, and before its
/// end, since one more token is chosen than accepted.
static std::size_t drafts_with_room(const Sequence& sequence, const Sequences& sequences) {
  const std::size_t pages = sequence.table.size() + sequences.pages_left();
  const std::size_t end = std::min(
      sequences.max_tokens(), sequence.request.prompt.size() + sequence.request.max_new_tokens);
  return std::min(pages * sequences.runner().options.page_size, end - 1) - sequence.tokens.size();
}

/// Asks for drafts of an answer, and takes pages for them.
static void add_drafts(Sequence& sequence, SequenceStep& part, std::size_t budget,
                       Sequences& sequences) {
  if (!sequence.request.drafter || sequence.request.max_new_tokens == 0) return;
  const std::size_t most =
      std::min({sequence.request.max_drafts, budget, drafts_with_room(sequence, sequences)});
  if (most == 0) return;
  try {
    const std::vector<int> drafts = sequence.request.drafter(sequence.tokens, most);
    expect(drafts.size() <= most, "drafts", fmt::format("at most {}", most), double(drafts.size()));
    for (const int id : drafts) expect_token("a draft", id, sequences.runner().V);
    part.ids.insert(part.ids.end(), drafts.begin(), drafts.end());
    part.drafted = drafts.size(), part.wanted = drafts.size() + 1;
  } catch (const std::exception& thrown) {
    part.error = error_of(thrown);
  }
  sequences.make_room(sequence, part.ids.size());
}

std::vector<SequenceStep> plan_sequence_steps(const StepPlan& plan, Sequences& sequences) {
  std::vector<SequenceStep> steps;
  std::size_t budget = sequences.runner().options.budget;
  for (const auto& [id, tokens] : plan.parts) {
    Sequence& sequence = sequences.running_sequence(id);
    sequences.make_room(sequence, tokens);
    const std::span<const int> ids = std::span(sequence.tokens).subspan(sequence.computed, tokens);
    const bool is_last = sequence.computed + tokens == sequence.tokens.size();
    const std::size_t of_prompt = prompt_logits_of(sequence, tokens);
    steps.push_back({id, {ids.begin(), ids.end()}, of_prompt + is_last, of_prompt});
    budget -= tokens;
  }
  for (SequenceStep& part : steps) {
    Sequence& sequence = sequences.running_sequence(part.id);
    if (sequence.tokens.size() - sequence.computed > 1) continue;  // a prompt
    add_drafts(sequence, part, budget, sequences);
    budget -= part.drafted;
  }
  return steps;
}

}  // namespace t2t
