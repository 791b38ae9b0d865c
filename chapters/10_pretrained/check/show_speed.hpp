// The model's speed compared with the limits of this machine. For main.cpp.
#pragma once

#include "10_pretrained/chat/session.hpp"

namespace t2t {

/// Times prefill and decode of this many tokens.
void show_speed(const Session& session, std::size_t prompt, std::size_t tokens);

}  // namespace t2t
