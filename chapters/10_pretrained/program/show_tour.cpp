#include "10_pretrained/program/show_tour.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "10_pretrained/chat/show_chat.hpp"
#include "10_pretrained/check/show_speed.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "10_pretrained/program/show_file.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static void show_tokens(const Session& session) {
  print_section("Text becomes tokens");
  const std::string text = "Tokenizers don't split 2024 as we'd do: naïve 🌊!";
  const std::vector<int> ids = session.bpe.encode(text);
  std::string shown;
  for (const int id : ids) shown += (shown.empty() ? "" : "|") + printable(session.bpe.bytes(id));
  print_paragraph(shown);
  fmt::print("\n");
  const auto has_digit = [&](int id) {
    return session.bpe.bytes(id).find_first_of("0123456789") != std::string::npos;
  };
  print_paragraph(
      fmt::format("{} bytes, {} tokens. A word includes the space before it. 2024 takes {} of the "
                  "tokens, and 🌊, as rare text does, {}.",
                  text.size(), ids.size(), std::ranges::count_if(ids, has_digit),
                  session.bpe.encode(" 🌊").size()));
}

static std::string show_answer(const Session& session, Random& random) {
  print_section("It answers");
  if (!session.file.metadata().has("tokenizer.chat_template")) {
    print_paragraph("The file has no chat template: the model can only continue a text.");
    return {};
  }
  const std::string question = "What is the capital of France?";
  Generation generation{.most = 48, .sampling = {.temperature = 0}, .filter = session.filter};
  const ChatOptions options = {default_system_prompt(session.file), generation,
                               std::min<std::size_t>(256, session.config().T_max),
                               chat_style(session.file)};
  if (!options.style.note.empty()) print_paragraph(options.style.note);
  Conversation conversation(session, options, random);
  fmt::print("  system     {}\n  user       {}\n  assistant  ", without_controls(options.system),
             question);
  return "; the answer: " + speed_text(conversation.ask(question));
}

void show_pairings(Session& session, Random& random) {
  print_section("The same weights, in both pairings");
  Generation generation{.most = 24, .sampling = {.temperature = 0}, .filter = session.filter};
  const std::vector<int> ids =
      session.prompt("Once upon a time, in a village by the sea,", SpecialTokens::as_text);
  const Pairing right = session.config().block.pairing;
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    session.rotate_in(pairing);
    ModelState state(session.config(), ids.size() + generation.most);
    fmt::print("  {}, which is {} for this file:\n  …",
               pairing == Pairing::neighbours ? "neighbours (2i, 2i + 1)" : "halves (i, i + D/2)",
               pairing == right ? "right" : "wrong");
    std::fflush(stdout);
    speak(session, state, ids, generation, random);
    fmt::print("\n");
  }
  session.rotate_in(right);
  print_paragraph(
      "The wrong pairing causes no error: all shapes fit and no value is NaN. --trace and "
      "--compare find the mistake; the page shows how.");
}

static void show(Session& session, std::size_t seed) {
  Random random(seed);
  show_summary(session);
  show_tokens(session);
  const std::string speed = show_answer(session, random);
  show_pairings(session, random);
  show_speed(session, 128, 32);
  print_paragraph(
      fmt::format("The file was loaded in {}{}.", duration_text(session.load_seconds), speed));
  fmt::print("\n");
  print_paragraph(
      "Next: ./learn run 10 --chat starts a chat; --help lists all flags; the "
      "page: docs/10_pretrained.md");
}

int show_tour(const Flags& flags, std::size_t seed) {
  if (std::filesystem::exists(flags.model) || flags.model != default_model()) {
    Session session = open_session(flags);
    show(session, seed);
    return 0;
  }
  print_paragraph(
      fmt::format("The real model's file is missing ({}); ./learn weights fetches it. A tiny model "
                  "with random weights takes its place: it is written as a GGUF file and read back "
                  "by the same code, but its answers are random letters.",
                  flags.model));
  Random random(seed);
  const Config config = tiny_config();
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  Session session = make_session(GgufFile("tiny.gguf", bytes));
  // Random bytes are not text: only letters and spaces may be generated.
  session.filter = [](Row logits) {
    for (std::size_t v = 0; v < logits.size(); ++v)
      if (v != ' ' && (v < 'a' || v > 'z')) logits[v] = -std::numeric_limits<float>::infinity();
  };
  show(session, seed);
  return 0;
}

}  // namespace t2t
