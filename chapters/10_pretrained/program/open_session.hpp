// Opens what the flags name: a model with its changes, and a text as token ids.
#pragma once

#include <string>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "10_pretrained/program/flags.hpp"

namespace t2t {

GgufFile open_model(const std::string& path);

Session open_session(const Flags& flags, GgufFile file, Bpe bpe);

Session open_session(const Flags& flags);

/// The ids of a text file. Errors name the file.
std::vector<int> file_ids(const Bpe& bpe, const std::string& path, SpecialTokens special);

/// A text file's ids, read before the weights take their time and memory.
std::vector<int> ids_to_score(const Bpe& bpe, const std::string& path);

}  // namespace t2t
