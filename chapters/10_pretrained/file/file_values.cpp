#include "10_pretrained/file/file_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

static constexpr const char* architecture_key = "general.architecture";

bool is_of_architecture(const GgufFile& file, std::string_view name) {
  return file.metadata().has(architecture_key) && file.metadata().text(architecture_key) == name;
}

FileValues::FileValues(const GgufFile& file, std::string_view name) : file_(file), name_(name) {
  if (!is_of_architecture(file, name))
    throw std::runtime_error(fmt::format("{}: {}: wanted {}, got {}", file.name(), architecture_key,
                                         name, printable(file.metadata().text(architecture_key))));
}

std::string FileValues::full(std::string_view key) const {
  return fmt::format("{}.{}", name_, key);
}

void FileValues::fail(std::string_view key, const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}: {}", file_.name(), full(key), what));
}

std::size_t FileValues::size(std::string_view key, std::optional<std::size_t> fallback,
                             std::int64_t least) const {
  if (fallback && !has(key)) return *fallback;
  constexpr int most = std::numeric_limits<int>::max();
  const std::int64_t value = file_.metadata().integer(full(key));
  if (value < least || value > most)
    fail(key, fmt::format("wanted {} to {}, got {}", least, most, value));
  return std::size_t(value);
}

double FileValues::number(std::string_view key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const double value = file_.metadata().real(full(key));
  if (!(value > 0) || std::isinf(value))
    fail(key, fmt::format("wanted a number above 0, got {}", value));
  return value;
}

std::string FileValues::text(std::string_view key, const char* fallback) const {
  return has(key) ? printable(file_.metadata().text(full(key))) : fallback;
}

std::tuple<std::size_t, std::size_t, std::size_t, std::size_t> FileValues::head_sizes() const {
  const std::size_t C = size("embedding_length"), H = size("attention.head_count");
  const std::size_t G = size("attention.head_count_kv", H);
  return {C, H, G, size("attention.key_length", C / H)};
}

std::size_t FileValues::vocabulary() const {
  return size("vocab_size", file_.tensor("token_embd.weight").shape[0]);
}

void FileValues::expect_width_of_a_head(std::string_view key, std::size_t D) const {
  if (const std::size_t got = size(key, D); got != D)
    fail(key, fmt::format("wanted D = {}, got {}", D, got));
}

void FileValues::expect_blocks(std::size_t L) const {
  if (L > file_.tensors().size())
    fail("block_count", fmt::format("{}, but there are {} tensors", L, file_.tensors().size()));
}

}  // namespace t2t
