#include "18_experiments/muon/muon_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "lanes.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// The tensors of a list that AdamW moves.
static std::vector<ListedTensor> the_rest(std::vector<ListedTensor> list) {
  std::erase_if(list, [](const ListedTensor& tensor) { return is_moved_by_muon(tensor.info); });
  return list;
}

MuonTrainer::MuonTrainer(Model model, const TrainingOptions& training, const MuonOptions& matrices,
                         std::span<const int> ids)
    : options_(training),
      matrices_options_(matrices),
      model_(std::move(model)),
      windows_(ids, training.T, training.seed),
      batch_(make_batch(training.B, training.T)),
      passes_(model_.config(), training.B, training.T),
      gradients_(zeros_of(model_.config())),
      optimizer_({training.schedule, training.adamw, training.clip}, the_rest(weights()),
                 the_rest(tensors_of(gradients_, model_.config()))) {
  expect(training.parts >= 1, "parts of a batch", "at least 1", training.parts);
  const std::vector<ListedTensor> all = weights();
  const std::vector<ListedTensor> gradients = tensors_of(gradients_, model_.config());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const TensorInfo& info = all[i].info; is_moved_by_muon(info))
      matrices_.push_back({info, all[i].numbers, gradients[i].numbers,
                           Tensor<2>(xt::zeros<float>({info.rows, info.cols}))});
}

/// All tensors of the model. Their rows stay valid, since a Model keeps its tensors where they are.
std::vector<ListedTensor> MuonTrainer::weights() {
  std::vector<ListedTensor> list;
  model_.change_weights([&](ModelWeights& w) { list = tensors_of(w, model_.config()); });
  return list;
}

/// Adds each part's share of the mean's gradient. Returns the mean loss.
double MuonTrainer::add_gradients() {
  const std::size_t parts = options_.parts, tokens = parts * options_.B * options_.T;
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::uint64_t pass = std::uint64_t(steps_done()) * parts + part;
    windows_.fill(batch_, pass * options_.B);
    sum += passes_.add(model_, batch_, 1 / float(tokens), gradients_,
                       {options_.dropout, seed_of(SeedOf::step, options_.seed, pass)});
  }
  return sum / double(tokens);
}

void MuonTrainer::expect_finite(double norm, double loss) const {
  if (std::isfinite(norm) && std::isfinite(loss)) return;
  std::string first = "all tensors together";
  for (const MovedMatrix& matrix : matrices_)
    if (std::ranges::any_of(matrix.g, [](float x) { return !std::isfinite(x); })) {
      first = full_name(matrix.info);
      break;
    }
  throw std::runtime_error(fmt::format(
      "step {}: the gradient of {} is not finite (loss {:.3g}); wanted a lower rate or more "
      "warm-up",
      steps_done() + 1, first, loss));
}

StepReport MuonTrainer::step() {
  optimizer_.begin_step();
  for (MovedMatrix& matrix : matrices_) std::ranges::fill(matrix.g, 0.0f);
  const double loss = add_gradients();
  double squares = 0;
  for (const MovedMatrix& matrix : matrices_) squares += double(sum_of_squares(matrix.g));
  expect_finite(std::sqrt(squares), loss);
  const StepReport rest = optimizer_.end_step(loss);  // AdamW, which checks its own gradients

  const float rate = rate_at(matrices_options_.schedule, rest.n);
  double moved = 0, size = 0;
  for (auto& [info, w, g, momentum] : matrices_) {
    const std::size_t out = info.rows, in = info.cols;
    size += double(sum_of_squares(w));
    moved += muon_step(matrices_options_.muon, rate, Matrix(w.data(), out, in, in),
                       ConstMatrix(g.data(), out, in, in), momentum);
  }
  const double norm = std::sqrt(squares + rest.gradient_norm * rest.gradient_norm);
  return {rest.n, loss, norm, rate, size > 0 ? std::sqrt(moved / size) : 0};
}

double MuonTrainer::loss_of(std::span<const int> ids) {
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; fill_in_order(batch_, ids, first); first += batch_.ids.size()) {
    sum += passes_.loss(model_, batch_);
    learned += count_learned(batch_.targets);
  }
  expect(learned > 0, "ids, a text to measure", "at least 2 tokens", ids.size());
  return sum / double(learned);
}

std::vector<std::string> MuonTrainer::names_of_muon() const {
  std::vector<std::string> names;
  for (const MovedMatrix& matrix : matrices_) names.push_back(full_name(matrix.info));
  return names;
}

std::vector<std::string> MuonTrainer::names_of_adamw() const {
  std::vector<std::string> names;
  for (const ListedTensor& tensor : optimizer_.weights()) names.push_back(full_name(tensor.info));
  return names;
}

std::size_t MuonTrainer::state_floats() const {
  std::size_t count = 0;
  for (const MovedMatrix& matrix : matrices_) count += matrix.momentum.size();
  for (const ListedTensor& tensor : optimizer_.weights()) count += 2 * tensor.numbers.size();
  return count;
}

}  // namespace t2t
