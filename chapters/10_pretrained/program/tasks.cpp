#include "10_pretrained/program/tasks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "09_language_model/program/sampling_flags.hpp"
#include "10_pretrained/chat/show_chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/check/show_speed.hpp"
#include "10_pretrained/check/show_trace.hpp"
#include "10_pretrained/model/export_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "10_pretrained/program/show_file.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"

namespace t2t {

static SpecialTokens special_tokens(const Flags& flags) {
  return flags.special ? SpecialTokens::as_tokens : SpecialTokens::as_text;
}

static std::vector<int> prompt_ids(const Session& session, const Program& program,
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

static Generation generation_of(const Session& session, const Flags& flags) {
  return {.most = flags.tokens, .stop_tokens = session.bpe.ends(), .sampling = flags.sampling};
}

/// Returns 1 when two traces differ, as diff does.
static int compare(const Flags& flags) {
  std::vector<std::string> folders = flags.compare;
  if (!flags.with.empty()) folders.push_back(flags.with);
  if (folders.size() != 2)
    throw std::invalid_argument(
        fmt::format("--compare: wanted two folders, got {}",
                    folders.size() == 1 ? "one" : std::to_string(folders.size())));
  return show_comparison(compare_traces(folders[0], folders[1])) ? 0 : 1;
}

static int list_file(const Flags& flags) {
  const GgufFile file = open_model(flags.model);
  show_metadata(file);
  show_tensors(file);
  return 0;
}

static int tokenize(const Program& program, const Flags& flags) {
  const Bpe bpe = read_tokenizer(open_model(flags.model));
  const std::vector<int> ids = program.given("tokenize")
                                   ? bpe.encode(flags.tokenize, special_tokens(flags))
                                   : file_ids(bpe, flags.tokenize_file, special_tokens(flags));
  fmt::print("[{}]\n", fmt::join(ids, ", "));
  return 0;
}

static int tell_perplexity(const Flags& flags) {
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

static int tell_perplexity_by_position(const Program& program, const Flags& flags) {
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

static int chat(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  Random random(program.seed());
  const std::string system =
      program.given("system") ? flags.system : default_system_prompt(session.file);
  const std::size_t context = std::min(flags.context, session.config().T_max);
  const ChatOptions options = {system, generation_of(session, flags), context,
                               chat_style(session.file)};
  return converse(session, options, random) ? 0 : 1;
}

static int bench(const Flags& flags) {
  show_speed(open_session(flags), 512, 128);
  return 0;
}

/// A trace may hold NaN, since it serves to find it; a result may not.
static void expect_finite(const Tensor<1>& logits, const std::string& model) {
  for (std::size_t v = 0; v < logits.size(); ++v)
    if (!std::isfinite(logits(v)))
      throw std::runtime_error(
          fmt::format("{}: wanted logits that are finite numbers, got {} for token {}; --trace and "
                      "--compare find where they begin",
                      model, logits(v), v));
}

/// Runs a prompt and writes its last logits, or all its parts, or both.
static int write_files(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  const std::vector<int> ids = prompt_ids(session, program, flags, "The capital of France");
  Tensor<1> logits = empty(session.config().V);
  if (!flags.trace.empty()) {
    write_trace(session, ids, flags.trace, row(logits));
  } else {
    ModelState state = session.state(ids.size());
    forward(session.model, state, ids, row(logits));
  }
  if (!flags.logits.empty()) {
    expect_finite(logits, flags.model);
    save_npy(flags.logits, logits);
  }
  program.save("ids", ids);
  fmt::print("{} tokens: [{}]\n", ids.size(), fmt::join(ids, ", "));
  return 0;
}

/// The model and a prompt as one file for whole_model.cpp.
static int write_export(const Program& program, const Flags& flags) {
  const Session session = open_session(flags);
  const std::vector<int> ids = prompt_ids(session, program, flags, "The capital of France is");
  const std::string bytes = exported(session.model, session.bpe, ids);
  write_file(flags.export_to, bytes);
  fmt::print("{}: {} and {} tokens of prompt\n", printable_lines(flags.export_to),
             bytes_text(double(bytes.size())), ids.size());
  return 0;
}

/// Prints a prompt and continues it.
static int go_on(const Program& program, const Flags& flags) {
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

TaskTable pretrained_tasks(const Program& program, Flags& flags, const Task& tour,
                           const std::vector<std::string>& of_model) {
  const auto of_a_model = joined({"model", "adapter", "pairing", "rope-scaling"}, of_model);
  const auto with_model = [&](const std::vector<std::string>& more) {
    return joined(of_a_model, more);
  };
  const std::vector<std::string> said = joined({"tokens", "seed"}, sampling_flags());
  const auto to_go_on = with_model(joined(said, {"save"}));
  const auto written = with_model({"prompt", "ids", "special", "save"});
  const auto go_on_now = [&] { return go_on(program, flags); };
  const auto write = [&] { return write_files(program, flags); };
  const auto tokens = [&] { return tokenize(program, flags); };
  return {
      {
          {"chat", with_model(joined(said, {"system", "context"})),
           [&] { return chat(program, flags); }},
          {"tokenize", {"model", "special"}, tokens},
          {"tokenize-file", {"model", "special"}, tokens},
          {"perplexity", with_model({"window"}), [&] { return tell_perplexity(flags); }},
          {"perplexity-by-position", with_model({"window", "tokens", "alone"}),
           [&] { return tell_perplexity_by_position(program, flags); }},
          {"compare", {"with"}, [&] { return compare(flags); }},
          {"bench", of_a_model, [&] { return bench(flags); }},
          {"info", {"model"}, [&] { return list_file(flags); }},
          {"export", with_model({"prompt", "ids", "special"}),
           [&] { return write_export(program, flags); }},
          {"logits", joined(written, {"trace"}), write},
          {"trace", written, write},
          {"prompt", joined(to_go_on, {"special"}), go_on_now},
          {"ids", to_go_on, go_on_now},
          tour,
          {"", joined(to_go_on, {"special"}), go_on_now},
      },
      {{"prompt", "ids"}},
      [&] { expect_flags(program, flags); },
  };
}

}  // namespace t2t
