// The chapter's figure: AdamW's and Muon's training loss over the steps.
#pragma once

#include <span>
#include <string>

namespace t2t {

/// Trains both optimizers with three seeds, at the rates that `--muon long` finds, and returns the
/// figure as SVG: the mean of each ten steps and seeds, and the range of the seeds. It takes a
/// minute or two.
std::string figure_of_muon(std::span<const int> train);

}  // namespace t2t
