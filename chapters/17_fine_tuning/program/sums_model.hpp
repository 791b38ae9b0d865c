// A small model that is taught sums before it learns from preferences or rewards, and how well it
// answers. For the tasks --preferences and --rewards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "17_fine_tuning/rewards/sums.hpp"

namespace t2t {

/// What is to be learned as the answer to a sum, without its end mark.
using SumTeacher = std::function<std::string(const Sum& sum, Random& random)>;

/// An untrained model, taught by as many steps of supervised fine-tuning, 128 sums each.
Model taught_sums(const std::vector<Sum>& sums, std::size_t steps, std::uint64_t seed,
                  const SumTeacher& teacher);

/// How a model answers some sums, `m` times each.
struct SumScores {
  double pass_1, pass_8, pass_m;
  double length;                   // mean tokens of an answer, its end included
  std::vector<std::size_t> right;  // of m answers, for each sum
};
SumScores score_sums(const Model& model, const std::vector<Sum>& sums, std::size_t m,
                     std::uint64_t seed);

}  // namespace t2t
