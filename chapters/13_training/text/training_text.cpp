#include "13_training/text/training_text.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "files/files.hpp"
#include "program/program.hpp"

namespace t2t {

static bool is_page(const std::filesystem::path& file) { return file.extension() == ".md"; }

static std::string read_text(const std::filesystem::path& file) {
  const std::string content = read_text_file(file);
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
