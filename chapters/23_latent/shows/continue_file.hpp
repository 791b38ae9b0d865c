// A text or ids that a model from a file continues, where the model is not chapter 09's, as those
// of this chapter and of chapter 24.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"
#include "program/program.hpp"
#include "rows.hpp"

namespace t2t {

/// What is continued, and with which vocabulary, if the file has one that chapter 10 reads.
struct FilePrompt {
  std::optional<Bpe> bpe;
  std::string why;  // there is no vocabulary
  std::string text;
  std::vector<int> ids;  // empty: there is nothing to continue

  /// How many tokens may follow the prompt, of those that are asked for; 0 without a prompt.
  std::size_t room(std::size_t tokens, std::size_t T_max) const;
};

/// The flag --ids, or else the text of --prompt, or else "Once upon a time", by the file's
/// tokenizer and with its first token. Throws std::runtime_error when the vocabulary is missing and
/// a text is given, or has more than V tokens, and std::invalid_argument for ids outside [0, V) and
/// unless there are 1 to T_max − 1 of them.
FilePrompt read_prompt(const Program& program, const std::string& text, const std::string& ids,
                       const GgufFile& file, std::size_t V, std::size_t T_max);

/// Takes more tokens of the sequence, and writes the logits [1, V] after the last of them.
using FilePass = std::function<void(std::span<const int> ids, Matrix logits)>;

/// Prints up to `most` greedy tokens after the prompt, or why there is nothing to continue.
void show_continuation(const FilePrompt& prompt, std::size_t V, std::size_t most,
                       const FilePass& pass);

}  // namespace t2t
