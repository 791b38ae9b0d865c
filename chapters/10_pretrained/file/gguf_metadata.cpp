#include "10_pretrained/file/gguf_metadata.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "10_pretrained/tokenizer/utf8.hpp"
#include "program/print.hpp"

namespace t2t {

/// The bytes of a value; 0 for strings and arrays, which store their own length.
static std::size_t size_of(GgufType type) {
  static constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[std::size_t(type)];
}

static GgufType read_type(GgufCursor& cursor) {
  const std::uint32_t type = cursor.number<std::uint32_t>("a type");
  if (type > std::uint32_t(GgufType::f64))
    cursor.fail(fmt::format("value of type {}, wanted 0 to {}", type, int(GgufType::f64)));
  return GgufType(type);
}

/// Steps over a value, or over all elements of an array: a value that the file cuts off throws.
static GgufEntry read_value(GgufCursor& cursor, std::string_view key) {
  GgufEntry entry{key, read_type(cursor), false, 1, {}};
  if (entry.type == GgufType::array) {
    entry.is_array = true;
    entry.type = read_type(cursor);
    if (entry.type == GgufType::array) cursor.fail("an array inside an array is not read here");
    const std::uint64_t count = cursor.number<std::uint64_t>("a count");
    // A text takes at least the 8 bytes of its length.
    const std::size_t least = entry.type == GgufType::text ? 8 : size_of(entry.type);
    if (count > cursor.left() / least)
      cursor.fail(
          fmt::format("an array of {} values, where {} bytes are left", count, cursor.left()));
    entry.count = count;
  }

  const std::size_t begin = cursor.at();
  if (entry.type == GgufType::text)
    for (std::size_t i = 0; i < entry.count; ++i) cursor.text("a string");
  else
    cursor.take(entry.count * size_of(entry.type), "a value");
  entry.bytes = cursor.since(begin);
  return entry;
}

GgufMetadata::GgufMetadata(std::string file, GgufCursor& cursor, std::uint64_t count)
    : file_(std::move(file)) {
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_where(fmt::format("entry {} of {}", i + 1, count));
    const std::string_view key = cursor.name(65535, "a key");
    cursor.set_where(printable(key));
    entries_.push_back(read_value(cursor, key));
    if (!index_.emplace(key, i).second) cursor.fail("this key occurs twice");
  }
}

template <class Number>
static Number number_at(const std::uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Reads element i as an integer. False when it has another type or needs more than 63 bits.
static bool integer_at(const GgufEntry& entry, std::size_t i, std::int64_t& value) {
  const std::uint8_t* at = entry.bytes.data() + i * size_of(entry.type);
  switch (entry.type) {
    case GgufType::u8:
      return value = number_at<std::uint8_t>(at), true;
    case GgufType::i8:
      return value = number_at<std::int8_t>(at), true;
    case GgufType::u16:
      return value = number_at<std::uint16_t>(at), true;
    case GgufType::i16:
      return value = number_at<std::int16_t>(at), true;
    case GgufType::u32:
      return value = number_at<std::uint32_t>(at), true;
    case GgufType::i32:
      return value = number_at<std::int32_t>(at), true;
    case GgufType::i64:
      return value = number_at<std::int64_t>(at), true;
    case GgufType::u64:
      return (value = number_at<std::int64_t>(at)) >= 0;
    default:
      return false;
  }
}

static bool real_number(const GgufEntry& entry, double& value) {
  if (entry.type == GgufType::f32) value = number_at<float>(entry.bytes.data());
  if (entry.type == GgufType::f64) value = number_at<double>(entry.bytes.data());
  return entry.type == GgufType::f32 || entry.type == GgufType::f64;
}

/// The string at the front of bytes, which then begin after it. read_value has checked its length.
static std::string_view next_text(std::span<const std::uint8_t>& bytes) {
  const std::size_t length = number_at<std::uint64_t>(bytes.data());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  bytes = bytes.subspan(8 + length);
  return text;
}

std::string value_text(const GgufEntry& entry) {
  std::int64_t whole = 0;
  double real = 0;
  std::span<const std::uint8_t> bytes = entry.bytes;
  if (entry.is_array)
    return with_commas(entry.count) + (entry.type == GgufType::text      ? " strings"
                                       : entry.type == GgufType::boolean ? " booleans"
                                                                         : " numbers");
  if (entry.type == GgufType::text) return "\"" + printable(next_text(bytes)) + "\"";
  if (entry.type == GgufType::boolean) return bytes[0] ? "true" : "false";
  if (integer_at(entry, 0, whole)) return fmt::format("{}", whole);
  if (real_number(entry, real)) return fmt::format("{:.6g}", real);
  return fmt::format("{}", number_at<std::uint64_t>(bytes.data()));
}

void GgufMetadata::fail(const GgufEntry& entry, std::string_view wanted) const {
  throw std::runtime_error(fmt::format("{}: {}: wanted {}, got {}", file_, printable(entry.key),
                                       wanted, value_text(entry)));
}

const GgufEntry& GgufMetadata::find(std::string_view key, bool is_array,
                                    std::string_view wanted) const {
  const auto found = index_.find(key);
  if (found == index_.end())
    throw std::runtime_error(fmt::format("{}: has no {}, wanted {}", file_, key, wanted));
  const GgufEntry& entry = entries_[found->second];
  if (entry.is_array != is_array) fail(entry, wanted);
  return entry;
}

std::int64_t GgufMetadata::integer(std::string_view key) const {
  const GgufEntry& entry = find(key, false, "an integer");
  std::int64_t value = 0;
  if (!integer_at(entry, 0, value)) fail(entry, "an integer");
  return value;
}

double GgufMetadata::real(std::string_view key) const {
  const GgufEntry& entry = find(key, false, "a real number");
  double value = 0;
  if (!real_number(entry, value)) fail(entry, "a real number");
  return value;
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}
double GgufMetadata::real(std::string_view key, double fallback) const {
  return has(key) ? real(key) : fallback;
}

bool GgufMetadata::truth(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const GgufEntry& entry = find(key, false, "true or false");
  if (entry.type != GgufType::boolean || entry.bytes[0] > 1) fail(entry, "true or false");
  return entry.bytes[0] == 1;
}

std::string_view GgufMetadata::text(std::string_view key) const {
  const GgufEntry& entry = find(key, false, "a string");
  if (entry.type != GgufType::text) fail(entry, "a string");
  std::span<const std::uint8_t> bytes = entry.bytes;
  const std::string_view text = next_text(bytes);
  if (!is_utf8(text)) fail(entry, "UTF-8");
  return text;
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const GgufEntry& entry = find(key, true, "an array of strings");
  if (entry.type != GgufType::text) fail(entry, "an array of strings");
  std::vector<std::string_view> texts;
  std::span<const std::uint8_t> bytes = entry.bytes;
  for (std::size_t i = 0; i < entry.count; ++i) {
    texts.push_back(next_text(bytes));
    if (!is_utf8(texts.back()))
      throw std::runtime_error(fmt::format("{}: {}: string {} is not UTF-8: {}", file_,
                                           printable(key), i, printable(texts.back())));
  }
  return texts;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufEntry& entry = find(key, true, "an array of integers");
  std::vector<std::int64_t> values(entry.count);
  for (std::size_t i = 0; i < entry.count; ++i)
    if (!integer_at(entry, i, values[i])) fail(entry, "an array of integers");
  return values;
}

}  // namespace t2t
