// A vocabulary as a trie: tokens with the same first bytes share their nodes.
//
// The nodes lie in one list, in depth-first order: after a node comes its first child, and `after`
// is where a walk continues without the children. A walk that may not enter a node thus skips all
// tokens that begin with it at once, and needs no stack of nodes. The trie is made once for a
// vocabulary, and any number of sequences and threads may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

struct TokenTrie {
  struct Node {
    unsigned char byte;
    std::uint16_t depth;         // how many bytes come before this one
    std::uint32_t after;         // the first node that does not begin with this one's bytes
    std::uint32_t first, count;  // which of `ids` are tokens that end here
  };
  std::vector<std::string> tokens;  // [V] the bytes of each; without bytes it is in no node
  std::vector<Node> nodes;
  std::vector<int> ids;
  std::size_t longest = 0;  // bytes of a token

  /// Throws std::invalid_argument for a token of more than 65,535 bytes.
  explicit TokenTrie(std::vector<std::string> tokens);
};

/// The bytes of each token that is text; tokens of other kinds, such as control tokens, have none.
std::vector<std::string> text_tokens(const Bpe& bpe);

}  // namespace t2t
