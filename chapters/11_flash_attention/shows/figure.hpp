// The figures of the pages: which blocks of scores are computed, and how fast the rungs of the
// ladder of GPU kernels are. For main.cpp.
#pragma once

#include <filesystem>
#include <string>

namespace t2t {

/// The blocks of 256 causal queries and keys as SVG, numbered in the order of their computation.
/// Their sizes are those of the kernel, for a group of three heads.
std::string figure_of_blocks();

/// The speeds of a record of ./learn gpu as bars, as SVG, with that GPU's measured limits. Rungs
/// that the record lacks are named as not measured. Throws std::runtime_error, naming the record,
/// when it is none.
std::string figure_of_ladder(const std::filesystem::path& record);

}  // namespace t2t
