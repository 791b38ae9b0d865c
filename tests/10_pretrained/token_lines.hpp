// The lines of fixtures/10_pretrained/tokens*.txt: texts with their ids by another tokenizer.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace t2t {

struct TokenLine {
  std::string pre_tokenizer, special, text;
  std::vector<int> ids;
  std::string shown;  // the text, for messages
};

inline std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline std::vector<int> numbers_in(const std::string& text) {
  std::istringstream numbers(text);
  std::vector<int> ids;
  for (int id; numbers >> id;) ids.push_back(id);
  return ids;
}

inline std::vector<TokenLine> read_token_lines(const std::string& path) {
  std::vector<TokenLine> lines;
  std::ifstream file(path);
  for (std::string content; std::getline(file, content);) {
    TokenLine line;
    std::string hex, ids;
    std::istringstream fields(content);
    for (std::string* field : {&line.pre_tokenizer, &line.special, &hex, &ids})
      std::getline(fields, *field, '|');
    std::getline(fields, line.shown);
    line.text = bytes_of_hex(hex), line.ids = numbers_in(ids);
    lines.push_back(line);
  }
  return lines;
}

/// A line of fixtures/10_pretrained/nfc.txt: a text, its normal form C, and its ids by Qwen's
/// rules.
struct NormalLine {
  std::string text, normal;
  std::vector<int> ids;
  std::string shown;  // the text, for messages
};

inline std::vector<NormalLine> read_normal_lines(const std::string& path) {
  std::vector<NormalLine> lines;
  std::ifstream file(path);
  for (std::string content; std::getline(file, content);) {
    NormalLine line;
    std::string text, normal, ids;
    std::istringstream fields(content);
    for (std::string* field : {&text, &normal, &ids}) std::getline(fields, *field, '|');
    std::getline(fields, line.shown);
    line.text = bytes_of_hex(text), line.normal = bytes_of_hex(normal), line.ids = numbers_in(ids);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace t2t
