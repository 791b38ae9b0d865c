#include "25_sinks/shows/learned_sink.hpp"

#include <cmath>
#include <limits>

#include "25_sinks/sink_backward.hpp"
#include "random.hpp"

namespace t2t {

static constexpr std::size_t S = 16, D = 16, half = 128, T = 2 * half, steps = 600;

namespace {

struct Lesson {
  Tensor<2> x;       // [T, D]  queries, of which the first half match a key
  Tensor<2> k, v;    // [S, D]
  Tensor<2> wanted;  // [T, D]
};

}  // namespace

static Lesson drawn(std::uint64_t seed) {
  Random random(seed);
  Lesson lesson{random.normal<2>({T, D}), random.normal<2>({S, D}), random.normal<2>({S, D}),
                xt::zeros<float>({T, D})};
  for (std::size_t t = 0; t < half; ++t)
    for (std::size_t d = 0; d < D; ++d) {
      lesson.x(t, d) = lesson.k(t % S, d) + 0.3f * lesson.x(t, d);
      lesson.wanted(t, d) = lesson.v(t % S, d);
    }
  return lesson;
}

/// The mean over the rows of one half, the first or the second.
static double mean_of_half(const Tensor<1>& rows, std::size_t which) {
  double sum = 0;
  for (std::size_t t = which * half; t < (which + 1) * half; ++t) sum += double(rows(t));
  return sum / double(half);
}

LearnedSink learn_sink(bool with_sink, std::uint64_t seed) {
  const Lesson lesson = drawn(seed);
  float gain = 1;
  Tensor<1> sinks = {with_sink ? 0 : -std::numeric_limits<float>::infinity()};
  for (std::size_t n = 0; n < steps; ++n) {
    const Tensor<2> q = gain * lesson.x;
    const Tensor<2> out = sink_attention(q, lesson.k, lesson.v, sinks(0), Mask::none);
    const Tensor<2> dout = (out - lesson.wanted) * (2.0f / float(T * D));
    const SinkGradients d =
        sink_attention_backward(q, lesson.k, lesson.v, sinks, 1, Mask::none, dout);
    const Tensor<2> along = d.q * lesson.x;
    float dgain = 0;
    for (const float value : along) dgain += value;
    constexpr float rate = 4;
    gain -= rate * dgain;
    if (with_sink) sinks(0) -= rate * d.sinks(0);
  }
  const Tensor<2> q = gain * lesson.x;
  const Tensor<2> errors =
      xt::square(sink_attention(q, lesson.k, lesson.v, sinks(0), Mask::none) - lesson.wanted);
  const Tensor<1> of_rows = xt::sum(errors, {1}) / float(D);
  const Tensor<1> taken =
      softmax_with_sink(attention_scores(q, lesson.k, Mask::none), sinks(0)).sink;
  return {gain,
          sinks(0),
          mean_of_half(of_rows, 0),
          mean_of_half(of_rows, 1),
          mean_of_half(taken, 0),
          mean_of_half(taken, 1)};
}

}  // namespace t2t
