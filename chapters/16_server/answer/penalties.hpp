// How a request makes tokens likelier or less likely, before one is chosen:
//
//   logits[v] ← logits[v] + bias[v] − frequency · n(v) − presence · [n(v) > 0]
//
// where n(v) counts v in the answer so far.
#pragma once

#include <map>

#include "16_server/structured/token_filter.hpp"

namespace t2t {

struct Penalties {
  double presence = 0, frequency = 0;
  std::map<int, double> bias = {};  // by id, which must be in [0, V)
};

/// A filter for Request::filter that changes the logits, and then applies the other filter, if
/// there is one.
AnswerFilter with_penalties(const Penalties& penalties, AnswerFilter other);

}  // namespace t2t
