// Traces on disk, one .npy file for each intermediate result, and the first place where two differ.
//
//   layer_0_q_rotated.npy      they differ when |a_t − b_t| > tolerance·|a_t| for some token t
//
// Two correct implementations of a model agree to rounding in each part. A mistake makes one part
// differ, and then all later parts differ too, so only the first one matters. Names that one folder
// lacks are skipped, so a reference may hold only some parts. Chapter 12 uses them too.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "08_block/fast/trace.hpp"

namespace t2t {

/// Writes each value to folder/name.npy, with underscores for spaces. For a forward pass of one
/// chunk: a second chunk would replace the files of the first.
Trace trace_to(const std::filesystem::path& folder);

/// Sorts names in the order of computation: "embedding", "layer_2_q", "layer_10_q", "final_norm",
/// "logits". Other names come last.
void sort_by_order(std::vector<std::string>& names);

/// The first difference of two traces.
struct Parting {
  std::string name;     // of the part
  std::string why;      // "shapes [4, 576] and [4, 9, 64]" when those differ, else empty
  std::size_t token;    // the first one that differs too much
  std::size_t channel;  // of that token, the one that differs most
  float a, b;           // the two values there
  double distance;      // |a_t − b_t| / |a_t| of that token
};
struct Comparison {
  std::vector<std::string> compared;     // in order, the differing one last
  std::vector<std::string> only_in_one;  // skipped
  std::optional<Parting> parting;        // none: they agree
  double worst = 0;                      // the largest distance in the parts that agree
};
/// Throws std::runtime_error, naming the folder or file, when one can't be read or they have no
/// part in common; std::invalid_argument unless tolerance is above 0.
Comparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b,
                          double tolerance = 1e-3);

/// What usually makes traces differ there. Mistakes in positions leave the first token right: then
/// first_token_agrees is true.
std::string usual_causes(std::string_view name, bool first_token_agrees);

}  // namespace t2t
