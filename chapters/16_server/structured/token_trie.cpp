#include "16_server/structured/token_trie.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "shapes.hpp"

namespace t2t {

/// The length in bytes of two texts' common prefix.
static std::size_t common_beginning(const std::string& a, const std::string& b) {
  return std::size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

TokenTrie::TokenTrie(std::vector<std::string> of_tokens) : tokens(std::move(of_tokens)) {
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    longest = std::max(longest, tokens[id].size());
    if (!tokens[id].empty()) ids.push_back(int(id));
  }
  expect(longest < 65536, "bytes of a token", "at most 65535", longest);
  const auto bytes = [&](int id) -> const std::string& { return tokens[std::size_t(id)]; };
  const auto bytes_and_id = [&](int id) { return std::pair<std::string_view, int>(bytes(id), id); };
  std::ranges::sort(ids, {}, bytes_and_id);

  // In sorted order a token's path shares its beginning with the path of the token before it.
  std::vector<std::uint32_t> path;  // the nodes that lead to the token before
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes[path.back()].after = std::uint32_t(nodes.size());
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string& token = bytes(ids[i]);
    close_to(i == 0 ? 0 : common_beginning(token, bytes(ids[i - 1])));
    while (path.size() < token.size()) {
      const std::size_t depth = path.size();
      path.push_back(std::uint32_t(nodes.size()));
      nodes.push_back(
          {static_cast<unsigned char>(token[depth]), std::uint16_t(depth), 0, std::uint32_t(i), 0});
    }
    ++nodes[path.back()].count;
  }
  close_to(0);
}

std::vector<std::string> text_tokens(const Bpe& bpe) {
  std::vector<std::string> tokens(bpe.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const TokenKind kind = bpe.kind(int(id));
    if (kind == TokenKind::normal || kind == TokenKind::added) tokens[id] = bpe.bytes(int(id));
  }
  return tokens;
}

}  // namespace t2t
