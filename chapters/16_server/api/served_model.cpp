#include "16_server/api/served_model.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "utf8_start.hpp"

namespace t2t {

ServedModel served_model(const Session& session) {
  ServedModel served{.session = session,
                     .name = printable(std::filesystem::path(session.file.name()).stem().string()),
                     .chat = {},
                     .system = {},
                     .note = {},
                     .stop_tokens = session.bpe.ends(),
                     .max_drafts = 0,
                     .vocabulary = std::make_shared<const TokenTrie>(text_tokens(session.bpe))};
  if (session.file.metadata().has("tokenizer.chat_template")) {
    served.system = default_system_prompt(session.file);
    const ChatStyle style = chat_style(session.file);
    served.chat.emplace(session.bpe, style);
    served.note = style.note;
  }
  return served;
}

static bool same_tokens(const Session& a, const Session& b) {
  if (a.config().V != b.config().V || a.bpe.size() != b.bpe.size()) return false;
  for (int id = 0; id < int(a.bpe.size()); ++id)
    if (a.bpe.bytes(id) != b.bpe.bytes(id)) return false;
  return true;
}

void use_drafter(ServedModel& served, const Session& drafter, std::size_t context) {
  if (!same_tokens(drafter, served.session))
    throw std::invalid_argument(printable(drafter.file.name()) +
                                ": wanted the served model's tokens, got others");
  served.make_drafter = [&model = drafter.model, context](std::size_t S) -> Drafter {
    return [&model, S = std::min(S, context), own = Drafter()](std::span<const int> tokens,
                                                               std::size_t k) mutable {
      if (!own) own = model_drafter(model, S);
      return own(tokens, k);
    };
  };
}

}  // namespace t2t
