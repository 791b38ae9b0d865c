// What a server must know of its model to turn texts into tokens and back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "15_serving/structured/token_trie.hpp"

namespace t2t {

struct ServedModel {
  const Session& session;
  std::string name;                  // by which clients ask for it
  std::optional<ChatTemplate> chat;  // none: the model can only continue texts
  std::string system;                // of a conversation that brings none; may be empty
  std::vector<int> stops;            // ids that end an answer
  std::size_t drafts = 0;            // tokens that are drafted from the text itself for each step
  std::shared_ptr<const TokenTrie> vocabulary;  // for answers in JSON
};

/// The session must outlive it. The name is the file's, without folder and ending.
ServedModel served_model(const Session& session);

}  // namespace t2t
