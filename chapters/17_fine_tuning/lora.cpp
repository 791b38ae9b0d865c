#include "17_fine_tuning/lora.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "10_pretrained/model/load_model.hpp"
#include "linalg.hpp"
#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

static bool is_adapted(const LoraOptions& options, const TensorInfo& info) {
  return info.layer && std::ranges::find(options.matrices, info.name) != options.matrices.end();
}

/// Calls f(info, floats) for each matrix that the options name.
template <class Call>
static void for_each_adapted(const LoraOptions& options, const Config& config,
                             ModelWeights& weights, Call f) {
  for_each_tensor(weights, config, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
    if constexpr (std::is_same_v<Stored, Weight>)
      if (info.size() > 0 && is_adapted(options, info)) f(info, tensor.floats());
  });
}

LoraTrainer::LoraTrainer(Model model, const LoraOptions& options, TrainingFunctions functions)
    : options_(options),
      model_(std::move(model)),
      adapted_(draw_factors()),
      passes_(model_.config(), options.B, options.T, std::move(functions)),
      gradients_(zeros_of(model_.config(),
                          [&](const TensorInfo& info) { return is_adapted(options, info); })),
      optimizer_({options.schedule, options.adamw, options.clip}, list_of(&Factor::x),
                 list_of(&Factor::dx)) {}

/// B = 0, so that nothing is changed yet, and A small, so that first B gets a gradient, and then A.
std::vector<LoraTrainer::Adapted> LoraTrainer::draw_factors() {
  std::vector<Adapted> adapted;
  const std::size_t r = options_.rank;
  Random random(options_.seed);
  model_.change_weights([&](ModelWeights& weights) {
    for_each_adapted(
        options_, model_.config(), weights, [&](const TensorInfo& info, const Tensor<2>& w) {
          const std::string name = name_in_file(info);
          expect(
              r >= 1 && r <= std::min(info.rows, info.cols), "rank of the adapter",
              fmt::format("1 to {}, the smaller side of {}", std::min(info.rows, info.cols), name),
              r);
          Tensor<2> a = random.normal<2>({r, info.cols}, 1 / std::sqrt(float(info.cols)));
          Tensor<2> b = xt::zeros<float>({info.rows, r});
          Tensor<2> da = xt::zeros_like(a), db = xt::zeros_like(b);
          adapted.push_back(
              {info, name, w, {std::move(a), std::move(da)}, {std::move(b), std::move(db)}});
        });
  });
  for (const std::string& name : options_.matrices)
    if (std::ranges::none_of(adapted, [&](const Adapted& of) { return of.info.name == name; }))
      throw std::invalid_argument(fmt::format(
          "matrices to adapt: wanted names such as w_q, w_v or w_down, got {}", printable(name)));
  if (adapted.empty()) throw std::invalid_argument("matrices to adapt: wanted at least one");
  return adapted;
}

/// All A and B, or all their gradients.
std::vector<ListedTensor> LoraTrainer::list_of(Tensor<2> Factor::*part) {
  std::vector<ListedTensor> list;
  for (Adapted& of : adapted_)
    for (Factor* factor : {&of.a, &of.b}) {
      Tensor<2>& x = factor->*part;
      list.push_back({{of.info.name, x.shape(0), x.shape(1), Role::matrix, of.info.layer},
                      {x.data(), x.size()}});
    }
  return list;
}

/// W = W₀ + s·B·A.
void LoraTrainer::put_weights() {
  model_.change_weights([&](ModelWeights& weights) {
    std::size_t i = 0;
    for_each_adapted(options_, model_.config(), weights, [&](const TensorInfo&, Tensor<2>& w) {
      const Adapted& of = adapted_[i++];
      add_change({of.name, of.a.x, of.b.x}, options_.alpha, of.base, w);
    });
  });
}

/// dB = s·dW·Aᵀ and dA = s·Bᵀ·dW.
void LoraTrainer::pull_gradients() {
  const float s = options_.alpha / float(options_.rank);
  std::size_t i = 0;
  for_each_adapted(options_, model_.config(), gradients_,
                   [&](const TensorInfo&, const Tensor<2>& dw) {
                     Adapted& of = adapted_[i++];
                     matmul_bt(dw, of.a.x, of.b.dx, s);
                     add_matmul_at(Tensor<2>(s * of.b.x), dw, of.a.dx);
                   });
}

StepReport LoraTrainer::step_on(const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  StepReport report = scaled_step_on(batch, 1 / float(learned));
  report.loss /= double(learned);
  return report;
}

StepReport LoraTrainer::scaled_step_on(const Batch& batch, float scale) {
  for_each_adapted(options_, model_.config(), gradients_,
                   [](const TensorInfo&, Tensor<2>& dw) { dw.fill(0); });
  optimizer_.begin_step();
  const double sum = passes_.add(model_, batch, scale, gradients_);
  pull_gradients();
  const StepReport report = optimizer_.end_step(sum);
  put_weights();
  return report;
}

double LoraTrainer::loss_of(const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  return passes_.loss(model_, batch) / double(learned);
}

Adapter LoraTrainer::adapter() const {
  Adapter adapter{std::string(architecture_name(model_.config().block)), options_.alpha, {}};
  for (const Adapted& of : adapted_) adapter.changes.push_back({of.name, of.a.x, of.b.x});
  return adapter;
}

std::size_t LoraTrainer::parameters() const {
  std::size_t count = 0;
  for (const Adapted& of : adapted_) count += of.a.x.size() + of.b.x.size();
  return count;
}

}  // namespace t2t
