#include "17_fine_tuning/rewards/draw_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "09_language_model/sampling.hpp"
#include "shapes.hpp"

namespace t2t {

/// An answer that is being drawn.
struct OpenAnswer {
  std::size_t i;  // its number, and the state's sequence
  Random random;
};

/// Answers that are drawn at the same time, whose keys and values are in memory together.
static constexpr std::size_t most_at_once = 1024;

static void expect_drawing(const DrawOptions& drawing, std::size_t prompts, std::size_t V) {
  expect(prompts >= 1, "prompts", "at least 1", prompts);
  expect(drawing.most >= 1, "most, the tokens of an answer", "at least 1", drawing.most);
  expect(drawing.end >= 0 && std::size_t(drawing.end) < V, "end, the mark of an answer's end",
         fmt::format("in [0, {})", V), drawing.end);
}

/// Draws the next token of each open answer. Those that ended are no longer open, and the
/// others' new tokens are what the model reads next.
static void draw_tokens(Tensor<2>& logits, const DrawOptions& drawing, SamplingScratch& scratch,
                        std::span<Transcript> answers, std::vector<OpenAnswer>& open,
                        std::vector<MoreTokens>& more) {
  std::vector<OpenAnswer> still_open;
  more.clear();
  for (std::size_t at = 0; at < open.size(); ++at) {
    OpenAnswer& of = open[at];
    const std::array id = {draw(row(logits, at), of.random, scratch)};
    append(answers[of.i], id, true);
    if (id[0] == drawing.end) continue;
    more.push_back({of.i, std::span(answers[of.i].ids).last(1)});
    still_open.push_back(of);
  }
  open = std::move(still_open);
}

/// Draws the answers whose prompts are in the transcripts already, the first of which is number
/// `first` of all.
static void draw_some(const Model& model, const DrawOptions& drawing, std::size_t first,
                      std::span<Transcript> answers) {
  std::size_t longest = 0;
  std::vector<MoreTokens> more;
  std::vector<OpenAnswer> open;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    longest = std::max(longest, answers[i].ids.size());
    more.push_back({i, answers[i].ids});
    open.push_back({i, Random(drawing.seed, first + i)});
  }
  const std::size_t V = model.config().V;
  ModelState state(model.config(), longest + drawing.most, {.sequences = answers.size()});
  SamplingScratch scratch(V);
  Tensor<2> logits = empty(answers.size(), V);
  for (std::size_t n = 0; n < drawing.most && !open.empty(); ++n) {
    forward(model, state, more, Matrix(logits).rows_from(0, more.size()));
    draw_tokens(logits, drawing, scratch, answers, open, more);
  }
}

std::vector<Transcript> draw_answers(const Model& model,
                                     const std::vector<std::vector<int>>& prompts,
                                     const DrawOptions& drawing) {
  expect_drawing(drawing, prompts.size(), model.config().V);
  std::vector<Transcript> answers(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    append(answers[i], prompts[i], false);
    answers[i].ids.reserve(prompts[i].size() + drawing.most);  // views of the ids stay valid
  }
  for (std::size_t first = 0; first < answers.size(); first += most_at_once) {
    const std::size_t count = std::min(most_at_once, answers.size() - first);
    draw_some(model, drawing, first, std::span(answers).subspan(first, count));
  }
  return answers;
}

std::vector<int> answer_of(const Transcript& transcript) {
  std::vector<int> ids;
  for (std::size_t t = 0; t < transcript.ids.size(); ++t)
    if (transcript.learned[t]) ids.push_back(transcript.ids[t]);
  return ids;
}

}  // namespace t2t
