// What Newton–Schulz iteration makes of singular values, and Muon compared with AdamW.
#pragma once

#include <string>

namespace t2t {

/// what: "values" prints singular values step by step, and a matrix worked by hand; "short"
/// compares the optimizers on small models in some seconds; "long" does so on larger ones, in
/// minutes, and "longer" in four times as many steps, with one seed. Returns the exit status.
/// Throws std::invalid_argument for another word.
int show_muon(const std::string& what, const std::string& text);

}  // namespace t2t
