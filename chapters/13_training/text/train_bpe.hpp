// Learns the vocabulary of a byte-level BPE from a text.
//
// A vocabulary begins with a token for each of the 256 bytes. Then, again and again, the two tokens
// that most often stand side by side become one more token. In "low low low lower lowest" that is
//
//   l·o, 5 times → lo     lo·w, 5 → low     Ġ·low, 4 → Ġlow     Ġlow·e, 2 → Ġlowe
//
// The text is first cut into words (10_pretrained/pretokenize.hpp), and no pair crosses from one
// word into the next. Of pairs with equal counts the one with the smaller ids comes first, so that
// a text has only one vocabulary, the same as the tokenizers library's. Chapter 10 encodes and
// decodes with it. Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
// Units", section 3.2.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

struct BpeTraining {
  std::size_t V;                        // tokens wanted: 256 bytes, merges, and control
  std::string pre_tokenizer = "gpt-2";  // what cuts the text into words, here and later
  std::vector<std::string> control = {"<|endoftext|>"};  // the first one ends a text
  std::size_t least_count = 2;                           // a rarer pair gets no token
};

/// The vocabulary of V tokens for a text, ready for Bpe and save_model: the bytes, in the order of
/// the characters that stand for them (byte_alphabet.hpp), one token for each merge in the order
/// they were learned, and the control tokens, the first of which is eos. A smaller V gives the
/// beginning of the same merges. Control tokens are not looked for in the text.
///
/// after_merge, if given, is called with the number of merges so far; what it throws ends the
/// training.
///
/// Repeated words are counted, not stored again, and a merge visits only the places of its pair.
/// Each visit makes the text shorter, so that all merges together visit at most three places for
/// each byte of the different words, however long a word is.
///
/// Throws std::invalid_argument, with the most that is possible, when the text has too few pairs
/// for V; for a V below 256 and the control tokens; for a least_count of 0; and for a control token
/// that is not 1 to 256 bytes of UTF-8 or has the name of another token. Throws std::runtime_error
/// as PreTokenizer does when the text is not UTF-8, and as Bpe::encode does for a word of more than
/// 2^22 bytes.
BpeTables train_bpe(std::string_view text, const BpeTraining& options,
                    const std::function<void(std::size_t merges)>& after_merge = {});

/// The same vocabulary by the definition: all pairs of all words are recounted for each merge, in
/// time proportional to the text's length times V. For small texts.
BpeTables train_bpe_by_recounting(std::string_view text, const BpeTraining& options);

}  // namespace t2t
