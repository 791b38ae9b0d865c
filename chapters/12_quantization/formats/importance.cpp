#include "12_quantization/formats/importance.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "09_language_model/accounts/accounts.hpp"
#include "linalg.hpp"
#include "memory.hpp"

namespace t2t {

namespace {
/// Squares of a matrix's inputs, added up over all tokens.
struct Inputs {
  std::size_t tokens = 0;
  std::vector<double> squares;  // [in]

  void add(ConstMatrix x) {
    for (std::size_t t = 0; t < x.rows; ++t) {
      const ConstRow x_t = x.row(t);
#pragma omp simd
      for (std::size_t c = 0; c < x.cols; ++c) squares[c] += double(x_t[c]) * x_t[c];
    }
    tokens += x.rows;
  }

  std::vector<float> mean_squares() const {
    const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
    const double least = 1e-3 * all / double(squares.size());
    std::vector<float> means;
    for (const double square : squares)
      means.push_back(float(std::max(square, least) / double(tokens)));
    return means;
  }
};

/// A weight of floats that records its inputs.
class WatchedWeight : public PackedWeight {
 public:
  WatchedWeight(Tensor<2> floats, const std::shared_ptr<Inputs>& inputs)
      : PackedWeight(floats.shape(0), floats.shape(1), sizeof(float) * floats.size()),
        w_(std::move(floats)),
        inputs_(inputs) {
    inputs->squares.resize(cols);
  }

  void product(ConstMatrix x, Matrix y) const override {
    inputs_->add(x);
    matmul_bt(x, ConstMatrix(w_), y);
  }
  void row(std::size_t r, Row to) const override { std::ranges::copy(t2t::row(w_, r), to.begin()); }

 private:
  Tensor<2> w_;  // [rows, cols]
  std::shared_ptr<Inputs> inputs_;
};
}  // namespace

Importance importance_of(const GgufFile& file, std::span<const int> ids, std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window) {
  expect_memory(sizeof(float) * double(total(count_parameters(read_config(file)))), file.name(),
                "wanted a smaller model");
  std::map<std::string, std::shared_ptr<Inputs>> inputs;
  const Model model = read_model(file, [&](const GgufTensor& tensor, const TensorInfo& info) {
    Tensor<2> floats = floats_of(tensor, info.rows, info.cols);
    if (info.role == Role::positions || info.role == Role::router) return Weight(std::move(floats));
    const auto of_tensor = std::make_shared<Inputs>();
    inputs.emplace(tensor.name, of_tensor);
    return Weight(std::make_shared<WatchedWeight>(std::move(floats), of_tensor));
  });
  perplexity_of(ids, model, window, after_window);

  Importance importance;
  for (const auto& [name, of_tensor] : inputs)
    if (of_tensor->tokens > 0) importance.emplace(name, of_tensor->mean_squares());
  return importance;
}

}  // namespace t2t
