// Byte tokens as readable text, and ids that a user typed. Only programs use it, no model does.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <vector>

#include "program/print.hpp"
#include "utf8_start.hpp"

namespace t2t {

/// An ASCII byte as its character; any other byte, or a control character, in hexadecimal.
inline std::string byte_text(int id) {
  return id < 0x20 || id > 0x7e ? fmt::format("{:02x}", id) : visible(std::string(1, char(id)));
}

/// The same with quotes around a character, for tables: 'a', but c3.
inline std::string quoted_byte(int id) {
  return id < 0x20 || id > 0x7e ? byte_text(id) : "'" + byte_text(id) + "'";
}

/// Prints each token above its id, as many as fit in three pairs of lines.
inline void print_ids(const std::vector<int>& ids) {
  const std::size_t columns = std::min<std::size_t>((terminal_width() - 2) / 4, 24);
  const std::size_t most = std::min(ids.size(), 3 * columns);
  for (std::size_t from = 0; from < most; from += columns) {
    std::string tokens, numbers;
    for (std::size_t t = from; t < std::min(most, from + columns); ++t) {
      tokens += fmt::format("{:>4}", byte_text(ids[t]));
      numbers += fmt::format("{:>4}", ids[t]);
    }
    fmt::print("{}\n{}\n\n", tokens, numbers);
  }
  if (most < ids.size()) fmt::print("  and {} more\n\n", ids.size() - most);
}

/// The ids in "1,2,3". The look-up checks later that each is in its vocabulary. Throws
/// std::invalid_argument, naming the word that is not an integer.
inline std::vector<int> ids_by_hand(const std::string& words) {
  std::vector<int> ids;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    int id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      throw std::invalid_argument(
          fmt::format("--ids: wanted integers as in \"1,2,3\", got \"{}\"", printable(word)));
    ids.push_back(id);
    at = comma + 1;
  }
  return ids;
}

}  // namespace t2t
