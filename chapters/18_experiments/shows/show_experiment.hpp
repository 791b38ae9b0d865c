// Experiments: their list, and their sides' held-out losses. For main.cpp.
#pragma once

#include <string>

#include "tensor.hpp"

namespace t2t {

/// The experiment of that name, or all experiments. Throws std::invalid_argument, with all names,
/// for another name.
int show_experiments(const std::string& name, const std::string& text, std::size_t seeds);

/// The name, the question and the sides of each experiment.
void list_experiments();

/// An experiment that takes seconds, on a part of the text. Returns the held-out losses, [sides,
/// seeds].
Tensor<2> show_short_experiment(const std::string& text);

}  // namespace t2t
