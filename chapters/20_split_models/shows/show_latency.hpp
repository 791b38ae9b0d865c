// When several ranks generate a token faster than one, by formula.
#pragma once

namespace t2t {

/// For SmolLM2-135M and LLaMA-2-7B on some numbers of ranks: how long the fullest rank reads its
/// weights, how many messages and bytes a token costs, and the latency of a message below which the
/// ranks are faster than one, at the bandwidths of memory and links that it prints.
void show_latency();

}  // namespace t2t
