#include "13_training/text/training_text.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "files/files.hpp"
#include "program/program.hpp"

namespace t2t {

static bool is_page(const std::filesystem::path& file) { return file.extension() == ".md"; }

/// Lines end with \n, also those of a text from a system where they end with \r\n.
static std::string with_plain_lines(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || text[i + 1] != '\n') plain += text[i];  // text[size] is 0
  return plain;
}

static std::string read_text(const std::filesystem::path& file) {
  std::string content = read_file(file);
  expect_utf8(file.string(), content);
  if (content.find("\r\n") != content.npos) content = with_plain_lines(content);
  return is_page(file) ? prose(content, EmptyLines::kept) : content;
}

std::string text_of_file(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  if (text.empty())
    throw std::runtime_error(file.string() + ": the text is empty, wanted at least one byte");
  return text;
}

std::string text_of_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file() && (is_page(entry.path()) || entry.path().extension() == ".txt"))
      files.push_back(entry.path());
  if (error) throw std::runtime_error(folder.string() + ": " + error.message());
  if (files.empty())
    throw std::runtime_error(folder.string() + ": wanted files that end in .md or .txt, got none");
  std::ranges::sort(files);
  std::string text;
  for (const std::filesystem::path& file : files) {
    text += read_text(file);
    if (!text.empty() && !text.ends_with("\n")) text += "\n";
    text += "\n";
  }
  return text;
}

}  // namespace t2t
