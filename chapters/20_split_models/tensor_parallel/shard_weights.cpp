#include "20_split_models/tensor_parallel/shard_weights.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "memory.hpp"

namespace t2t {

static Tensor<1> cut(const Tensor<1>& x, const Piece& piece) {
  Tensor<1> part = xt::zeros<float>({piece.row_count()});
  auto to = part.begin();
  if (!piece.zeros)
    for (const Range& range : piece.rows)
      to = std::ranges::copy(row(x).subspan(range.begin, range.size()), to).out;
  return part;
}

static Weight cut(const Weight& w, const Piece& piece) {
  Tensor<2> part = xt::zeros<float>({piece.row_count(), piece.cols.size()});
  std::size_t to = 0;
  if (!piece.zeros)
    for (const Range& range : piece.rows)
      for (std::size_t r = range.begin; r < range.end; ++r)
        std::ranges::copy(row(w.floats(), r).subspan(piece.cols.begin, piece.cols.size()),
                          row(part, to++).begin());
  return Weight(std::move(part));
}

/// Tables with a row for each token keep the whole model's shape.
static Tensor<1> shaped(Tensor<1> part, const TensorInfo&, Shard) { return part; }
static Weight shaped(Weight part, const TensorInfo& info, Shard shard) {
  return info.role == Role::embedding ? with_zeros(std::move(part), info, shard) : part;
}

ModelWeights shard_of(const ModelWeights& weights, const Config& whole, Shard shard,
                      Tables tables) {
  std::vector<const void*> tensors;  // in the list's order, in which each has its type
  for_each_tensor(weights, whole,
                  [&](const TensorInfo&, const auto& tensor) { tensors.push_back(&tensor); });
  ModelWeights own = room_for(config_of(whole, shard));
  auto next = tensors.begin();
  for_each_tensor(own, whole, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
    const Stored& all = *static_cast<const Stored*>(*next++);
    if (info.size() == 0) return;
    tensor = cut(all, piece_of(info, whole, shard));
    if (tables == Tables::all_rows) tensor = shaped(std::move(tensor), info, shard);
  });
  return own;
}

/// The own rows or columns of a file's matrix: in place, or copied to `room` where they do not lie
/// side by side.
static GgufTensor piece_in(const GgufTensor& whole, const Piece& piece,
                           std::vector<std::uint8_t>& room) {
  const std::size_t cols = whole.shape.back();
  if (piece.cols.size() != cols)
    return columns_of(whole, piece.cols.begin, piece.cols.size(), room);
  if (piece.rows.size() == 1) return rows_of(whole, piece.rows[0].begin, piece.rows[0].size());
  for (const Range& range : piece.rows) {
    const GgufTensor part = rows_of(whole, range.begin, range.size());
    room.insert(room.end(), part.bytes.begin(), part.bytes.end());
  }
  return {whole.name, whole.type, {piece.row_count(), cols}, whole.offset, room.size(), room};
}

/// Reads one tensor's own part; a vector whole. Returns the bytes that were asked for.
static std::uint64_t read_piece(const GgufFile& file, const TensorInfo& info, const Piece& piece,
                                const MakeWeight&, Tensor<1>& x) {
  x = cut(file.vector(name_in_file(info), info.rows), piece);
  return file.tensor(name_in_file(info)).size;
}
static std::uint64_t read_piece(const GgufFile& file, const TensorInfo& info, const Piece& piece,
                                const MakeWeight& make, Weight& w) {
  std::vector<std::uint8_t> room;
  const GgufTensor& whole = file.tensor(name_in_file(info));
  const GgufTensor part = piece_in(whole, piece, room);
  TensorInfo own = info;
  own.rows = piece.row_count(), own.cols = piece.cols.size();
  w = make ? make(part, own) : Weight(floats_of(part, own.rows, own.cols));
  file.forget(room.empty() ? part : whole);
  return part.size;
}

/// The hidden channels that can't be cut apart: the blocks in which w_down's rows are stored.
static std::size_t unit_of(const GgufFile& file, const Config& whole) {
  std::size_t unit = 1;
  for (const NamedShape& tensor : tensor_names(whole))
    if (tensor.name.ends_with("ffn_down.weight"))
      unit = std::max(unit, block_layout(file.tensor(tensor.name).type).numbers);
  return unit;
}

ReadShard read_shard(const GgufFile& file, const Config& whole, Shard shard,
                     const MakeWeight& make) {
  expect_tensors(file, whole);
  const std::size_t unit = unit_of(file, whole);
  ReadShard read = {config_of(whole, shard, unit), {}, 0, unit};
  if (!make)
    expect_memory(sizeof(float) * double(shard_size(whole, shard, unit).parameters), file.name(),
                  "use more ranks or a smaller model");
  read.weights = room_for(read.config);
  for_each_tensor(read.weights, whole, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() == 0) return;
    read.bytes += read_piece(file, info, piece_of(info, whole, shard, unit), make, tensor);
    tensor = shaped(std::move(tensor), info, shard);
  });
  file.expect_whole();
  return read;
}

}  // namespace t2t
