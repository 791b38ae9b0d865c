#include "19_ranks/data_parallel/data_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "19_ranks/collectives/pairs.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/collectives/values.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

Range own_parts(const Communicator& ranks, std::size_t parts) {
  expect(parts >= ranks.size, "parts of a batch",
         fmt::format("at least one for each of {} ranks", ranks.size), parts);
  return range_of(parts, ranks.size, ranks.rank);
}

double mean_loss(const Communicator& ranks, const std::vector<double>& losses,
                 const TrainingOptions& options) {
  // Of a part, all ranks but one have 0.
  const std::vector<double> all = sum_of_values(ranks, losses);
  return std::accumulate(all.begin(), all.end(), 0.0) /
         double(options.parts * options.B * options.T);
}

std::size_t elements_of(const std::vector<ListedTensor>& list) {
  std::size_t elements = 0;
  for (const ListedTensor& tensor : list) elements += tensor.numbers.size();
  return elements;
}

std::vector<ListedTensor> equal_weights(const Communicator& ranks, Model& model) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& w) {
    list = tensors_of(w, model.config());
    for (const ListedTensor& tensor : list) tree_broadcast(ranks, tensor.numbers);
  });
  return list;
}

std::vector<ListedTensor> listed_in(Row all, std::vector<ListedTensor> list) {
  std::size_t begin = 0;
  for (ListedTensor& tensor : list) {
    tensor.numbers = all.subspan(begin, tensor.numbers.size());
    begin += tensor.numbers.size();
  }
  return list;
}

DataTrainer::DataTrainer(const Communicator& ranks, Model model, const TrainingOptions& options,
                         std::span<const int> ids, SumOrder order)
    : ranks_(ranks),
      options_(options),
      order_(order),
      parts_(own_parts(ranks, options.parts)),
      model_(std::move(model)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      passes_(model_.config(), options.B, options.T),
      gradients_(zeros_of(model_.config())),
      sums_(parts_.size(),
            std::vector<float>(elements_of(tensors_of(gradients_, model_.config())))),
      optimizer_({options.schedule, options.adamw, options.clip}, equal_weights(ranks, model_),
                 listed_in(sums_[0], tensors_of(gradients_, model_.config()))) {}

/// Writes the gradient of one part's share of the mean loss, and returns the sum of its losses.
double DataTrainer::run_part(std::size_t part, Row gradient) {
  const std::size_t number = optimizer_.steps_done() * options_.parts + part;  // of all steps
  const std::vector<ListedTensor> list = tensors_of(gradients_, model_.config());
  for (const ListedTensor& tensor : list) std::ranges::fill(tensor.numbers, 0.0f);
  windows_.fill(batch_, number * options_.B);
  const float scale = 1 / float(options_.parts * options_.B * options_.T);
  const double loss = passes_.add(model_, batch_, scale, gradients_,
                                  {options_.dropout, seed_of(SeedOf::step, options_.seed, number)});
  auto to = gradient.begin();
  for (const ListedTensor& tensor : list) to = std::ranges::copy(tensor.numbers, to).out;
  return loss;
}

StepReport DataTrainer::step() {
  std::vector<double> losses(options_.parts);
  for (std::size_t part = parts_.begin; part < parts_.end; ++part)
    losses[part] = run_part(part, sums_[part - parts_.begin]);
  if (order_ == SumOrder::pairs) {
    pairs_all_reduce(ranks_, sums_, options_.parts);
  } else {
    for (std::size_t i = 1; i < sums_.size(); ++i) add_row(sums_[0], sums_[i]);
    ring_all_reduce(ranks_, sums_[0]);
  }
  return optimizer_.end_step(mean_loss(ranks_, losses, options_));
}

HeldBytes DataTrainer::held_bytes() {
  const std::size_t of_part = bytes_of(tensors_of(gradients_, model_.config()));
  return {bytes(model_.weights()), of_part + sums_.size() * sums_[0].size() * sizeof(float),
          bytes_of(optimizer_.means()) + bytes_of(optimizer_.squares())};
}

}  // namespace t2t
