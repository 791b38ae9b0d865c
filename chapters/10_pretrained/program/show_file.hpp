// Prints a file's metadata, its tensors and their sizes. For main.cpp.
#pragma once

#include "10_pretrained/chat/session.hpp"

namespace t2t {

void show_metadata(const GgufFile& file);

/// Lists all tensors except those of blocks 1 and up, which have the shapes of block 0.
void show_tensors(const GgufFile& file);

/// Prints the model's sizes.
void show_summary(const Session& session);

}  // namespace t2t
