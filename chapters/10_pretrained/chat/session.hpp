// A loaded model, and its text, printed while it is generated.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "09_language_model/generate.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/chat/make_state.hpp"
#include "10_pretrained/model/load_model.hpp"

namespace t2t {

/// A file's model and its tokenizer.
struct Session {
  GgufFile file;
  Bpe bpe;
  Model model;
  double load_seconds;                   // time to read the model from the file
  std::function<void(Row)> filter = {};  // of the logits, in the tour
  MakeState make_state = {};

  Session(GgufFile opened, Bpe tokenizer, const MakeWeight& make = {});
  /// With a model that was read from the file otherwise.
  Session(GgufFile opened, Bpe tokenizer, Model model);

  const Config& config() const { return model.config(); }
  /// Memory for sequences of up to S tokens.
  ModelState state(std::size_t S) const { return make_state(model, S); }

  /// From here on, q and k are rotated in this pairing.
  void rotate_in(Pairing pairing);
  /// The ids of a text, after the bos token if the model was trained with one.
  std::vector<int> prompt(std::string_view text, SpecialTokens special) const;
  /// The bytes that generating one token has to read.
  double bytes_a_token() const { return t2t::bytes_a_token(model.weights(), config()); }

 private:
  struct Loaded {
    Model model;
    double seconds;
  };
  Session(Loaded loaded, GgufFile&& opened, Bpe&& tokenizer);
  static Model load(const GgufFile& file, const Bpe& bpe, const MakeWeight& make);
  static Loaded load_in_time(const GgufFile& file, const Bpe& bpe, const MakeWeight& make);
};

Session make_session(GgufFile file);

struct Spoken {
  std::size_t prompt;     // number of tokens read
  std::vector<int> ids;   // tokens generated
  double prompt_seconds;  // to the first token
  double seconds;         // after it
  Ending ending;
};

/// Appends the prompt to the sequence in the state, continues it, and prints each token at once.
Spoken speak(const Session& session, ModelState& state, std::span<const int> prompt,
             const Generation& generation, Random& random);

/// "37 tokens read at 512/s, 9 generated at 61.3/s; ended by a stop token"
std::string speed_text(const Spoken& spoken);

/// After Ctrl-C, ends the program as if nothing had caught the signal.
void end_if_interrupted(const Spoken& spoken);

}  // namespace t2t
