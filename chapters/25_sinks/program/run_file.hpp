// The program's task --model: a file of gpt-oss or SmolLM3, which chapter 10 does not read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace t2t {

/// "3,14,15" as ids. Throws std::invalid_argument for anything else.
std::vector<int> ids_from(const std::string& text);

/// Loads the file, prints its sizes, the likeliest tokens after these ids, and `most` more tokens,
/// each the likeliest. Words are the file's own, if it has a vocabulary. in_integers: experts in
/// MXFP4 are multiplied as integers. Throws std::runtime_error for a file of another architecture,
/// and as the readers and forward do.
void run_file(const std::string& path, const std::vector<int>& ids, std::size_t most,
              bool in_integers);

}  // namespace t2t
