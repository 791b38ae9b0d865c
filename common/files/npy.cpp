#include "files/npy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "files/files.hpp"

namespace t2t {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

// A file: "\x93NUMPY", version (1, 0), header length in two bytes, header, values. The header is a
// Python dictionary, padded so that the values begin at a multiple of 64.
static constexpr std::string_view magic{"\x93NUMPY\x01\x00", 8};
static constexpr std::size_t most_header = 1024;

template <class Value>
constexpr const char* type_name() {
  return std::is_same_v<Value, float> ? "<f4" : "<i4";
}

template <class Value>
static void save(const std::filesystem::path& path, std::span<const Value> values,
                 std::span<const std::size_t> shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                   type_name<Value>(), fmt::join(shape, ", "));
  header.append(63 - (magic.size() + 2 + header.size()) % 64, ' ').push_back('\n');

  const auto length = static_cast<std::uint16_t>(header.size());
  std::string bytes(magic);
  bytes.append(reinterpret_cast<const char*>(&length), 2).append(header);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  write_file(path, bytes);
}

void save_npy(const std::filesystem::path& path, std::span<const float> values,
              std::span<const std::size_t> shape) {
  save(path, values, shape);
}

void save_npy(const std::filesystem::path& path, std::span<const int> values) {
  const std::size_t shape[] = {values.size()};
  save(path, values, std::span<const std::size_t>(shape));
}

/// The fields of a header, which must be written exactly as NumPy writes it.
struct Header {
  std::string_view type, column_major, shape;
};

/// Removes leading characters that are in `allowed` from text, then `next`, which must follow.
/// Returns the former.
static std::string_view take(std::string_view& text, std::string_view allowed,
                             std::string_view next) {
  const std::string_view taken = text.substr(0, text.find_first_not_of(allowed));
  if (!text.substr(taken.size()).starts_with(next))
    throw std::runtime_error("has a header that can't be read");
  text.remove_prefix(taken.size() + next.size());
  return taken;
}

static Header parse_header(std::string_view text) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  static constexpr std::string_view of_types =
      "<>|=0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  Header header;
  take(text, "", "{'descr': '");
  header.type = take(text, of_types, "', 'fortran_order': ");
  header.column_major = take(text, letters, ", 'shape': (");
  header.shape = take(text, "0123456789, ", ")");
  take(text, ", ", "}");
  const bool has_order = header.column_major == "True" || header.column_major == "False";
  if (text.find_first_not_of(" \n") != text.npos || header.type.empty() || !has_order)
    throw std::runtime_error("has a header that can't be read");
  return header;
}

/// Parses "3, 4" to {3, 4}. Throws when a number, or the product of all, is larger than `most`.
static std::vector<std::size_t> parse_shape(std::string_view text, std::size_t most) {
  std::vector<std::size_t> shape;
  std::size_t count = 1;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), size);
    if (error == std::errc::result_out_of_range ||
        (error == std::errc() && size != 0 && count > most / size))
      throw std::runtime_error(fmt::format("shape ({}) is larger than the file", text));
    if (error == std::errc()) shape.push_back(size), count *= size;
    at = std::max(end, at + 1);
  }
  return shape;
}

template <class Value>
static NpyContent<Value> parse(const std::string& bytes) {
  if (!bytes.starts_with(magic)) throw std::runtime_error("not a .npy file of version 1.0");
  if (bytes.size() < magic.size() + 2) throw std::runtime_error("ends before its header");
  std::uint16_t length = 0;
  std::memcpy(&length, &bytes[magic.size()], 2);
  const std::size_t begin = magic.size() + 2 + length;
  if (bytes.size() < begin) throw std::runtime_error("ends inside its header");
  if (length > most_header)
    throw std::runtime_error(
        fmt::format("has a header of {} bytes, wanted at most {}", length, most_header));

  const Header header = parse_header(std::string_view(bytes).substr(magic.size() + 2, length));
  if (header.type != type_name<Value>())
    throw std::runtime_error(fmt::format("holds {}, wanted {}", header.type, type_name<Value>()));
  if (header.column_major == "True") throw std::runtime_error("is in column-major order");

  NpyContent<Value> content{parse_shape(header.shape, bytes.size()), {}};
  std::size_t count = 1;
  for (const std::size_t size : content.shape) count *= size;
  if (bytes.size() - begin != count * sizeof(Value))
    throw std::runtime_error(fmt::format("holds {} bytes of values, its shape needs {}",
                                         bytes.size() - begin, count * sizeof(Value)));
  content.values.resize(count);
  if (count > 0) std::memcpy(content.values.data(), &bytes[begin], count * sizeof(Value));
  return content;
}

template <class Value>
static NpyContent<Value> load(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  try {
    return parse<Value>(bytes);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

NpyContent<float> load_npy_floats(const std::filesystem::path& path) { return load<float>(path); }
std::vector<int> load_npy_ints(const std::filesystem::path& path) { return load<int>(path).values; }

}  // namespace t2t
