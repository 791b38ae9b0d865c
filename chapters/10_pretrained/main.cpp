// Loads a real model into the reader's own block and lets it talk; checks it, measures it, and
// finds where another implementation parts from it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <limits>

#include "10_pretrained/perplexity.hpp"
#include "10_pretrained/session.hpp"
#include "10_pretrained/show_chat.hpp"
#include "10_pretrained/show_file.hpp"
#include "10_pretrained/show_speed.hpp"
#include "10_pretrained/show_tour.hpp"
#include "10_pretrained/show_trace.hpp"
#include "10_pretrained/tiny_model.hpp"
#include "files.hpp"
#include "program.hpp"

using namespace t2t;

static std::string default_model() {
  const char* path = std::getenv("T2T_WEIGHTS");
  return path ? path : T2T_WEIGHTS;
}

/// What the flags say.
struct Flags {
  std::string model = default_model(), prompt, ids, system, pairing = "neighbours";
  std::string tokenize, tokenize_file, logits, perplexity, trace, compare, with;
  std::size_t tokens = 64, window = 512, context = 2048, top_k = 0;
  bool chat = false, special = false, bench = false, info = false;
  Sampling sampling = {.temperature = 0};
  bool has_prompt = false, has_tokenize = false;  // "" may be given too
};

static void add_flags(Program& program, Flags& flags) {
  program.word("model", flags.model, "a GGUF file of the llama architecture");
  program.word("prompt", flags.prompt, "text to go on from");
  program.word("ids", flags.ids, "the same as token ids: 1,2,3");
  program.yes("chat", flags.chat, "talk: questions from the keyboard or a pipe, a line each");
  program.word("system", flags.system, "system prompt of a chat, in place of the model's own");
  program.size("tokens", flags.tokens, "to say at most; in a chat, for each answer");
  program.size("context", flags.context, "tokens of a chat to remember");
  program.number("temperature", flags.sampling.temperature, "of sampling; 0 is greedy");
  program.size("top-k", flags.top_k, "tokens to keep; 0, as it is, keeps all");
  program.number("top-p", flags.sampling.top_p, "probability to keep");
  program.number("min-p", flags.sampling.min_p, "share of the likeliest's to ask for");
  program.word("tokenize", flags.tokenize, "print this text's ids, and stop");
  program.word("tokenize-file", flags.tokenize_file, "the same of a file");
  program.yes("special", flags.special, "read <|im_start|> and such in texts as tokens");
  program.word("logits", flags.logits, "file.npy for the last position's [V]");
  program.word("perplexity", flags.perplexity, "a text file to be surprised by");
  program.size("window", flags.window, "tokens that are read together for a perplexity");
  program.word("trace", flags.trace, "folder for every part of every layer, as .npy");
  program.word("compare", flags.compare, "two folders of traces: where do they part?");
  program.word("with", flags.with, "the second of them");
  program.word("pairing", flags.pairing, "neighbours, or halves, which these files do not have");
  program.yes("bench", flags.bench, "prefill of 512 tokens and decode of 128, timed");
  program.yes("info", flags.info, "metadata and tensors of the file");
}

/// --compare DIR DIR as --compare DIR --with DIR, and which flags are there.
static std::vector<std::string> arguments(int argc, char** argv, Flags& flags) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--compare" && i + 2 < words.size() && !words[i + 2].starts_with("-"))
      words.insert(words.begin() + long(i) + 2, "--with");
    if (words[i].starts_with("--prompt")) flags.has_prompt = true;
    if (words[i] == "--tokenize" || words[i].starts_with("--tokenize=")) flags.has_tokenize = true;
  }
  return words;
}

static std::vector<int> parse_ids(const std::string& text, std::size_t V) {
  std::vector<int> ids;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    std::size_t used = 0;
    long long id = -1;
    try {
      id = std::stoll(word, &used);
    } catch (const std::exception&) {
    }
    if (used != word.size() || id < 0 || std::size_t(id) >= V)
      throw std::invalid_argument(
          fmt::format("--ids: wanted whole numbers below {}, as in 1,2,3, got {}", V, word));
    ids.push_back(int(id));
    at = end + 1;
  }
  return ids;
}

static GgufFile open_model(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path +
                             ": there is no such file; ./learn weights fetches the model "
                             "that this chapter runs, or --model names another");
  return GgufFile::open(path);
}

static std::vector<int> prompt_ids(const Session& session, const Flags& flags,
                                   const std::string& fallback) {
  if (!flags.ids.empty()) return parse_ids(flags.ids, session.config.V);
  const std::string& text = flags.has_prompt ? flags.prompt : fallback;
  std::vector<int> ids =
      session.prompt(text, flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text);
  if (ids.empty()) throw std::invalid_argument("--prompt: wanted at least one token, got none");
  if (ids.size() > session.config.T_max)
    throw std::invalid_argument(fmt::format("--prompt: wanted at most T_max = {} tokens, got {}",
                                            session.config.T_max, ids.size()));
  return ids;
}

/// Goes on from a prompt. The prompt is printed first, so that the text reads on.
static void go_on(const Session& session, const std::vector<int>& ids, const Generation& generation,
                  Random& random) {
  ModelState state =
      model_state(session.config, std::min(session.config.T_max, ids.size() + generation.most));
  fmt::print("{}", printable_part(session.bpe.decode(ids)));
  std::fflush(stdout);
  const Spoken spoken = speak(session, state, ids, generation, random);
  fmt::print(stderr, "  ({})\n", speed_text(spoken));
}

static void tell_perplexity(const Session& session, const Flags& flags) {
  const std::vector<int> ids = session.bpe.encode(read_file(flags.perplexity));
  if (ids.size() < 2)
    throw std::invalid_argument(flags.perplexity + ": wanted at least 2 tokens of text, got " +
                                std::to_string(ids.size()));
  const Perplexity result =
      perplexity_of(ids, session.config, session.weights, flags.window, [&](const Perplexity& p) {
        fmt::print(stderr, "\r  {} tokens, {:.3f} ", p.scored, p.perplexity);
      });
  fmt::print(stderr, "\r\033[K");
  fmt::print("{} tokens scored, perplexity {:.4f}\n", result.scored, result.perplexity);
}

/// Without any flags, and perhaps without the weights.
static void tour(const Program& program, const Flags& flags) {
  if (std::filesystem::exists(flags.model) || flags.model != default_model()) {
    Session session(open_model(flags.model));
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
  Session session(GgufFile("tiny.gguf", bytes));
  // Bytes at random are no text: only letters and spaces may be said.
  session.filter = [](Row logits) {
    for (std::size_t v = 0; v < logits.size(); ++v)
      if (v != ' ' && (v < 'a' || v > 'z')) logits[v] = -std::numeric_limits<float>::infinity();
  };
  show_tour(session, program.seed());
}

static void run(const Program& program, Flags& flags, bool no_flags) {
  flags.sampling.top_k = flags.top_k;
  expect_sampling(flags.sampling);
  if (flags.pairing != "neighbours" && flags.pairing != "halves")
    throw std::invalid_argument("--pairing: wanted neighbours or halves, got " + flags.pairing);
  if (!flags.compare.empty() || !flags.with.empty()) {
    if (flags.compare.empty() || flags.with.empty())
      throw std::invalid_argument("--compare: wanted two folders, got one");
    show_comparison(compare_traces(flags.compare, flags.with));
    return;
  }
  if (no_flags) return tour(program, flags);

  GgufFile file = open_model(flags.model);
  if (flags.info) {
    show_metadata(file);
    show_tensors(file);
    return;
  }
  if (flags.has_tokenize || !flags.tokenize_file.empty()) {
    const std::string text = flags.has_tokenize ? flags.tokenize : read_file(flags.tokenize_file);
    const SpecialTokens special = flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text;
    fmt::print("[{}]\n", fmt::join(read_tokenizer(file).encode(text, special), ", "));
    return;
  }

  Session session(std::move(file));
  if (flags.pairing == "halves") session.config.pairing = Pairing::halves;
  Random random(program.seed());
  Generation generation{.most = flags.tokens, .sampling = flags.sampling};
  if (session.bpe.eos()) generation.stops = {*session.bpe.eos()};
  if (flags.chat) {
    const std::string system =
        flags.system.empty() ? default_system_prompt(session.file) : flags.system;
    converse(session, {system, generation, std::min(flags.context, session.config.T_max)}, random);
  } else if (!flags.perplexity.empty()) {
    tell_perplexity(session, flags);
  } else if (flags.bench) {
    show_speed(session, 512, 128);
  } else if (!flags.logits.empty() || !flags.trace.empty()) {
    const std::vector<int> ids = prompt_ids(session, flags, "The capital of France");
    Tensor<1> logits = empty(session.config.V);
    if (!flags.trace.empty()) {
      write_trace(session, ids, flags.trace, row(logits));
    } else {
      ModelState state = model_state(session.config, ids.size());
      forward(session.config, session.weights, state, ids, row(logits));
    }
    if (!flags.logits.empty()) save_npy(flags.logits, logits);
    fmt::print("{} tokens: [{}]\n", ids.size(), fmt::join(ids, ", "));
  } else {
    go_on(session, prompt_ids(session, flags, "The capital of France is"), generation, random);
  }
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
  return program.run(int(pointers.size()), pointers.data(), [&] { run(program, flags, no_flags); });
}
