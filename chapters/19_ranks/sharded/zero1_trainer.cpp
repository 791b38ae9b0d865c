#include "19_ranks/sharded/zero1_trainer.hpp"

#include <algorithm>
#include <utility>

#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "19_ranks/sharded/shards.hpp"
#include "random.hpp"

namespace t2t {

/// So many gradients of the whole model as are held at a time.
static std::vector<ModelWeights> room_for_sums(const Config& config, Range mine, std::size_t parts,
                                               SumOrder order) {
  const std::size_t most = order == SumOrder::pairs ? sums_held(mine, parts).most
                                                    : std::min<std::size_t>(2, mine.size());
  return std::vector<ModelWeights>(most, zeros_of(config));
}

static StepOptions without_clipping(const TrainingOptions& options) {
  return {options.schedule, options.adamw, 0};
}

Zero1Trainer::Zero1Trainer(const Communicator& ranks, Model model, const TrainingOptions& options,
                           std::span<const int> ids, SumOrder order)
    : ranks_(ranks),
      options_(options),
      order_(order),
      parts_(own_parts(ranks, options.parts)),
      model_(std::move(model)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      passes_(model_.config(), options.B, options.T),
      tree_(options.parts),
      sums_(room_for_sums(model_.config(), parts_, options.parts, order)),
      weights_(equal_weights(ranks, model_)),
      own_gradients_(chunks_of(ranks, tensors_of(sums_[0], model_.config()))),
      optimizer_(without_clipping(options), chunks_of(ranks, weights_), own_gradients_) {}

/// Adds the part's gradient to the sums that are held, and returns the sum of its losses.
double Zero1Trainer::add_part(std::size_t part) {
  const std::size_t number = optimizer_.steps_done() * options_.parts + part;  // of all steps
  const auto list = [&](std::size_t k) { return tensors_of(sums_[k], model_.config()); };
  std::size_t last = order_ == SumOrder::pairs ? tree_.sums().size() : part > parts_.begin;
  for (const ListedTensor& tensor : list(last)) std::ranges::fill(tensor.numbers, 0.0f);
  windows_.fill(batch_, number * options_.B);
  const float scale = 1 / float(options_.parts * options_.B * options_.T);
  const double loss = passes_.add(model_, batch_, scale, sums_[last],
                                  {options_.dropout, seed_of(SeedOf::step, options_.seed, number)});
  // In pairs as the tree says, on a ring one by one.
  std::size_t additions = order_ == SumOrder::pairs ? tree_.add({part, part + 1}) : last;
  for (; additions > 0; --additions, --last) {
    const std::vector<ListedTensor> to = list(last - 1), from = list(last);
    for (std::size_t i = 0; i < to.size(); ++i) add_row(to[i].numbers, from[i].numbers);
  }
  return loss;
}

void Zero1Trainer::scatter_on_ring() {
  for (const ListedTensor& tensor : tensors_of(sums_[0], model_.config()))
    ring_reduce_scatter(ranks_, tensor.numbers);
}

/// Each rank gets its chunk of all sums that are held anywhere, and adds them in the tree's order.
void Zero1Trainer::scatter_in_pairs() {
  std::vector<Range> held;        // in the order of parts
  std::vector<std::size_t> rows;  // how many of them each rank has
  for (std::size_t r = 0; r < ranks_.size; ++r) {
    const std::vector<Range> of_rank =
        sums_held(range_of(options_.parts, ranks_.size, r), options_.parts).sums;
    held.insert(held.end(), of_rank.begin(), of_rank.end());
    rows.push_back(of_rank.size());
  }
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    std::vector<ConstRow> own;
    for (std::size_t k = 0; k < tree_.sums().size(); ++k)
      own.push_back(tensors_of(sums_[k], model_.config())[i].numbers);
    std::vector<float> chunks = own_chunks(ranks_, own, rows, weights_[i].numbers.size());
    const Row sum = own_gradients_[i].numbers;
    std::vector<std::vector<float>> others(held.size(), std::vector<float>(sum.size()));
    std::vector<Row> sums = {sum};
    sums.insert(sums.end(), others.begin(), others.end());
    PairTree tree(options_.parts);
    add_in_pairs(tree, held, chunks, sums);
  }
  tree_ = PairTree(options_.parts);
}

StepReport Zero1Trainer::step() {
  std::vector<double> losses(options_.parts);
  for (std::size_t part = parts_.begin; part < parts_.end; ++part) losses[part] = add_part(part);
  if (order_ == SumOrder::pairs)
    scatter_in_pairs();
  else
    scatter_on_ring();
  const double loss = mean_loss(ranks_, losses, options_);
  const StepReport report = step_of_shards(ranks_, optimizer_, own_gradients_, options_.clip, loss);
  for (const ListedTensor& tensor : weights_) ring_all_gather(ranks_, tensor.numbers);
  return report;
}

ShardState Zero1Trainer::state() {
  return {chunks_of(ranks_, weights_), optimizer_.means(), optimizer_.squares()};
}

void Zero1Trainer::resume(const std::filesystem::path& folder) {
  optimizer_.continue_from(load_shards(ranks_, folder, state()));
  for (const ListedTensor& tensor : weights_) ring_all_gather(ranks_, tensor.numbers);
}

HeldBytes Zero1Trainer::held_bytes() {
  std::size_t gradients = 0;
  for (ModelWeights& sum : sums_) gradients += bytes_of(tensors_of(sum, model_.config()));
  return {bytes(model_.weights()), gradients,
          bytes_of(optimizer_.means()) + bytes_of(optimizer_.squares())};
}

}  // namespace t2t
