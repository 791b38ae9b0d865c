// Tables of the parameters, FLOPs and bytes of each preset, counted without making a model. For
// main.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "09_language_model/config.hpp"

namespace t2t {

using Named = std::pair<std::string, Config>;

void show_parameters(const std::vector<Named>& models);

void show_rules(const std::vector<Named>& models);

void show_work(const std::vector<Named>& models);

void show_memory(const std::vector<Named>& models);

}  // namespace t2t
