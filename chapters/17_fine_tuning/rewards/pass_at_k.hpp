// pass@k: the probability that at least one of k answers is right, estimated from m answers of
// which r are right.
//
//   pass@k = 1 − C(m − r, k) / C(m, k)
//
// C(m − r, k) of the C(m, k) choices of k answers hold no right one. Its mean over many draws is
// exactly the probability, for any m of at least k; 1 − (1 − r/m)^k is too small on average,
// because it draws the same answer more than once. Chen et al. 2021, "Evaluating Large Language
// Models Trained on Code".
#pragma once

#include <cstddef>
#include <span>

namespace t2t {

/// For one question. Throws std::invalid_argument unless 1 ≤ k ≤ m and r ≤ m.
double pass_at_k(std::size_t m, std::size_t r, std::size_t k);

/// The mean over questions, of each of which m answers were drawn. Throws also when there is none.
double mean_pass_at_k(std::size_t m, std::span<const std::size_t> right, std::size_t k);

}  // namespace t2t
