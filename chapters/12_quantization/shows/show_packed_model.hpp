// What packed weights do to a model: its size, its logits, its answer and its speed. For main.cpp.
#pragma once

#include "10_pretrained/chat/session.hpp"

namespace t2t {

/// The logits of one text, by the matrices' format, compared with those of floats.
void show_logits(const Session& packed);

/// One matrix and one token, with each kind of instructions that this processor has.
void show_instructions();

}  // namespace t2t
