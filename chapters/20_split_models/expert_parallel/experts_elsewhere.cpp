#include "20_split_models/expert_parallel/experts_elsewhere.hpp"

#include <memory>
#include <stdexcept>

#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {
class Elsewhere final : public PackedWeight {
 public:
  Elsewhere(std::size_t rows, std::size_t cols) : PackedWeight(rows, cols, 0) {}
  void product(ConstMatrix, Matrix) const override { refuse_use(); }
  void row(std::size_t, Row) const override { refuse_use(); }

 private:
  [[noreturn]] static void refuse_use() {
    throw std::logic_error("an expert of another rank was used");
  }
};
}  // namespace

bool is_elsewhere(const TensorInfo& info, const Config& config, std::size_t ranks,
                  std::size_t rank) {
  if (!info.expert) return false;
  const Range own = own_experts(settings_of(config, *info.layer).experts, ranks, rank);
  return *info.expert < own.begin || *info.expert >= own.end;
}

static void leave_out(const TensorInfo&, Tensor<1>&) {}  // short vectors stay
static void leave_out(const TensorInfo& info, Weight& w) {
  if (info.size() > 0) w = Weight(std::make_shared<Elsewhere>(info.rows, info.cols));
}

ModelWeights without_others_experts(ModelWeights weights, const Config& config, std::size_t ranks,
                                    std::size_t rank) {
  for (const BlockSettings& settings : settings_of_all(config))
    expect(settings.experts > 0, "experts of a layer", "at least 1", settings.experts);
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (is_elsewhere(info, config, ranks, rank)) leave_out(info, tensor);
  });
  return weights;
}

}  // namespace t2t
