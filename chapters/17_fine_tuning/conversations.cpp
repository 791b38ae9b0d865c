#include "17_fine_tuning/conversations.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "files/files.hpp"
#include "shapes.hpp"

namespace t2t {

std::vector<QuestionAnswer> read_questions(const std::filesystem::path& path) {
  std::istringstream lines(read_text_file(path));
  std::vector<QuestionAnswer> questions;
  bool asked = false;  // a question that has no answer yet
  std::size_t number = 0;
  const auto fail = [&](const char* wanted) {
    throw std::runtime_error(fmt::format("{}: line {}: wanted {}", path.string(), number, wanted));
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const bool question = line.starts_with("Q: ");
    if (!question && !line.starts_with("A: "))
      fail("a line that begins with \"Q: \", \"A: \" or #, or an empty one");
    if (question == asked) fail(asked ? "the answer, \"A: \"" : "a question, \"Q: \"");
    if (line.size() == 3) fail("a text after the colon");
    if (question)
      questions.push_back({line.substr(3), ""});
    else
      questions.back().answer = line.substr(3);
    asked = question;
  }
  ++number;
  if (asked) fail("the answer, \"A: \"");
  if (questions.empty()) fail("at least one question");
  return questions;
}

std::vector<Lesson> lessons_of(const std::vector<QuestionAnswer>& questions, const Bpe& bpe,
                               const std::string& system, const ChatStyle& style) {
  const ChatTemplate chat(bpe, style);
  std::vector<Lesson> lessons;
  const auto append = [](std::vector<int>& ids, const std::vector<int>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  for (const auto& [question, answer] : questions) {
    Lesson lesson{chat.opening(system), 0};
    append(lesson.ids, chat.question(question));
    lesson.given = lesson.ids.size();
    append(lesson.ids, bpe.encode(answer));
    lesson.ids.push_back(chat.end());
    lessons.push_back(std::move(lesson));
  }
  return lessons;
}

void expect_lengths(const std::filesystem::path& path, const std::vector<Lesson>& lessons,
                    std::size_t T_max) {
  for (std::size_t i = 0; i < lessons.size(); ++i)
    if (lessons[i].ids.size() > T_max + 1)
      throw std::runtime_error(fmt::format(
          "{}: question {}: wanted at most {} tokens with its prompt and answer, got {}",
          path.string(), i + 1, T_max + 1, lessons[i].ids.size()));
}

std::size_t longest(const std::vector<Lesson>& lessons) {
  std::size_t most = 0;
  for (const Lesson& lesson : lessons) most = std::max(most, lesson.ids.size() - 1);
  return most;
}

void fill(Batch& batch, const std::vector<Lesson>& lessons, std::size_t first, bool once) {
  std::ranges::fill(batch.ids, 0);
  std::ranges::fill(batch.targets, not_learned);
  for (std::size_t b = 0; b < batch.B && (!once || first + b < lessons.size()); ++b) {
    const auto& [ids, given] = lessons[(first + b) % lessons.size()];
    expect(ids.size() <= batch.T + 1, "a lesson", fmt::format("at most {} tokens", batch.T + 1),
           ids.size());
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      batch.ids[b * batch.T + t] = ids[t];
      if (t + 1 >= given) batch.targets[b * batch.T + t] = ids[t + 1];
    }
  }
}

}  // namespace t2t
