#include "15_serving/api/served_model.hpp"

#include <filesystem>

#include "utf8_start.hpp"

namespace t2t {

ServedModel served_model(const Session& session) {
  ServedModel served{.session = session,
                     .name = printable(std::filesystem::path(session.file.name()).stem().string()),
                     .chat = {},
                     .system = {},
                     .stops = {},
                     .drafts = 0,
                     .vocabulary = std::make_shared<const TokenTrie>(text_tokens(session.bpe))};
  if (session.file.metadata().has("tokenizer.chat_template")) {
    served.system = default_system_prompt(session.file);
    served.chat.emplace(session.bpe);
    served.stops.push_back(served.chat->end());
  }
  const std::optional<int> eos = session.bpe.eos();
  if (eos && (served.stops.empty() || served.stops[0] != *eos)) served.stops.push_back(*eos);
  return served;
}

}  // namespace t2t
