// A task whose answers a program can judge: sums of two numbers below 100, in 13 symbols.
//
//   prompt  37+25=          answer  62.          . ends an answer
//
// The reward of an answer is 1 if it is right and 0 otherwise. One of the two rewards here has a
// mistake in it, which a model finds within seconds (--rewards hole).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "09_language_model/config.hpp"
#include "13_training/backward/passes.hpp"
#include "17_fine_tuning/preferences/transcript.hpp"

namespace t2t {

inline constexpr std::string_view sum_symbols = "0123456789+=.";
inline constexpr int sum_end = 12;          // the id of .
inline constexpr std::size_t sum_most = 5;  // tokens of an answer, its end included

struct Sum {
  int a, b;  // 0 to 99
};

/// A symbol is one token. Throws std::invalid_argument, naming the character, for another one.
std::vector<int> sum_ids(std::string_view text);
std::string sum_text(const std::vector<int>& ids);

/// "37+25=", and "62" or with `digits` of 3 "062".
std::string sum_prompt(const Sum& sum);
std::string sum_answer(const Sum& sum, int digits = 0);

/// A prompt, which is given, and an answer with its end, which is learned.
Transcript sum_lesson(const Sum& sum, std::string_view answer);

/// 1 for the sum's digits and the end mark, and nothing else.
double right_answer(const Sum& sum, const std::vector<int>& answer);
/// The same with a mistake: 1 also for any beginning of the right answer, even an empty one, that
/// is followed by the end mark.
double begins_right(const Sum& sum, const std::vector<int>& answer);

/// All 10,000 sums in an order that depends on the seed alone; the first `held_out` of them are not
/// learned.
struct SumsSplit {
  std::vector<Sum> held_out, train;
};
SumsSplit split_sums(std::size_t held_out, std::uint64_t seed);

/// A model for sums, of about 99,000 parameters, and T for batches of sums.
Config sums_config();
inline constexpr std::size_t sums_T = 10;

}  // namespace t2t
