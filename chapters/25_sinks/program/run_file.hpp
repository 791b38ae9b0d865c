// The program's task --model: a file of gpt-oss or SmolLM3, which chapter 10 does not read.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

struct SinkFileFlags {
  std::string model;        // the file's path
  std::string prompt;       // a text to continue; empty: ids
  std::string ids = "0";    // such as "3,14,15"
  std::size_t tokens = 16;  // how many follow
  bool integers = false;    // experts in MXFP4 are multiplied as integers
};

/// Loads the file, prints its sizes, the likeliest tokens after the prompt or the ids, and those
/// that follow, each the likeliest. Words are the file's own, if it has a vocabulary. Throws
/// std::runtime_error for a file of another architecture and for a prompt without a vocabulary that
/// chapter 10 reads, and as the readers and forward do.
void run_file(const SinkFileFlags& flags);

}  // namespace t2t
