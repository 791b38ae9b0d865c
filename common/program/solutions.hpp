// The solutions to the problems on paper of a chapter's page. The chapter's code computes them, so
// that the page shows no number typed by hand.
#pragma once

#include <string>
#include <vector>

namespace t2t {

struct Solution {
  std::string problem;  // its name: "cache_of_llama_3_8b"
  std::string text;     // the way to the number, and the number
};

/// Each chapter has its own, in its solutions.cpp. Its program prints them with --solutions.
std::vector<Solution> solutions();

}  // namespace t2t
