#include "10_pretrained/model/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "shapes.hpp"

namespace t2t {

Split split_of(const TensorInfo& info) {
  if (info.role == Role::matrix) return Split::rows;
  if (info.role == Role::into_stream) return Split::cols;
  if (info.role == Role::embedding) return Split::tokens;
  return info.name.starts_with("b_") ? Split::rows : Split::none;
}

Config shard_of(Config config, Shard shard) {
  expect(shard.rank < shard.ranks, "rank", fmt::format("below the {} ranks", shard.ranks),
         shard.rank);
  const auto divide = [&](std::size_t& size, const char* name) {
    if (size % shard.ranks != 0)
      throw std::invalid_argument(
          fmt::format("{}: wanted a multiple of {} ranks, got {}", name, shard.ranks, size));
    size /= shard.ranks;
  };
  expect(config.V >= shard.ranks, "V, the vocabulary", "a token for each rank", config.V);
  const auto share_block = [&](BlockSettings& block) {
    if (block.biases == Biases::all)
      throw std::invalid_argument("biases: wanted at most those of q, k and v, got all");
    divide(block.H, "H, the query heads");
    divide(block.G, "G, the key and value heads");
    divide(block.F, "F, the width of the feed-forward network");
    divide(block.shared, "shared, the width of the shared expert");
  };
  share_block(config.block);
  for (BlockSettings& block : config.layers) share_block(block);
  return config;
}

GgufTensor columns_of(const GgufTensor& tensor, std::size_t from, std::size_t count,
                      std::vector<std::uint8_t>& room) {
  const BlockLayout block = block_layout(tensor.type);
  if (from % block.numbers != 0 || count % block.numbers != 0)
    throw std::invalid_argument(
        fmt::format("{}: wanted columns in whole blocks of {}, got {} of {}", tensor.name,
                    block.numbers, count, tensor.shape.back()));
  const std::size_t rows = tensor.shape[0];
  const std::size_t row_bytes = tensor.size / rows, bytes = count / block.numbers * block.bytes;
  room.clear();
  for (std::size_t r = 0; r < rows; ++r) {
    const auto part =
        tensor.bytes.subspan(r * row_bytes + from / block.numbers * block.bytes, bytes);
    room.insert(room.end(), part.begin(), part.end());
  }
  return {tensor.name, tensor.type, {rows, count}, tensor.offset, room.size(), room};
}

/// The first row of a rank's shard of a table with a row for each token.
static std::size_t first_token(const TensorInfo& info, Shard shard) {
  return info.rows * shard.rank / shard.ranks;
}

GgufTensor shard_of(const GgufTensor& whole, const TensorInfo& info, Shard shard,
                    std::vector<std::uint8_t>& room) {
  const std::size_t e = info.expert.value_or(0), ranks = shard.ranks;
  if (split_of(info) == Split::rows)
    return rows_of(whole, (e * ranks + shard.rank) * info.rows, info.rows);
  if (split_of(info) == Split::tokens) {
    const std::size_t first = first_token(info, shard);
    return rows_of(whole, first, first_token(info, {shard.rank + 1, ranks}) - first);
  }
  const GgufTensor matrix = rows_of(whole, e * info.rows, info.rows);
  if (split_of(info) != Split::cols || ranks == 1) return matrix;
  return columns_of(matrix, shard.rank * info.cols, info.cols, room);
}

/// Rows of zeros around those of another weight.
class RowsAmongZeros : public PackedWeight {
 public:
  RowsAmongZeros(Weight part, std::size_t first, std::size_t rows)
      : PackedWeight(rows, part.cols(), part.bytes()), part_(std::move(part)), first_(first) {}

  void product(ConstMatrix x, Matrix y) const override {
    const std::size_t after = first_ + part_.rows();
    for (std::size_t t = 0; t < y.rows; ++t) {
      std::ranges::fill(y.row(t).first(first_), 0.0f);
      std::ranges::fill(y.row(t).subspan(after), 0.0f);
    }
    matmul_bt(x, part_, y.cols_from(first_, part_.rows()));
  }
  void row(std::size_t r, Row to) const override {
    if (r < first_ || r >= first_ + part_.rows()) return std::ranges::fill(to, 0.0f), void();
    part_.row(r - first_, to);
  }

 private:
  Weight part_;
  std::size_t first_;
};

Weight with_zeros(Weight part, const TensorInfo& info, Shard shard) {
  if (shard.ranks == 1) return part;
  const std::size_t first = first_token(info, shard);
  TensorInfo own = info;
  own.rows = first_token(info, {shard.rank + 1, shard.ranks}) - first;
  expect_fits(own, part);
  return Weight(std::make_shared<RowsAmongZeros>(std::move(part), first, info.rows));
}

}  // namespace t2t
