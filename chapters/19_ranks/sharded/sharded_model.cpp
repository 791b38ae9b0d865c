#include "19_ranks/sharded/sharded_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/ring.hpp"

namespace t2t {

/// The same model with one block.
static Config with_one_block(Config config) {
  if (!config.layers.empty()) config.layers.resize(1);
  config.L = 1;
  return config;
}

static std::vector<ListedTensor> listed(Model& model) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& w) { list = tensors_of(w, model.config()); });
  return list;
}

static std::vector<std::size_t> sizes_of(const std::vector<ListedTensor>& tensors) {
  std::vector<std::size_t> sizes;
  for (const ListedTensor& tensor : tensors) sizes.push_back(tensor.numbers.size());
  return sizes;
}

/// This rank's chunk of each of rank 0's tensors.
static Shards cut(const Communicator& ranks, Model& model) {
  const std::vector<ListedTensor> all = equal_weights(ranks, model);
  Shards shards(ranks, all);
  const std::vector<ListedTensor> chunks = chunks_of(ranks, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    std::ranges::copy(chunks[i].numbers, shards.list()[i].numbers.begin());
  return shards;
}

/// Zeroed shards, as many as a step holds at a time.
static std::vector<Shards> room_for_sums(const Communicator& ranks,
                                         const std::vector<ListedTensor>& tensors,
                                         std::size_t parts, SumOrder order) {
  const std::size_t most = order == SumOrder::pairs ? sums_held({0, parts}, parts).most : 1;
  std::vector<Shards> sums;
  for (std::size_t i = 0; i < most; ++i) sums.emplace_back(ranks, tensors);
  return sums;
}

/// How many tensors belong to block l, which must be as block 0's.
static std::size_t tensors_of_block(const std::vector<ListedTensor>& all, const Config& config) {
  std::vector<std::vector<std::pair<std::string_view, std::size_t>>> blocks(config.L);
  for (const ListedTensor& tensor : all)
    if (tensor.info.layer)
      blocks.at(*tensor.info.layer).push_back({tensor.info.name, tensor.numbers.size()});
  for (std::size_t l = 1; l < config.L; ++l)
    if (blocks[l] != blocks[0])
      throw std::invalid_argument(
          fmt::format("layer {}: wanted the tensors of layer 0, which has room for one block", l));
  return blocks[0].size();
}

ShardedModel::ShardedModel(const Communicator& ranks, Model model, std::size_t parts,
                           SumOrder order)
    : ranks_(ranks),
      config_(model.config()),
      parts_(parts),
      order_(order),
      weights_(cut(ranks, model)),
      sizes_(sizes_of(listed(model))),
      sums_(room_for_sums(ranks, listed(model), parts, order)),
      room_(with_one_block(config_), zeros_of(with_one_block(config_))),
      gradient_room_(zeros_of(with_one_block(config_))),
      in_room_(listed(room_)),
      gradients_in_room_(tensors_of(gradient_room_, room_.config())),
      before_(parts) {
  const std::size_t of_block = tensors_of_block(weights_.list(), config_);
  const std::size_t before = config_.learned_positions ? 2 : 1, after = before + of_block;
  embedding_ = {0, 0, before};
  first_block_ = {before, before, of_block};
  head_ = {before + config_.L * of_block, after, in_room_.size() - after};
}

Block ShardedModel::block(std::size_t l) const {
  return {settings_of(config_, l), room_.weights().blocks[0], l};
}

ShardedModel::Unit ShardedModel::unit_of(std::size_t l) const {
  return {first_block_.first + l * first_block_.count, first_block_.in_room, first_block_.count};
}

/// The own chunk goes into the room, and the others' arrive there.
void ShardedModel::gather(const Unit& unit) {
  for (std::size_t k = 0; k < unit.count; ++k) {
    const Row whole = in_room_[unit.in_room + k].numbers;
    std::ranges::copy(weights_.list()[unit.first + k].numbers,
                      chunk_of(whole, ranks_.size, ranks_.rank).begin());
    ring_all_gather(ranks_, whole);
  }
}

void ShardedModel::begin_round(std::size_t round) {
  const std::size_t first = round * ranks_.size;
  const std::size_t end = std::min(parts_, first + ranks_.size);
  before_ = PairTree(parts_);
  added_.clear();
  for (std::size_t part = 0; part < first; ++part) before_.add({part, part + 1});
  for (std::size_t part = first; part < end; ++part) added_.push_back({part, part + 1});
  if (round == 0) std::ranges::fill(sums_[0].row(), 0.0f);
}

void ShardedModel::scatter(const Unit& unit) {
  for (std::size_t k = 0; k < unit.count; ++k) {
    const Row whole = gradients_in_room_[unit.in_room + k].numbers;
    if (order_ == SumOrder::pairs) {
      add_in_pairs_of_parts(unit.first + k, whole);
    } else {
      ring_reduce_scatter(ranks_, whole);
      add_row(sums_[0].list()[unit.first + k].numbers, chunk_of(whole, ranks_.size, ranks_.rank));
    }
    std::ranges::fill(whole, 0.0f);
  }
}

/// A rank without a part in this round sends nothing, and still gets its chunk of the others'.
void ShardedModel::add_in_pairs_of_parts(std::size_t tensor, ConstRow whole) {
  std::vector<std::size_t> rows(ranks_.size);
  std::fill_n(rows.begin(), added_.size(), 1);
  std::vector<ConstRow> own(rows[ranks_.rank], whole);
  std::vector<Row> sums;
  for (Shards& sum : sums_) sums.push_back(sum.list()[tensor].numbers);
  PairTree tree = before_;
  add_in_pairs(tree, added_, own_chunks(ranks_, own, rows, whole.size()), sums);
}

std::vector<float> ShardedModel::all_weights() const {
  std::vector<float> all;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    std::vector<float> whole(sizes_[i]);
    std::ranges::copy(weights_.list()[i].numbers,
                      chunk_of(whole, ranks_.size, ranks_.rank).begin());
    ring_all_gather(ranks_, whole);
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

HeldBytes ShardedModel::held_bytes() const {
  std::size_t sums = 0;
  for (const Shards& sum : sums_) sums += bytes_of(sum.list());
  return {bytes_of(weights_.list()), sums, 0, bytes(room_.weights()) + bytes(gradient_room_)};
}

}  // namespace t2t
