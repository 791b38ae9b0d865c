#include "10_pretrained/chat/session.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "program/stop_asked.hpp"
#include "timing/measure.hpp"

namespace t2t {

Session::Session(GgufFile opened, Bpe tokenizer, const MakeWeight& make)
    : Session{load_in_time(opened, tokenizer, make),  // braces: first this, then the moves
              std::move(opened), std::move(tokenizer)} {}

Session::Session(GgufFile opened, Bpe tokenizer, Model model)
    : Session{Loaded{std::move(model), 0}, std::move(opened), std::move(tokenizer)} {}

Session::Session(Loaded loaded, GgufFile&& opened, Bpe&& tokenizer)
    : file(std::move(opened)),
      bpe(std::move(tokenizer)),
      model(std::move(loaded.model)),
      load_seconds(loaded.seconds) {}

// [load]
/// A tokenizer of another model is refused before the weights take time and memory.
Model Session::load(const GgufFile& file, const Bpe& bpe, const MakeWeight& make) {
  const Config config = read_config(file);
  if (bpe.size() != config.V)
    throw std::runtime_error(fmt::format("{}: {} tokens in the tokenizer, {} in the model",
                                         file.name(), bpe.size(), config.V));
  return Model(config, read_weights(file, config, make));
}
// [/load]

Session::Loaded Session::load_in_time(const GgufFile& file, const Bpe& bpe,
                                      const MakeWeight& make) {
  const auto began = std::chrono::steady_clock::now();
  Model model = load(file, bpe, make);
  return {std::move(model), seconds_since(began)};
}

void Session::rotate_in(Pairing pairing) {
  Config config = model.config();
  config.block.pairing = pairing;
  for (BlockSettings& settings : config.layers) settings.pairing = pairing;
  model = Model(config, std::move(model).release());
}

std::vector<int> Session::prompt(std::string_view text, SpecialTokens special) const {
  std::vector<int> ids = bpe.encode(text, special);
  if (bpe.first()) ids.insert(ids.begin(), *bpe.first());
  return ids;
}

Session make_session(GgufFile file) {
  Bpe bpe = read_tokenizer(file);
  return Session(std::move(file), std::move(bpe));
}

Spoken speak(const Session& session, ModelState& state, std::span<const int> prompt,
             const Generation& generation, Random& random) {
  // Ctrl-C stops an answer and not the program; a second one ends the program.
  const StopAsked interruptible{SIGINT};
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Clock::time_point first = start;
  StreamingDecoder decoder(session.bpe);
  Spoken spoken = {prompt.size(), {}, 0, 0, {}};
  spoken.ending = generate(session.model, state, prompt, generation, random, [&](int id) {
    if (spoken.ids.empty()) first = Clock::now();
    spoken.ids.push_back(id);
    fmt::print("{}", without_controls(decoder.push(id)));
    std::fflush(stdout);
    return !StopAsked::asked();
  });
  // A character that the end cut off is shown as U+FFFD, unless Ctrl-C was the end.
  fmt::print("{}\n", spoken.ending == Ending::caller ? "" : without_controls(decoder.finish()));
  std::fflush(stdout);
  if (spoken.ids.empty()) first = Clock::now();
  spoken.prompt_seconds = std::chrono::duration<double>(first - start).count();
  spoken.seconds = seconds_since(first);
  return spoken;
}

std::string speed_text(const Spoken& spoken) {
  std::string text = fmt::format("{} tokens read at {:.0f}/s", spoken.prompt,
                                 double(spoken.prompt) / spoken.prompt_seconds);
  const std::size_t said = spoken.ids.size();
  if (said > 1)
    text += fmt::format(", {} generated at {:.1f}/s", said, double(said - 1) / spoken.seconds);
  return text + fmt::format("; ended by {}", spoken.ending == Ending::caller
                                                 ? "Ctrl-C"
                                                 : ending_text(spoken.ending));
}

void end_if_interrupted(const Spoken& spoken) {
  if (spoken.ending == Ending::caller) std::raise(SIGINT);
}

}  // namespace t2t
