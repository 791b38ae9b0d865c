// Counts of mixtures: active parameters, and the experts that a batch touches.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/config.hpp"

namespace t2t {

/// The parameters that one token is multiplied by: all but those of the experts that were not
/// chosen for it. Embeddings and norms count. Throws as count_parameters does, and
/// std::invalid_argument when the layers have settings of their own.
std::size_t active_parameters(const Config& config);

/// How many different experts T tokens choose on average, if each chooses k of E at random: E·(1 −
/// (1 − k/E)^T). Throws std::invalid_argument unless k is from 1 to E.
double experts_touched(std::size_t E, std::size_t k, std::size_t T);

/// Published models, in the settings of chapter 08's block.
struct PublishedMixture {
  std::string name;
  Config config;
};
std::vector<PublishedMixture> published_mixtures();

}  // namespace t2t
