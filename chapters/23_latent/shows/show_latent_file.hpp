// A file of DeepSeek's architecture: its sizes, its cache, and a text or ids that it continues.
#pragma once

#include <cstddef>
#include <string>

#include "program/program.hpp"

namespace t2t {

struct LatentFileFlags {
  std::string model, prompt, ids;
  std::size_t tokens = 64;  // to generate, at most
  bool floats = false;      // expands the networks' weights into floats
};

/// Returns the exit status. Throws as read_latent_model does, and std::invalid_argument for a
/// prompt that the model cannot take.
int show_latent_file(const Program& program, const LatentFileFlags& flags);

}  // namespace t2t
