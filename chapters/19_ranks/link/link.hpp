// What a message takes between two ranks: m bytes arrive after α + m/β seconds (Hockney 1994, "The
// communication challenge for MPP").
#pragma once

namespace t2t {

/// Between two ranks.
struct Link {
  double alpha;  // seconds of any message
  double beta;   // bytes per second
};

}  // namespace t2t
