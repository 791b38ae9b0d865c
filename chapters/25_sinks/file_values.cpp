#include "25_sinks/file_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

bool is_of_architecture(const GgufFile& file, std::string_view name) {
  const char* key = "general.architecture";
  return file.metadata().has(key) && file.metadata().text(key) == name;
}

FileValues::FileValues(const GgufFile& file, std::string name)
    : file_(file), name_(std::move(name)) {
  const char* key = "general.architecture";
  if (!is_of_architecture(file, name_))
    throw std::runtime_error(fmt::format("{}: {}: wanted {}, got {}", file.name(), key, name_,
                                         printable(file.metadata().text(key))));
}

void FileValues::fail(const char* key, const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}: {}", file_.name(), full(key), what));
}

std::size_t FileValues::size(const char* key, std::optional<std::size_t> fallback) const {
  if (fallback && !file_.metadata().has(full(key))) return *fallback;
  constexpr int most = std::numeric_limits<int>::max();
  const std::int64_t value = file_.metadata().integer(full(key));
  if (value < 1 || value > most) fail(key, fmt::format("wanted 1 to {}, got {}", most, value));
  return std::size_t(value);
}

double FileValues::number(const char* key, std::optional<double> fallback) const {
  if (fallback && !file_.metadata().has(full(key))) return *fallback;
  const double value = file_.metadata().real(full(key));
  if (!(value > 0) || std::isinf(value))
    fail(key, fmt::format("wanted a number above 0, got {}", value));
  return value;
}

std::string FileValues::text(const char* key, const char* fallback) const {
  return file_.metadata().has(full(key)) ? printable(file_.metadata().text(full(key))) : fallback;
}

void FileValues::expect_equal(const char* key, std::size_t wanted) const {
  if (const std::size_t got = size(key, wanted); got != wanted)
    fail(key, fmt::format("wanted D = {}, got {}", wanted, got));
}

void FileValues::expect_blocks(std::size_t L) const {
  if (L > file_.tensors().size())
    fail("block_count", fmt::format("{}, but there are {} tensors", L, file_.tensors().size()));
}

}  // namespace t2t
