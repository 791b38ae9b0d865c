// Writes the traces that ./learn locate compares, one of each text, into the folder it runs in:
//
//   trace_texts MODEL FOLDER STEPS TEXT …     FOLDER/tokens, FOLDER/at_0/layer_0_q.npy …
//
// Each text has a FOLDER, STEPS and TEXT of its own. With STEPS 0 a text goes through the model at
// once. Otherwise its last STEPS tokens follow one at a time: at_36/ has the trace of the call that
// begins at token 36. With "ids" for STEPS, TEXT is a list of ids. The file told grows
// by a line for each operation, which shows that the program goes on.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/check/trace_file.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "files/files.hpp"
#include "utf8_start.hpp"

using namespace t2t;
namespace fs = std::filesystem;

static Trace told_trace_to(const fs::path& folder) {
  return [folder, write = trace_to(folder)](Part part, std::size_t layer, ConstMatrix value) {
    write(part, layer, value);
    std::ofstream("told", std::ios::app)
        << folder.string() << ' ' << trace_name(part, layer) << '\n';
  };
}

/// A line for each token: its id, and its text as far as that can be shown.
static void write_tokens(const Bpe& bpe, std::span<const int> ids, const fs::path& path) {
  std::string lines;
  for (const int id : ids) lines += fmt::format("{} {}\n", id, printable(bpe.bytes(id)));
  write_file(path, lines);
}

static void write_traces(const Session& session, std::span<const int> ids, std::size_t steps,
                         const fs::path& folder) {
  const std::size_t T = ids.size(), before = steps == 0 ? 0 : T - std::min(steps, T - 1);
  const std::size_t count = steps == 0 ? T : 1;
  ModelState state =
      steps == 0 ? session.make_state(session.model, T, {.chunk = T}) : session.state(T);
  Tensor<1> logits = empty(session.config().V);  // [V]
  if (before > 0) forward(session.model, state, ids.first(before), row(logits));
  for (std::size_t at = before; at < T; at += count)
    forward(session.model, state, ids.subspan(at, count), row(logits),
            told_trace_to(folder / fmt::format("at_{}", at)));
}

static void run(std::span<char*> words) {
  if (words.size() % 3 != 1) throw std::invalid_argument("wanted MODEL, then FOLDER STEPS TEXT");
  const Session session = make_session(open_model(words[0]));
  for (std::size_t i = 1; i < words.size(); i += 3) {
    const fs::path folder = words[i];
    const std::string steps = words[i + 1], text = words[i + 2];
    std::vector<int> ids = steps == "ids" ? parse_ids(text, session.config().V)
                                          : session.prompt(text, SpecialTokens::as_tokens);
    // A model may have been made for shorter texts.
    ids.resize(std::min(ids.size(), session.config().T_max));
    fs::create_directories(folder);
    write_tokens(session.bpe, ids, folder / "tokens");
    write_traces(session, ids, steps == "ids" ? 0 : std::stoul(steps), folder);
  }
}

int main(int argc, char** argv) {
  try {
    run({argv + 1, std::size_t(argc - 1)});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
