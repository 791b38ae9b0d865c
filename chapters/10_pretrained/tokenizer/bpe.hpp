// A byte-level BPE tokenizer: text to token ids and back, with a model's own vocabulary.
//
// encode first finds special tokens, where they are allowed. The text between them is normalized,
// for models that do so (unicode.hpp), and split into words (pretokenize.hpp); the bytes of each
// word become symbols, and symbols are merged (merges.hpp). Some models use a word that is itself a
// token without merging it. decode joins the bytes of the tokens: decode(encode(text)) is the text,
// normalized or as it was, when the vocabulary has all of its bytes. A token can end inside a
// character, so text that is printed while it is generated goes through StreamingDecoder.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/tokenizer/merges.hpp"
#include "10_pretrained/tokenizer/pretokenize.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

/// What a token is for; the values are those in GGUF files.
enum class TokenKind {
  normal = 1,
  unknown = 2,
  control = 3,  // <|im_start|>: it steers the model, so text becomes it only where asked for
  added = 4,    // always found in text, as one token
  unused = 5,
  byte = 6,  // only in tokenizers that are not byte-level BPE
};

struct BpeTables {
  std::string name;                 // the file, for messages
  std::string pre_tokenizer;        // "smollm"
  std::vector<std::string> tokens;  // [V] in the byte alphabet (byte_alphabet.hpp)
  std::vector<TokenKind> kinds;     // [V]
  std::vector<std::string> merges;  // "Ġ t", in order of rank
  std::optional<int> bos, eos;      // the ids that begin and end a text, where the model has them
  std::optional<bool> bos_first = {};  // whether texts begin with bos; else the pre-tokenizer says
  std::optional<int> eot = {}, eom = {};  // the ids that end a turn and a message, where named
};

/// Whether <|im_start|> in a text is read as a control token. A user's text is always as_text.
enum class SpecialTokens { as_text, as_tokens };

/// Tokens found in texts, the longest where several begin at one place.
class TokenFinder {
 public:
  static constexpr std::size_t most_bytes = 256;  // of a token: bounds the work at each place

  TokenFinder() = default;
  /// Names with their ids, no name twice.
  explicit TokenFinder(std::map<std::string, int> ids);
  struct Found {
    int id;
    std::size_t length;
  };
  /// The longest token that text begins with.
  std::optional<Found> find(std::string_view text) const;

 private:
  struct Token {
    std::string text;
    int id;
    int shorter;  // index of the longest other token that this one begins with, or −1
  };
  std::vector<Token> tokens_;  // sorted by text
};

class Bpe {
 public:
  /// Throws std::runtime_error, naming the file, the token or merge and what is wrong with it.
  explicit Bpe(BpeTables tables);

  /// The ids of a text. Bytes that the vocabulary has no token for are left out; left_out, if
  /// given, is set to their number. Throws std::runtime_error, with the offset, unless text is
  /// UTF-8, and for a word of more than 2^22 bytes.
  std::vector<int> encode(std::string_view text, SpecialTokens special = SpecialTokens::as_text,
                          std::size_t* left_out = nullptr) const;
  /// Throws std::invalid_argument for an id outside the vocabulary.
  std::string decode(std::span<const int> ids) const;
  const std::string& bytes(int id) const;
  TokenKind kind(int id) const;
  /// What a reader sees of these tokens: decode without the control tokens. Throws as decode does.
  std::string said(std::span<const int> ids) const;

  std::size_t size() const { return bytes_.size(); }  // V
  std::optional<int> bos() const { return tables_.bos; }
  std::optional<int> eos() const { return tables_.eos; }
  /// All ids that end what a model says, in order: eos, eot and eom, and the control tokens that
  /// end a text, a turn or a message in the families that are read here, such as <|im_end|>. A
  /// chat model may say any of them.
  const std::vector<int>& ends() const { return ends_; }
  /// The bos token if texts begin with it; encode does not add it.
  std::optional<int> first() const;
  /// The token of this name, as the file writes it: "<|im_end|>", "Ġthe".
  std::optional<int> id(std::string_view token) const;

 private:
  void read_tokens();
  void read_merges();
  void find_ends();
  std::optional<int> whole_word(std::string_view word) const;
  /// Returns how many bytes had no token.
  std::size_t append_plain(std::string_view text, PairMerger& merger, std::vector<int>& ids) const;
  [[noreturn]] void fail(const std::string& what) const;

  BpeTables tables_;
  PreTokenizer words_;
  std::vector<std::string> bytes_;               // [V], what each token stands for
  std::map<std::string, int, std::less<>> ids_;  // by name; no choice of names makes it slow
  std::array<int, 256> byte_ids_;                // the token of each byte, or −1
  std::vector<int> by_bytes_;                    // normal tokens sorted by bytes, for whole_word
  MergeTable merges_;                            // which pairs become one token, and when
  TokenFinder added_, added_and_control_;        // special tokens to find in a text
  std::vector<int> ends_;                        // sorted, each once
};

/// Decodes what a model says token by token, and returns whole characters only. Control tokens are
/// left out. Throws as decode does.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Bpe& bpe) : bpe_(bpe) {}

  /// The characters that this token completes; often none.
  std::string push(int id) { return characters_.push(bpe_.said({&id, 1})); }
  /// At the end, what is left of a character that was never completed, as U+FFFD.
  std::string finish() { return characters_.finish(); }

 private:
  const Bpe& bpe_;
  CharacterStream characters_;
};

}  // namespace t2t
