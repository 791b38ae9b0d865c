#include "09_language_model/fast/state_options.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "shapes.hpp"

namespace t2t {

void expect_state_options(const Config& config, std::size_t S, const StateOptions& options) {
  expect_config(config);
  expect(S >= 1 && S <= config.T_max, "S, the positions to make room for",
         "1 to T_max = " + std::to_string(config.T_max), S);
  expect(options.chunk >= 1, "chunk, the rows of a pass", "at least 1", options.chunk);
  expect(options.sequences >= 1, "sequences", "at least 1", options.sequences);
  const std::vector<Difference> differences = differences_from_llama(config);
  if (!options.network && !options.pass &&
      std::ranges::find(differences, Difference::experts) != differences.end())
    throw std::invalid_argument("network: wanted one, since the model has experts, got none");
}

std::size_t rows_of_a_pass(std::size_t S, const StateOptions& options) {
  if (options.pass) return 1;
  return options.sequences > options.chunk / S ? options.chunk : S * options.sequences;
}

}  // namespace t2t
