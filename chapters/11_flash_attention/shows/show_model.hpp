// A model that reads a long prompt twice: with chapter 06's kernel, which stores whole rows of
// scores, and with flash attention. For main.cpp.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

/// A model and a prompt for it.
struct PreparedModel {
  std::string name;
  Model model;
  std::vector<int> ids;
};

/// The file's model, or, where there is no file, an untrained one of the same widths.
PreparedModel prepare(const std::string& path, const std::string& text, std::size_t T,
                      std::size_t seed);

void show_model(const PreparedModel& prepared);

}  // namespace t2t
