// The program's task --model: a file of gpt-oss or SmolLM3, which chapter 10 does not read.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Loads the file, prints its sizes, the likeliest tokens after ids ("3,14,15"), and `most` more,
/// each the likeliest. Words are the file's own, if it has a vocabulary. in_integers: experts in
/// MXFP4 are multiplied as integers. Throws std::runtime_error for a file of another architecture,
/// and as the readers and forward do.
void run_file(const std::string& path, const std::string& ids, std::size_t most, bool in_integers);

}  // namespace t2t
