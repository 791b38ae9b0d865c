#include "17_fine_tuning/preferences/transcript.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

void append(Transcript& transcript, std::span<const int> ids, bool learned) {
  transcript.ids.insert(transcript.ids.end(), ids.begin(), ids.end());
  transcript.learned.resize(transcript.ids.size(), learned);
}

static void expect_roles(std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const char* wanted = i % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != wanted)
      throw std::invalid_argument(fmt::format("message {}: wanted the role {}, got {}", i + 1,
                                              wanted, printable(messages[i].role)));
  }
  expect(!messages.empty() && messages.size() % 2 == 0, "messages",
         "at least 2, and an answer to each question", messages.size());
}

Transcript transcript_of(std::span<const ChatMessage> messages, const Bpe& bpe,
                         const std::string& system, const ChatStyle& style) {
  expect_roles(messages);
  const ChatTemplate chat(bpe, style);
  const std::vector<int> after = chat.after_answer();  // the end mark, and what stands behind it
  Transcript transcript;
  append(transcript, chat.opening(system), false);
  for (std::size_t i = 0; i < messages.size(); i += 2) {
    append(transcript, chat.question(messages[i].text), false);
    append(transcript, bpe.encode(messages[i + 1].text), true);
    append(transcript, std::span(after).first(1), true);
    const bool last = i + 2 == messages.size();
    if (!last) append(transcript, std::span(after).subspan(1), false);
  }
  return transcript;
}

void fill(Batch& batch, std::span<const Transcript> transcripts) {
  expect(transcripts.size() <= batch.B, "transcripts",
         fmt::format("at most {}, the batch's sequences", batch.B), transcripts.size());
  std::ranges::fill(batch.ids, 0);
  std::ranges::fill(batch.targets, not_learned);
  for (std::size_t b = 0; b < transcripts.size(); ++b) {
    const auto& [ids, learned] = transcripts[b];
    expect(ids.size() >= 2 && ids.size() <= batch.T + 1, "tokens of a transcript",
           fmt::format("2 to {}", batch.T + 1), ids.size());
    expect(learned.size() == ids.size(), "learned, the marks of a transcript",
           fmt::format("{}, one for each token", ids.size()), learned.size());
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      batch.ids[b * batch.T + t] = ids[t];
      if (learned[t + 1]) batch.targets[b * batch.T + t] = ids[t + 1];
    }
  }
}

}  // namespace t2t
