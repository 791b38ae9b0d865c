#include "21_pipeline/stages/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "shapes.hpp"

namespace t2t {

/// Dropout drops other elements in each layer of the whole model: a block must know its number.
static std::vector<Block> numbered_blocks(const Model& model, std::size_t first) {
  std::vector<Block> blocks;
  for (std::size_t l = 0; l < model.config().L; ++l)
    blocks.emplace_back(settings_of(model.config(), l), model.weights().blocks[l], first + l);
  return blocks;
}

Stage::Stage(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
             const StageSizes& sizes, StageFunctions functions)
    : whole_(whole),
      place_{ranks.rank, ranks.size},
      model_(stage_config(whole, place_), stage_weights(weights, whole, place_)),
      gradients_(zeros_of(model_.config(), functions.is_here)),
      blocks_(numbered_blocks(model_, blocks_of(whole, place_).begin)),
      functions_(std::move(functions)),
      passes_(whole, sizes.B, sizes.T, functions_.training),
      neighbours_(ranks, sizes.parts) {
  expect(sizes.slots >= 1, "micro-batches in flight", "at least 1", sizes.slots);
  const std::size_t N = sizes.B * sizes.T;
  for (std::size_t i = 0; i < sizes.slots; ++i) {
    Slot& slot = slots_.emplace_back();
    slot.kept =
        make_kept(settings_of_all(model_.config()), N, !functions_.training.network.backward);
    if (place_.is_first()) slot.batch = make_batch(sizes.B, sizes.T);
    if (place_.is_last()) slot.dx = empty(N, whole.block.C);
  }
}

static void expect_slot(bool is_right, std::size_t part, std::string_view wanted) {
  if (!is_right) throw std::logic_error(fmt::format("micro-batch {}: wanted {}", part, wanted));
}

double Stage::compute_forward(Slot& slot, const Batch& batch, float scale, const Dropout& dropout) {
  if (place_.is_first()) {
    slot.batch = batch;
    functions_.embed(passes_, model_, batch, dropout);
  }
  for (std::size_t l = 0; l < blocks_.size(); ++l)
    passes_.forward(blocks_[l], &slot.kept[l], dropout);
  if (!place_.is_last()) return 0;
  const double loss = passes_.head(model_, batch, scale, &gradients_);
  std::copy_n(passes_.dx().data, slot.dx.size(), slot.dx.data());
  return loss;
}

double Stage::forward(std::size_t part, const Batch& batch, float scale, const Dropout& dropout) {
  Slot& slot = slot_of(part);
  expect_slot(!slot.used, part, "a free slot");
  slot.used = true, slot.part = part;
  if (!place_.is_first()) neighbours_.receive_x(passes_.x(), part);
  const Stopwatch watch;
  const double loss = compute_forward(slot, batch, scale, dropout);
  times_.push_back(watch.stop({Operation::Pass::forward, part}));
  if (!place_.is_last()) neighbours_.send_x(passes_.x(), part);
  return loss;
}

void Stage::compute_backward(const Slot& slot, const Dropout& dropout) {
  if (place_.is_last()) std::copy_n(slot.dx.data(), slot.dx.size(), passes_.dx().data);
  for (std::size_t l = blocks_.size(); l-- > 0;)
    passes_.backward(blocks_[l], slot.kept[l], gradients_.blocks[l], dropout);
  if (place_.is_first()) functions_.embedding_backward(passes_, slot.batch, gradients_, dropout);
}

void Stage::backward(std::size_t part, const Dropout& dropout) {
  Slot& slot = slot_of(part);
  expect_slot(slot.used && slot.part == part, part, "one in flight");
  if (!place_.is_last()) neighbours_.receive_dx(passes_.dx(), part);
  const Stopwatch watch;
  compute_backward(slot, dropout);
  times_.push_back(watch.stop({Operation::Pass::backward, part}));
  if (!place_.is_first()) neighbours_.send_dx(passes_.dx(), part);
  slot.used = false;
}

std::vector<ListedTensor> Stage::weights() {
  std::vector<ListedTensor> list;
  model_.change_weights(
      [&](ModelWeights& own) { list = stage_tensors(own, whole_, place_, functions_.is_here); });
  return list;
}

std::vector<ListedTensor> Stage::gradients() {
  return stage_tensors(gradients_, whole_, place_, functions_.is_here);
}

std::size_t Stage::kept_bytes() const {
  std::size_t sum = 0;
  for (const Slot& slot : slots_) sum += bytes(slot.kept) + slot.dx.size() * sizeof(float);
  return sum;
}

}  // namespace t2t
