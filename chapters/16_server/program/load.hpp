// Many clients at once, to see how a server behaves under load: this server, or any other with the
// same paths.
//
// Requests arrive at random, on average `rate` per second, with exponential times between them (a
// Poisson process, an open-loop load), whether earlier ones have been answered or not. People
// arrive like this. A fixed number of clients, each waiting for its answer, would hide a slow
// server, because nobody asks while it is slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace t2t {

struct Load {
  std::string url;            // "http://127.0.0.1:8080"
  double rate = 2;            // requests per second
  std::size_t requests = 64;  // in all
  std::size_t prompt = 200;   // mean length of a prompt, in words
  std::size_t tokens = 64;    // mean limit on an answer's length
  std::uint64_t seed = 1;
};

/// What became of one request. Times are in seconds since its scheduled sending.
struct RequestResult {
  bool answered = false;
  std::string error;            // why it was not
  double first = 0;             // to the first text
  double end = 0;               // to the end of the answer
  std::vector<double> between;  // from each text to the next
  std::size_t tokens = 0;       // as the server counts them
  std::size_t prompt_tokens = 0;
};

struct LoadResult {
  std::vector<RequestResult> requests;
  double seconds = 0;  // from the first request to the end of the last answer
};

/// Sends all requests and waits for all answers. Lengths are drawn from an exponential distribution
/// with this mean, and clipped to at least 1 and at most 4 times the mean. Throws
/// std::runtime_error if nobody answers at the url.
LoadResult run_load(const Load& load);

/// The smallest value that is at least as large as a share p of all values; 0 without values.
double percentile(std::vector<double> values, double p);

}  // namespace t2t
