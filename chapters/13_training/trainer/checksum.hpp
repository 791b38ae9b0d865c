// A checksum that tells whether files belong together and are whole: FNV-1a with 64 bits.
//
//   sum ← (sum xor byte) · 1099511628211, from 14695981039346656037 on
//
// A single changed byte always changes it; other damage goes unseen once in 2^64 cases. It is no
// protection against somebody who wants two files to look alike.
// Fowler, Noll and Vo: RFC 9923, "The FNV Non-Cryptographic Hash Algorithm".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "10_pretrained/file/gguf.hpp"
#include "10_pretrained/file/write_gguf.hpp"
#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

class Checksum {
 public:
  Checksum& add(std::span<const std::uint8_t> bytes);
  Checksum& add(std::span<const float> numbers);
  Checksum& add(std::span<const int> ids);
  /// Counts and strings, with their length, so that "ab" and "c" are not "a" and "bc".
  Checksum& add(std::uint64_t count);
  Checksum& add(std::string_view text);
  /// All entries of a file but one, and a tensor's name, shape and type.
  Checksum& add_entries(const GgufMetadata& metadata, std::string_view but);
  Checksum& add_head(std::string_view name, std::span<const std::size_t> shape, TensorType type);

  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t sum_ = 14695981039346656037u;
};

/// The entry of a checkpoint with the checksum of everything else in it.
inline constexpr const char* checksum_key = "training.checksum";
std::string checkpoint_checksum(const GgufBytes& entries, const std::vector<StoredTensor>& tensors);
/// Throws std::runtime_error, naming the file, unless that entry is there and is right.
void expect_checksum(const GgufFile& checkpoint);

/// Of the elements of all tensors.
std::string checksum_of(const std::vector<ListedTensor>& tensors);

/// Of all that a model's file says except its name and its tensors' elements.
std::string checksum_of_head(const GgufFile& model);

}  // namespace t2t
