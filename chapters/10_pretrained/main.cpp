// Loads a real model into the block of chapter 08, chats with it, checks and times it, and finds
// where another implementation first differs from it.
#include <limits>
#include <optional>

#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/program/show_tour.hpp"
#include "10_pretrained/program/tasks.hpp"

using namespace t2t;

/// What is shown when no task is asked for, with or without the weights.
static int tour(const Program& program, const Flags& flags) {
  if (std::filesystem::exists(flags.model) || flags.model != default_model()) {
    Session session = make_session(open_model(flags.model));
    show_tour(session, program.seed());
    return 0;
  }
  print_paragraph(fmt::format(
      "The real model's file is missing ({}); ./learn weights fetches it. A tiny model of random "
      "numbers takes its place: it is written as a GGUF file and read back by the same code, but "
      "its answers are random letters.",
      flags.model));
  Random random(program.seed());
  const Config config = tiny_config();
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  Session session = make_session(GgufFile("tiny.gguf", bytes));
  // Random bytes are not text: only letters and spaces may be generated.
  session.filter = [](Row logits) {
    for (std::size_t v = 0; v < logits.size(); ++v)
      if (v != ' ' && (v < 'a' || v > 'z')) logits[v] = -std::numeric_limits<float>::infinity();
  };
  show_tour(session, program.seed());
  return 0;
}

int main(int argc, char** argv) {
  Flags flags;
  Program program("10_pretrained",
                  "Loads a real language model into the block of chapter 08, chats with it and "
                  "checks it. Without flags: a short tour.");
  add_flags(program, flags);
  return program.run_task(argc, argv, [&] {
    const std::optional<int> status = run_asked_task(program, flags);
    return status ? *status : tour(program, flags);
  });
}
