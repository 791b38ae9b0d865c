// Two networks that compute the product of their two input channels, a and b, in their first output
// channel: one exactly, one approximately.
//
// Gated: act(a)·b − act(−a)·b = a·b, since relu, gelu and silu all have act(a) − act(−a) = a.
// Plain: a·b = ((a + b)² − (a − b)²) / 4, each square by straight pieces between knots in [−4, 4].
#pragma once

namespace t2t {

/// The section: both networks on four pairs.
void show_product();

}  // namespace t2t
