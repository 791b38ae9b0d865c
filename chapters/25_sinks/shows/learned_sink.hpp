// A head that must find something or say nothing, trained by gradient descent with and without a
// sink.
//
// Half of the queries are a key with noise added, and should get that key's value. The other half
// match no key, and should get 0. The head learns two parameters: a gain, which multiplies all
// queries, and its sink.
#pragma once

#include <cstdint>

namespace t2t {

struct LearnedSink {
  float gain, sink;              // the sink is −infinity if there is none
  double matched, unmatched;     // mean squared errors of both halves
  double to_sink, to_sink_else;  // mean weight of the sink, of matched and of other queries
};
LearnedSink learn_sink(bool with_sink, std::uint64_t seed);

}  // namespace t2t
