#include "21_pipeline/stages/pipeline_trainer.hpp"

#include <algorithm>

#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "random.hpp"

namespace t2t {

PipelineTrainer::PipelineTrainer(const Communicator& ranks, const Config& whole,
                                 const ModelWeights& weights, const TrainingOptions& options,
                                 std::span<const int> ids, PipelineSchedule schedule)
    : ranks_(ranks),
      whole_(whole),
      options_(options),
      operations_(operations_of(schedule, ranks.size, ranks.rank, options.parts)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      stage_(ranks, whole, weights,
             {options.B, options.T, options.parts,
              most_in_flight(schedule, ranks.size, ranks.rank, options.parts)}),
      gradients_(stage_.gradients()),
      counted_(counted_once(gradients_, whole)),
      optimizer_({options.schedule, options.adamw, 0}, stage_.weights(), gradients_) {}

/// Returns Σ loss of a forward pass on the last stage, and 0 otherwise.
double PipelineTrainer::run(const Operation& operation) {
  const auto [pass, part] = operation;
  const std::uint64_t number = std::uint64_t(optimizer_.steps_done()) * options_.parts + part;
  const Dropout dropout = {options_.dropout, seed_of(SeedOf::step, options_.seed, number)};
  if (pass == Operation::Pass::backward) return stage_.backward(part, dropout), 0;
  windows_.fill(batch_, number * options_.B);
  const float scale = 1 / float(options_.parts * options_.B * options_.T);
  return stage_.forward(part, batch_, scale, dropout);
}

static Row numbers_named(const std::vector<ListedTensor>& list, std::string_view name) {
  const auto found =
      std::ranges::find(list, name, [](const ListedTensor& t) { return t.info.name; });
  return found == list.end() ? Row() : found->numbers;
}

/// A sum of two has the same bits in both orders.
void join_tied_tables(const Communicator& stages, const std::vector<ListedTensor>& gradients) {
  const Row embedding = numbers_named(gradients, "embedding"),
            head = numbers_named(gradients, "head");
  const std::size_t last = stages.size - 1;
  if (stages.size == 1) {
    add_row(embedding, head);
    std::ranges::copy(embedding, head.begin());
  } else if (stages.rank == 0 || stages.rank == last) {
    const Row own = stages.rank == 0 ? embedding : head, other = room_for(own.size());
    const std::size_t partner = last - stages.rank;
    exchange(stages, own, partner, other, partner, Purpose::other);
    add_row(own, other);
  }
}

/// Every rank learns the last stage's value. The others have 0, so that the sum is exact; a double
/// travels as a float and the rest, of which sum_of_values keeps 48 bits.
double PipelineTrainer::loss_of_last(double loss) const {
  const double high = double(float(loss));
  const std::vector<double> sums = sum_of_values(ranks_, {high, loss - high});
  return sums[0] + sums[1];
}

/// A stage has whole tensors.
PartState PipelineTrainer::state() {
  const std::vector<TensorInfo> all = tensors_in_parts(whole_);
  PartState state = {{}, {optimizer_.weights(), optimizer_.means(), optimizer_.squares()}};
  for (const ListedTensor& tensor : optimizer_.weights()) {
    const auto found = std::ranges::find(all, full_name(tensor.info),
                                         [](const TensorInfo& info) { return full_name(info); });
    state.parts.push_back(
        {std::size_t(found - all.begin()), {{0, tensor.info.rows}}, {0, tensor.info.cols}});
  }
  return state;
}

StepReport PipelineTrainer::step() {
  optimizer_.begin_step();
  stage_.clear_times();
  double loss = 0;
  for (const Operation& operation : operations_) loss += run(operation);
  stage_.finish();
  if (whole_.tied) join_tied_tables(ranks_, gradients_);
  loss = loss_of_last(loss / double(options_.parts * options_.B * options_.T));
  const double norm = norm_of_shards(ranks_, counted_, optimizer_.steps_done() + 1, loss);
  return clipped_step(optimizer_, gradients_, norm, options_.clip, loss);
}

}  // namespace t2t
