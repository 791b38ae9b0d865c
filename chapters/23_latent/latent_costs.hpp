// What latent attention stores for a token, and what it computes for a cached position, by formula.
//
//   a query and a position   absorbed: 2·H·(2·K + R)      expanded: 2·H·(N + R + Dv)
//   expanding a position     2·H·K·(N + Dv), once for all queries
//
// Operations are multiplications and additions of the products; softmax is left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "23_latent/latent_attention.hpp"

namespace t2t {

/// The settings of the attention in two published models. C and Q are those of the model.
LatentSettings deepseek_v3();
LatentSettings deepseek_v2_lite();

/// A published model and how many elements its caches hold for each token, in all layers.
struct ModelCache {
  std::string name, formula;
  std::size_t elements;
};
std::vector<ModelCache> model_caches();

/// Operations for one query of every head and one cached position.
std::size_t absorbed_operations(const LatentSettings& settings);
std::size_t expanded_operations(const LatentSettings& settings);
/// Operations that make every head's key and value of one position.
std::size_t expanding_operations(const LatentSettings& settings);

/// From how many queries on a call has fewer operations if it expands each position:
/// K·(N + Dv) / (2·K − N − Dv), rounded up. Throws std::invalid_argument unless N + Dv is below
/// 2·K, since otherwise the absorbed form never has more.
std::size_t queries_worth_expanding(const LatentSettings& settings);

}  // namespace t2t
