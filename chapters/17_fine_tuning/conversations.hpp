// Questions with their answers, as batches that teach a chat model to answer.
//
//   <|im_start|>system … <|im_end|> <|im_start|>user … <|im_end|> <|im_start|>assistant
//                                                   The KV cache.<|im_end|>
//   targets:  not_learned, not_learned …            the answer and its end
//
// A whole conversation is read, in the format of chapter 10's chat, but only the answer is learned,
// because the question will always be given.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "10_pretrained/chat/chat.hpp"
#include "13_training/backward/model_backward.hpp"

namespace t2t {

struct QuestionAnswer {
  std::string question, answer;
};
/// Reads lines "Q: …", each followed by a line "A: …"; empty lines and lines that begin with # are
/// skipped. Throws std::runtime_error, naming the file and the line, for anything else, for a text
/// that is not UTF-8, and when there is no question.
std::vector<QuestionAnswer> read_questions(const std::filesystem::path& path);

/// A conversation's tokens, the first `given` of which are not learned.
struct Lesson {
  std::vector<int> ids;
  std::size_t given;
};
std::vector<Lesson> lessons_of(const std::vector<QuestionAnswer>& questions, const Bpe& bpe,
                               const std::string& system, const ChatStyle& style = {});

/// Throws std::runtime_error, naming the file and the question, for a lesson that is longer than a
/// context of T_max tokens.
void expect_lengths(const std::filesystem::path& path, const std::vector<Lesson>& lessons,
                    std::size_t T_max);

/// The most tokens that a model reads of a lesson: T for batches of all lessons.
std::size_t longest(const std::vector<Lesson>& lessons);

/// Fills a batch with lessons first, first + 1 …, and after the last one from the start again, or
/// with nothing if `once`. Lessons shorter than T are padded with tokens that are not learned.
/// Throws std::invalid_argument for a lesson longer than T.
void fill(Batch& batch, const std::vector<Lesson>& lessons, std::size_t first, bool once = false);

}  // namespace t2t
