// The program's tasks, one function each. A task opens the model's file, makes its cheap checks
// first, and returns the exit status. For main.cpp.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "10_pretrained/chat/show_chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/check/show_speed.hpp"
#include "10_pretrained/check/show_trace.hpp"
#include "10_pretrained/model/adapter.hpp"
#include "10_pretrained/model/export_model.hpp"
#include "10_pretrained/program/flags.hpp"
#include "10_pretrained/program/show_file.hpp"
#include "program/files.hpp"
#include "program/memory.hpp"

namespace t2t {

inline GgufFile open_model(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path +
                             ": there is no such file; ./learn weights fetches this chapter's "
                             "model, and --model names another one");
  return GgufFile::open(path);
}

inline Session open_session(const Flags& flags, GgufFile file, Bpe bpe) {
  Session session(std::move(file), std::move(bpe), flags.make_weight);
  session.make_state = flags.make_state;
  if (!flags.adapter.empty())
    session.model =
        with_adapter(std::move(session.model), read_adapter(GgufFile::open(flags.adapter)));
  if (flags.pairing == "halves") session.turn_in(Pairing::halves);
  if (!flags.rope_scaling.empty())
    session.model =
        with_long_context(std::move(session.model), parse_long_context(flags.rope_scaling));
  return session;
}
inline Session open_session(const Flags& flags) {
  GgufFile file = open_model(flags.model);
  Bpe bpe = read_tokenizer(file);
  return open_session(flags, std::move(file), std::move(bpe));
}

inline SpecialTokens special_tokens(const Flags& flags) {
  return flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text;
}

/// The ids of a text file. Errors name the file.
inline std::vector<int> file_ids(const Bpe& bpe, const std::string& path, SpecialTokens special) {
  const std::string text = read_file(path);
  expect_utf8(path, text);
  try {
    return bpe.encode(text, special);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
}

inline std::vector<int> prompt_ids(const Session& session, const Program& program,
                                   const Flags& flags, const std::string& fallback) {
  if (program.given("ids")) return parse_ids(flags.ids, session.config().V);
  const std::string& text = program.given("prompt") ? flags.prompt : fallback;
  std::vector<int> ids = session.prompt(text, special_tokens(flags));
  if (ids.empty()) throw std::invalid_argument("--prompt: wanted at least one token, got none");
  if (ids.size() > session.config().T_max)
    throw std::invalid_argument(fmt::format("--prompt: wanted at most T_max = {} tokens, got {}",
                                            session.config().T_max, ids.size()));
  return ids;
}

inline Generation generation_of(const Session& session, const Flags& flags) {
  Generation generation{.most = flags.tokens, .sampling = flags.sampling};
  if (session.bpe.eos()) generation.stops = {*session.bpe.eos()};
  return generation;
}

/// Returns 1 when two traces differ, as diff does.
inline int compare(const Flags& flags) {
  return show_comparison(compare_traces(flags.compare[0], flags.compare[1])) ? 0 : 1;
}

inline int list_file(const Flags& flags) {
  const GgufFile file = open_model(flags.model);
  show_metadata(file);
  show_tensors(file);
  return 0;
}

inline int tokenize(const Program& program, const Flags& flags) {
  const Bpe bpe = read_tokenizer(open_model(flags.model));
  const std::vector<int> ids = program.given("tokenize")
                                   ? bpe.encode(flags.tokenize, special_tokens(flags))
                                   : file_ids(bpe, flags.tokenize_file, special_tokens(flags));
  fmt::print("[{}]\n", fmt::join(ids, ", "));
  return 0;
}

/// A text file's ids, read before the weights take their time and memory.
inline std::vector<int> ids_to_score(const Bpe& bpe, const std::string& path) {
  const std::vector<int> ids = file_ids(bpe, path, SpecialTokens::as_text);
  if (ids.size() < 2)
    throw std::invalid_argument(
        fmt::format("{}: wanted at least 2 tokens of text, got {}", path, ids.size()));
  return ids;
}

/// A line of progress on a terminal, written over by the next one.
inline void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K{}", text);
}

inline int tell_perplexity(const Flags& flags) {
  GgufFile file = open_model(flags.model);
  Bpe bpe = read_tokenizer(file);
  const std::vector<int> ids = ids_to_score(bpe, flags.perplexity);
  const Session session = open_session(flags, std::move(file), std::move(bpe));
  const Perplexity result = perplexity_of(
      ids, session.model, flags.window,
      [&](const Perplexity& p) {
        show_progress(fmt::format("  {} tokens, {:.3f} ", p.scored, p.perplexity));
      },
      session.make_state);
  show_progress("");
  fmt::print("{} tokens scored, perplexity {:.4f}\n", result.scored, result.perplexity);
  return 0;
}

inline int tell_perplexity_by_position(const Program& program, const Flags& flags) {
  GgufFile file = open_model(flags.model);
  Bpe bpe = read_tokenizer(file);
  std::vector<int> ids = ids_to_score(bpe, flags.by_position);
  if (program.given("tokens")) ids.resize(std::min(ids.size(), flags.tokens));
  const Session session = open_session(flags, std::move(file), std::move(bpe));
  const auto buckets = perplexity_by_position(
      ids, session.model, flags.window, flags.alone ? Before::own_bucket : Before::whole_text,
      [&](std::size_t read) {
        show_progress(fmt::format("  {} of {} tokens read ", read, ids.size()));
      },
      session.make_state);
  show_progress("");
  Table table({">from", ">to", ">perplexity"});
  for (const AtPositions& bucket : buckets)
    table.add({with_commas(bucket.from), with_commas(bucket.to - 1),
               fmt::format("{:.2f}", bucket.perplexity)});
  table.print();
  return 0;
}

inline int chat(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  Random random(program.seed());
  const std::string system =
      flags.system.empty() ? default_system_prompt(session.file) : flags.system;
  const std::size_t context = std::min(flags.context, session.config().T_max);
  return converse(session, {system, generation_of(session, flags), context}, random) ? 0 : 1;
}

inline int bench(const Flags& flags) {
  show_speed(open_session(flags), 512, 128);
  return 0;
}

/// Runs a prompt and writes its last logits, or all its parts, or both.
inline int write_files(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  const std::vector<int> ids = prompt_ids(session, program, flags, "The capital of France");
  Tensor<1> logits = empty(session.config().V);
  if (!flags.trace.empty()) {
    write_trace(session, ids, flags.trace, row(logits));
  } else {
    ModelState state = session.state(ids.size());
    forward(session.model, state, ids, row(logits));
  }
  if (!flags.logits.empty()) save_npy(flags.logits, logits);
  program.save("ids", ids);
  fmt::print("{} tokens: [{}]\n", ids.size(), fmt::join(ids, ", "));
  return 0;
}

/// The model and a prompt as one file for whole_model.cpp.
inline int write_export(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  const std::vector<int> ids = prompt_ids(session, program, flags, "The capital of France is");
  const std::string bytes = exported(session.model, session.bpe, ids);
  write_file(flags.export_to, bytes);
  fmt::print("{}: {} and {} tokens of prompt\n", flags.export_to, bytes_text(double(bytes.size())),
             ids.size());
  return 0;
}

/// Prints a prompt and continues it.
inline int go_on(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  const std::vector<int> ids = prompt_ids(session, program, flags, "The capital of France is");
  const Generation generation = generation_of(session, flags);
  ModelState state = session.state(std::min(session.config().T_max, ids.size() + generation.most));
  fmt::print("{}", without_controls(session.bpe.decode(ids)));
  std::fflush(stdout);
  Random random(program.seed());
  const Spoken spoken = speak(session, state, ids, generation, random);
  fmt::print(stderr, "  ({})\n", speed_text(spoken));
  program.save("ids", ids);
  program.save("said", spoken.ids);
  end_if_interrupted(spoken);
  return 0;
}

/// Runs the task that the flags ask for, if any, and returns the exit status.
inline std::optional<int> run_asked_task(const Program& program, Flags& flags) {
  if (program.given("with")) flags.compare.push_back(flags.with);
  expect_flags(program, flags);
  if (program.given("compare")) return compare(flags);
  if (flags.info) return list_file(flags);
  if (program.given("tokenize") || program.given("tokenize-file")) return tokenize(program, flags);
  if (program.given("perplexity")) return tell_perplexity(flags);
  if (program.given("perplexity-by-position")) return tell_perplexity_by_position(program, flags);
  if (flags.chat) return chat(program, flags);
  if (flags.bench) return bench(flags);
  if (program.given("export")) return write_export(program, flags);
  if (program.given("logits") || program.given("trace")) return write_files(program, flags);
  if (program.given_other_than({"model", "seed", "float", "cache-bits"}))
    return go_on(program, flags);
  return std::nullopt;
}

}  // namespace t2t
