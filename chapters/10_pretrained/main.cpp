// Loads a real model into the reader's own block and lets it talk; checks it, measures it, and
// finds where another implementation parts from it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <limits>

#include "10_pretrained/flags.hpp"
#include "10_pretrained/perplexity.hpp"
#include "10_pretrained/session.hpp"
#include "10_pretrained/show_chat.hpp"
#include "10_pretrained/show_file.hpp"
#include "10_pretrained/show_speed.hpp"
#include "10_pretrained/show_tour.hpp"
#include "10_pretrained/show_trace.hpp"
#include "10_pretrained/tiny_model.hpp"
#include "files.hpp"

using namespace t2t;

static GgufFile open_model(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path +
                             ": there is no such file; ./learn weights fetches the model "
                             "that this chapter runs, or --model names another");
  return GgufFile::open(path);
}

static std::vector<int> prompt_ids(const Session& session, const Flags& flags,
                                   const std::string& fallback) {
  if (!flags.ids.empty()) return parse_ids(flags.ids, session.config().V);
  const std::string& text = flags.has_prompt ? flags.prompt : fallback;
  std::vector<int> ids =
      session.prompt(text, flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text);
  if (ids.empty()) throw std::invalid_argument("--prompt: wanted at least one token, got none");
  if (ids.size() > session.config().T_max)
    throw std::invalid_argument(fmt::format("--prompt: wanted at most T_max = {} tokens, got {}",
                                            session.config().T_max, ids.size()));
  return ids;
}

/// Goes on from a prompt. The prompt is printed first, so that the text reads on.
static void go_on(const Session& session, const std::vector<int>& ids, const Generation& generation,
                  Random& random) {
  ModelState state(session.config(),
                   std::min(session.config().T_max, ids.size() + generation.most));
  fmt::print("{}", without_controls(session.bpe.decode(ids)));
  std::fflush(stdout);
  const Spoken spoken = speak(session, state, ids, generation, random);
  fmt::print(stderr, "  ({})\n", speed_text(spoken));
  end_if_interrupted(spoken);
}

/// The ids of a text file; what is wrong with it is told with its name.
static std::vector<int> file_ids(const Bpe& bpe, const std::string& path,
                                 SpecialTokens special = SpecialTokens::as_text) {
  const std::string text = read_file(path);
  expect_utf8(path, text);
  try {
    return bpe.encode(text, special);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
}

static void tell_perplexity(const Session& session, const std::vector<int>& ids,
                            std::size_t window) {
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  const Perplexity result = perplexity_of(ids, session.model, window, [&](const Perplexity& p) {
    if (on_terminal) fmt::print(stderr, "\r  {} tokens, {:.3f} ", p.scored, p.perplexity);
  });
  if (on_terminal) fmt::print(stderr, "\r\033[K");
  fmt::print("{} tokens scored, perplexity {:.4f}\n", result.scored, result.perplexity);
}

/// Without any flags, and perhaps without the weights.
static void tour(const Program& program, const Flags& flags) {
  if (std::filesystem::exists(flags.model) || flags.model != default_model()) {
    Session session = make_session(open_model(flags.model));
    show_tour(session, program.seed());
    return;
  }
  print_paragraph(fmt::format(
      "The real model's file is not here ({}): its answers and figures are left out. ./learn "
      "weights fetches it. In its place, a tiny model of random numbers, written as a GGUF file "
      "and read back: it says nothing, by the same code.",
      flags.model));
  Random random(program.seed());
  const Config config = tiny_config();
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  Session session = make_session(GgufFile("tiny.gguf", bytes));
  // Bytes at random are no text: only letters and spaces may be said.
  session.filter = [](Row logits) {
    for (std::size_t v = 0; v < logits.size(); ++v)
      if (v != ' ' && (v < 'a' || v > 'z')) logits[v] = -std::numeric_limits<float>::infinity();
  };
  show_tour(session, program.seed());
}

/// Returns the exit status: 1 where two traces part, as diff has it.
static int run(const Program& program, Flags& flags, bool no_flags) {
  expect_sampling(flags.sampling);
  expect_one_task(flags);
  if (!flags.compare.empty()) {
    return show_comparison(compare_traces(flags.compare, flags.with)) ? 0 : 1;
  }
  if (no_flags) {
    tour(program, flags);
    return 0;
  }

  GgufFile file = open_model(flags.model);
  if (flags.info) {
    show_metadata(file);
    show_tensors(file);
    return 0;
  }
  Bpe bpe = read_tokenizer(file);
  if (flags.has_tokenize || !flags.tokenize_file.empty()) {
    const SpecialTokens special = flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text;
    const std::vector<int> ids = flags.has_tokenize ? bpe.encode(flags.tokenize, special)
                                                    : file_ids(bpe, flags.tokenize_file, special);
    fmt::print("[{}]\n", fmt::join(ids, ", "));
    return 0;
  }
  // A text that can't be read is refused before the weights take their time and memory.
  std::vector<int> text;
  if (!flags.perplexity.empty()) {
    text = file_ids(bpe, flags.perplexity);
    if (text.size() < 2)
      throw std::invalid_argument(fmt::format("{}: wanted at least 2 tokens of text, got {}",
                                              flags.perplexity, text.size()));
  }

  Session session(std::move(file), std::move(bpe));
  if (flags.pairing == "halves") session.turn_in(Pairing::halves);
  Random random(program.seed());
  Generation generation{.most = flags.tokens, .sampling = flags.sampling};
  if (session.bpe.eos()) generation.stops = {*session.bpe.eos()};
  if (flags.chat) {
    const std::string system =
        flags.system.empty() ? default_system_prompt(session.file) : flags.system;
    converse(session, {system, generation, std::min(flags.context, session.config().T_max)},
             random);
  } else if (!flags.perplexity.empty()) {
    tell_perplexity(session, text, flags.window);
  } else if (flags.bench) {
    show_speed(session, 512, 128);
  } else if (!flags.logits.empty() || !flags.trace.empty()) {
    const std::vector<int> ids = prompt_ids(session, flags, "The capital of France");
    Tensor<1> logits = empty(session.config().V);
    if (!flags.trace.empty()) {
      write_trace(session, ids, flags.trace, row(logits));
    } else {
      ModelState state(session.config(), ids.size());
      forward(session.model, state, ids, row(logits));
    }
    if (!flags.logits.empty()) save_npy(flags.logits, logits);
    fmt::print("{} tokens: [{}]\n", ids.size(), fmt::join(ids, ", "));
  } else {
    go_on(session, prompt_ids(session, flags, "The capital of France is"), generation, random);
  }
  return 0;
}

int main(int argc, char** argv) {
  Flags flags;
  Program program("10_pretrained",
                  "A real language model, read from its file into the block of chapter 08: it "
                  "talks, and is checked. Without flags: a short tour.");
  add_flags(program, flags);
  std::vector<std::string> words = arguments(argc, argv, flags);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  bool no_flags = true;
  for (std::size_t i = 1; i < words.size(); ++i)
    no_flags = no_flags && (words[i - 1] == "--model" || words[i - 1] == "--seed" ||
                            words[i].starts_with("--model") || words[i].starts_with("--seed"));
  int status = 0;
  const int failed = program.run(int(pointers.size()), pointers.data(),
                                 [&] { status = run(program, flags, no_flags); });
  return failed ? failed : status;
}
