// Prints the first place where two traces differ, and the usual causes. For main.cpp.
#pragma once

#include <filesystem>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "10_pretrained/check/trace_file.hpp"

namespace t2t {

/// Runs a prompt and writes its trace to a folder.
void write_trace(const Session& session, const std::vector<int>& ids,
                 const std::filesystem::path& folder, Row logits);

/// Returns whether they agree.
bool show_comparison(const Comparison& comparison);

}  // namespace t2t
