// What a server must know about its model to turn texts into tokens and back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "15_serving/speculation/draft.hpp"
#include "16_server/structured/token_trie.hpp"

namespace t2t {

struct ServedModel {
  const Session& session;
  std::string name;                             // under which clients ask for it
  std::optional<ChatTemplate> chat;             // none: the model can only continue texts
  std::string system;                           // of a conversation without its own; may be empty
  std::string note;                             // on the chat template, for the server's operator
  std::vector<int> stop_tokens;                 // ids that end an answer
  std::size_t max_drafts = 0;                   // tokens to draft for each step, at most
  std::shared_ptr<const TokenTrie> vocabulary;  // for answers in JSON
  /// Makes the drafter of a sequence of up to S tokens.
  std::function<Drafter(std::size_t S)> make_drafter = [](std::size_t) { return lookup_drafter(); };
};

/// The session must outlive it. The name is the file's, without folder and extension.
ServedModel served_model(const Session& session);

/// From now on, the drafts come from this model, for sequences of up to `context` tokens; it must
/// outlive the served model. A sequence's caches are made when it first asks for a draft. Throws
/// std::invalid_argument if the two models' tokens differ.
void use_drafter(ServedModel& served, const Session& drafter, std::size_t context);

}  // namespace t2t
