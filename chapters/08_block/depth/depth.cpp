#include "08_block/depth/depth.hpp"

#include <cmath>
#include <utility>

#include "02_normalization/rms_norm.hpp"
#include "shapes.hpp"
#include "statistics.hpp"

namespace t2t {

static double spread(const Tensor<2>& x) {
  double apart = 0, all = 0;
  for (std::size_t c = 0; c < x.shape(1); ++c) {
    double mean = 0;
    for (std::size_t t = 0; t < x.shape(0); ++t) mean += x(t, c) / double(x.shape(0));
    for (std::size_t t = 0; t < x.shape(0); ++t) {
      apart += (x(t, c) - mean) * (x(t, c) - mean);
      all += double(x(t, c)) * x(t, c);
    }
  }
  return std::sqrt(apart / all);
}

static bool has_norms(StackVariant variant) {
  return variant != StackVariant::residuals_only && variant != StackVariant::neither;
}
static bool has_residuals(StackVariant variant) {
  return variant != StackVariant::norms_only && variant != StackVariant::neither;
}

/// f's derivative at x times change, from two calls on either side of x.
template <class F>
static Tensor<2> difference(F&& f, const Tensor<2>& x, const Tensor<2>& change) {
  const float step = float(0.01 * root_mean_square(x) / root_mean_square(change));
  return (f(x + step * change) - f(x - step * change)) / (2 * step);
}

/// Random changes on their way up, each kept at a size of 1.
struct Changes {
  std::vector<Tensor<2>> now;  // [T, C] each
  std::vector<double> grown;   // what each has grown by since the input

  explicit Changes(std::vector<Tensor<2>> of_input)
      : now(std::move(of_input)), grown(now.size(), 1) {
    for (Tensor<2>& change : now) change /= float(root_mean_square(change));
  }
  /// Sends all changes of x through f.
  template <class F>
  void pass(F&& f, const Tensor<2>& x) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      // A change that has become 0 stays 0, and no step can be taken from an input of zeros.
      if (grown[i] == 0) continue;
      Tensor<2> moved = difference(f, x, now[i]);  // [T, C]
      const double growth = root_mean_square(moved);
      grown[i] *= growth;
      if (growth > 0) now[i] = moved / float(growth);
    }
  }
  /// The root mean square of all elements of all changes, at the size to which they have grown.
  double size() const {
    double squares = 0;
    for (const double factor : grown) squares += factor * factor;
    return std::sqrt(squares / double(grown.size()));
  }
};

/// One layer of the stack, with what its calls need.
class Layer {
 public:
  Layer(BlockSettings settings, StackVariant variant, const BlockWeights& weights, std::size_t T)
      : variant_(variant),
        block_(placed(settings, variant), weights),
        attention_(settings, T, T),
        scratch_(settings, T),
        functions_{.attention = std::ref(attention_)} {}

  /// The stream after this layer. [T, C]
  Tensor<2> operator()(const Tensor<2>& x, const Trace& trace = {}) {
    const bool is_block = variant_ == StackVariant::pre_norm || variant_ == StackVariant::post_norm;
    return is_block ? as_block(x, trace) : as_parts(x);
  }

 private:
  /// Attention reads a norm of x where there are norms before the parts, and x itself elsewhere.
  static BlockSettings placed(BlockSettings settings, StackVariant variant) {
    const bool before = variant == StackVariant::pre_norm || variant == StackVariant::norms_only;
    settings.norm_place = before ? NormPlace::before : NormPlace::after;
    return settings;
  }
  Tensor<2> as_block(Tensor<2> x, const Trace& trace) {
    block_rows(x, Run{0, 0, x.shape(0)}, block_, functions_, scratch_, trace);
    return x;
  }
  /// Attention's result is taken from a run of the whole block; the rest is done here.
  Tensor<2> as_parts(const Tensor<2>& x) {
    Tensor<2> y;  // [T, C]
    as_block(x, [&](Part part, std::size_t, ConstMatrix value) {
      if (part == Part::attention) y = copy_of(value);
    });
    if (has_residuals(variant_)) y += x;
    const BlockSettings& s = block_.settings();
    const BlockWeights& weights = block_.weights();
    const Tensor<2> z =
        feed_forward(has_norms(variant_) ? norm(y, weights.feed_forward_norm, s.norm, s.eps) : y,
                     weights.feed_forward, s.activation);  // [T, C]
    if (has_residuals(variant_)) return y + z;
    return z;
  }

  StackVariant variant_;
  Block block_;
  CachedAttention attention_;
  BlockScratch scratch_;
  BlockFunctions functions_;
};

std::vector<StackMeasures> measure_stack(StackVariant variant, const Tensor<2>& input,
                                         const BlockSettings& settings,
                                         const std::vector<BlockWeights>& layers,
                                         std::vector<Tensor<2>> changes) {
  expect(!changes.empty(), "changes", "at least 1", 0);
  const Tensor<1> ones = xt::ones<float>({settings.C});
  const auto last_norm = [&](const Tensor<2>& x) -> Tensor<2> {
    return has_norms(variant) ? rms_norm(x, ones, settings.eps) : x;
  };
  Tensor<2> x = input;  // [T, C]
  Changes sent(std::move(changes));
  double divided_by = 1;  // by the norms in post-norm's stream
  std::vector<StackMeasures> after;
  for (std::size_t l = 0;; ++l) {
    Changes arrived = sent;
    arrived.pass(last_norm, x);
    const double size = root_mean_square(x);
    const double direct = l > 0 && !has_residuals(variant) ? 0 : 1 / divided_by;
    after.push_back({size, spread(x), arrived.size(), has_norms(variant) ? direct / size : direct});
    if (l == layers.size()) return after;

    Layer layer(settings, variant, layers[l], input.shape(0));
    sent.pass(layer, x);
    x = layer(x, [&](Part part, std::size_t, ConstMatrix sum) {
      const bool is_sum = part == Part::x_plus_attention || part == Part::x_plus_feed_forward;
      if (variant == StackVariant::post_norm && is_sum)
        divided_by *= root_mean_square(copy_of(sum));
    });
  }
}

}  // namespace t2t
