// Traces on disk, one .npy for each part of each layer, and the first place where two part.
//
//   layer_0_q_turned.npy      parted when |a_t − b_t| > tolerance·|a_t| for some token t
//
// Two implementations of one model agree to rounding in every part. Where a mistake is made they
// part, and from there on everything differs: only the first place tells. Names that one folder
// lacks are passed over, so a reference may hold a few parts only. Chapter 12 compares by it too.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "08_block/trace.hpp"

namespace t2t {

/// Writes each value to folder/name.npy, spaces in names as underscores. For one forward pass: a
/// name that comes again, from a second chunk, replaces the first.
Trace trace_to(const std::filesystem::path& folder);

/// "embedding", "layer_2_q", "layer_10_q", "final_norm", "logits": sorted as they are made. Names
/// of no part come last.
void sort_by_order(std::vector<std::string>& names);

struct Parting {
  std::string name;     // of the part
  std::string why;      // "shapes [4, 576] and [4, 9, 64]" when those differ, else empty
  std::size_t token;    // the first that is too far off
  std::size_t channel;  // of that token, the one furthest off
  float a, b;           // the two values there
  double distance;      // |a_t − b_t| / |a_t| of that token
};
struct Comparison {
  std::vector<std::string> compared;     // in order, the parting one last
  std::vector<std::string> only_in_one;  // passed over
  std::optional<Parting> parting;        // none: they agree
  double worst = 0;                      // distance among the parts that agree
};
/// Throws std::runtime_error, naming the folder or file, when one can't be read or they have no
/// part in common; std::invalid_argument unless tolerance is above 0.
Comparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b,
                          double tolerance = 1e-3);

/// What usually makes traces part there. first_token_agrees: a mistake of positions spares it.
std::string usual_causes(std::string_view name, bool first_token_agrees);

}  // namespace t2t
