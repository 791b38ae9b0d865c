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
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      line.text += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    std::istringstream numbers(ids);
    for (int id; numbers >> id;) line.ids.push_back(id);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace t2t
