// What a model reads and what it learns of it: a conversation of any number of turns, one of a pair
// of answers, or an answer that the model wrote itself.
//
//   ids      2 + 3 = 5 . 4 + 4 = 8 .        the mark . ends an answer
//   learned  0 0 0 0 1 1 0 0 0 0 1 1        answers and their ends are learned
//
// The target of a token is the token after it, so a target is learned if that next token is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "10_pretrained/chat/chat.hpp"
#include "13_training/backward/model_backward.hpp"

namespace t2t {

struct Transcript {
  std::vector<int> ids;       // [tokens]
  std::vector<bool> learned;  // [tokens], whether the model is to learn to write this token
};

/// Appends ids that are all learned, or all given.
void append(Transcript& transcript, std::span<const int> ids, bool learned);

/// A conversation in the format of chapter 10's chat, of whose turns each answer and the mark that
/// ends it are learned. The messages' roles alternate, "user" first and "assistant" last. Throws
/// std::invalid_argument, naming the message, for others.
Transcript transcript_of(std::span<const ChatMessage> messages, const Bpe& bpe,
                         const std::string& system, const ChatStyle& style = {});

/// Fills the batch with a transcript for each of its sequences. Shorter ones, and sequences without
/// a transcript, are padded with tokens that are not learned. Throws std::invalid_argument when
/// there are more transcripts than sequences, for a transcript of fewer than 2 or more than T + 1
/// tokens, and when its lists differ in length.
void fill(Batch& batch, std::span<const Transcript> transcripts);

}  // namespace t2t
