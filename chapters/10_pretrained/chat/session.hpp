// A loaded model, and text that is printed while it is generated. For main.cpp.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "09_language_model/generate.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/chat/make_state.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "program/print.hpp"

namespace t2t {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Session {
  GgufFile file;
  Bpe bpe;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  Model model;
  double load_seconds = seconds_since(began);
  std::function<void(Row)> filter = {};  // of the logits, in the tour
  MakeState make_state = {};

  Session(GgufFile opened, Bpe tokenizer, const MakeWeight& make = {})
      : file(std::move(opened)), bpe(std::move(tokenizer)), model(load(file, bpe, make)) {}

  const Config& config() const { return model.config(); }
  /// Memory for texts of up to S tokens.
  ModelState state(std::size_t S) const { return make_state(config(), S); }

  /// From here on, q and k are turned in this pairing.
  void turn_in(Pairing pairing) {
    Config config = model.config();
    config.block.pairing = pairing;
    for (BlockSettings& settings : config.layers) settings.pairing = pairing;
    model = Model(config, std::move(model).release());
  }

  /// The ids of a text, after the bos token if the model was trained with one.
  std::vector<int> prompt(std::string_view text, SpecialTokens special) const {
    std::vector<int> ids = bpe.encode(text, special);
    if (bpe.first()) ids.insert(ids.begin(), *bpe.first());
    return ids;
  }
  /// The bytes that generating one token has to read.
  double bytes_a_token() const { return double(bytes(model.weights())); }

 private:
  // [load]
  /// A tokenizer of another model is refused before the weights take time and memory.
  static Model load(const GgufFile& file, const Bpe& bpe, const MakeWeight& make) {
    const Config config = read_config(file);
    if (bpe.size() != config.V)
      throw std::runtime_error(fmt::format("{}: {} tokens in the tokenizer, {} in the model",
                                           file.name(), bpe.size(), config.V));
    return Model(config, read_weights(file, config, make));
  }
  // [/load]
};

inline Session make_session(GgufFile file) {
  Bpe bpe = read_tokenizer(file);
  return Session(std::move(file), std::move(bpe));
}

/// While it exists, Ctrl-C stops an answer and not the program; a second Ctrl-C ends the program.
class Interruptible {
 public:
  Interruptible() : before_(std::signal(SIGINT, note)) { asked_ = 0; }
  ~Interruptible() { std::signal(SIGINT, before_); }
  static bool asked() { return asked_ != 0; }

 private:
  static void note(int) {
    asked_ = 1;
    std::signal(SIGINT, SIG_DFL);
  }
  static inline volatile std::sig_atomic_t asked_ = 0;
  void (*before_)(int);
};

struct Spoken {
  std::size_t prompt;     // number of tokens read
  std::vector<int> ids;   // tokens generated
  double prompt_seconds;  // to the first token
  double seconds;         // after it
  Ending ending;
};

/// Continues the text that the state has seen with the prompt, and prints each token at once.
inline Spoken speak(const Session& session, ModelState& state, std::span<const int> prompt,
                    const Generation& generation, Random& random) {
  const Interruptible interruptible;
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
    return !Interruptible::asked();
  });
  // A character that the end cut off is shown as U+FFFD, unless Ctrl-C was the end.
  fmt::print("{}\n", spoken.ending == Ending::caller ? "" : without_controls(decoder.finish()));
  std::fflush(stdout);
  if (spoken.ids.empty()) first = Clock::now();
  spoken.prompt_seconds = std::chrono::duration<double>(first - start).count();
  spoken.seconds = seconds_since(first);
  return spoken;
}

/// "37 tokens read at 512/s, 9 generated at 61.3/s; ended by a stop token"
inline std::string speed_text(const Spoken& spoken) {
  std::string text = fmt::format("{} tokens read at {:.0f}/s", spoken.prompt,
                                 double(spoken.prompt) / spoken.prompt_seconds);
  const std::size_t said = spoken.ids.size();
  if (said > 1)
    text += fmt::format(", {} generated at {:.1f}/s", said, double(said - 1) / spoken.seconds);
  return text + fmt::format("; ended by {}", spoken.ending == Ending::caller
                                                 ? "Ctrl-C"
                                                 : ending_text(spoken.ending));
}

/// After Ctrl-C, ends the program as if nothing had caught the signal.
inline void end_if_interrupted(const Spoken& spoken) {
  if (spoken.ending == Ending::caller) std::raise(SIGINT);
}

}  // namespace t2t
