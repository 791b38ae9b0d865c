// The show's parts on what attention replaced: how much of token 0 arrives at token t.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_recurrence(const Program& program);

void show_lstm(const Program& program);

}  // namespace t2t
