#include "npy.hpp"

#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <regex>
#include <stdexcept>

#include "files.hpp"

namespace t2t {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

// A file: "\x93NUMPY", version (1, 0), header length in two bytes, header, values. The header is a
// Python dictionary, padded so that the values begin at a multiple of 64.
static constexpr std::string_view magic{"\x93NUMPY\x01\x00", 8};
static constexpr std::size_t most_header = 1024;  // std::regex goes one call deeper a character

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

/// "(3, 4)" to {3, 4}; throws when a number, or their product, is larger than the file could hold.
static std::vector<std::size_t> parse_shape(const std::string& text, std::size_t most) {
  static const std::regex number("[0-9]+");
  std::vector<std::size_t> shape;
  std::size_t count = 1;
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    if (at->str().size() > 12) throw std::runtime_error("dimension " + at->str() + " is too large");
    shape.push_back(std::stoull(at->str()));
    if (shape.back() != 0 && count > most / shape.back())
      throw std::runtime_error(fmt::format("shape ({}) is larger than the file", text));
    count *= shape.back();
  }
  return shape;
}

template <class Value>
static NpyContent<Value> parse(const std::string& bytes) {
  static const std::regex dictionary(
      R"(\{'descr': '([<>|=]?[a-zA-Z][0-9]*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\),? *\}\s*)");
  if (!bytes.starts_with(magic)) throw std::runtime_error("not a .npy file of version 1.0");
  if (bytes.size() < magic.size() + 2) throw std::runtime_error("ends before its header");
  std::uint16_t length = 0;
  std::memcpy(&length, &bytes[magic.size()], 2);
  const std::size_t begin = magic.size() + 2 + length;
  if (bytes.size() < begin) throw std::runtime_error("ends inside its header");
  if (length > most_header)
    throw std::runtime_error(
        fmt::format("has a header of {} bytes, wanted at most {}", length, most_header));

  std::smatch match;
  const std::string header = bytes.substr(magic.size() + 2, length);
  if (!std::regex_match(header, match, dictionary))
    throw std::runtime_error("has a header that can't be read");
  if (match[1] != type_name<Value>())
    throw std::runtime_error(
        fmt::format("holds {}, wanted {}", match[1].str(), type_name<Value>()));
  if (match[2] == "True") throw std::runtime_error("is in column-major order");

  NpyContent<Value> content{parse_shape(match[3], bytes.size()), {}};
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
