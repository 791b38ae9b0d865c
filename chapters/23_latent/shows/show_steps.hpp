// A text through one layer: all at once, and in steps over a cache of latents.
#pragma once

#include "23_latent/latent_attention.hpp"
#include "program/program.hpp"

namespace t2t {

/// Throws as expect_latent does.
void show_steps(const Program& program, const LatentSettings& settings, std::size_t most_tokens);

/// Times one step over a long cache, compared with reading the cache.
void show_latent_speed();

}  // namespace t2t
