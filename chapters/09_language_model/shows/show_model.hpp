// What an untrained model does: the tensors that flow through it, what it writes, its loss; and
// which tokens the filters of sampling keep. For main.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "09_language_model/sampling.hpp"
#include "program/program.hpp"

namespace t2t {

void show_flow(const Program& program, const Model& model, const std::vector<int>& ids);

void show_speech(const Model& model, const std::vector<int>& prompt, std::size_t tokens,
                 const Sampling& flags, std::size_t seed);

void show_loss(const Model& model, const std::vector<int>& ids);

void show_filters();

}  // namespace t2t
