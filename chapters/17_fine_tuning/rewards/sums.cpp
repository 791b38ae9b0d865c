#include "17_fine_tuning/rewards/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "random.hpp"
#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

std::vector<int> sum_ids(std::string_view text) {
  std::vector<int> ids;
  for (const char symbol : text) {
    const std::size_t id = sum_symbols.find(symbol);
    if (id == sum_symbols.npos)
      throw std::invalid_argument(fmt::format("symbols of a sum: wanted some of {}, got {}",
                                              sum_symbols, printable({&symbol, 1})));
    ids.push_back(int(id));
  }
  return ids;
}

std::string sum_text(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text += sum_symbols.at(std::size_t(id));
  return text;
}

std::string sum_prompt(const Sum& sum) { return fmt::format("{:02}+{:02}=", sum.a, sum.b); }

std::string sum_answer(const Sum& sum, int digits) {
  return fmt::format("{:0{}}", sum.a + sum.b, digits);
}

Transcript sum_lesson(const Sum& sum, std::string_view answer) {
  Transcript lesson;
  append(lesson, sum_ids(sum_prompt(sum)), false);
  append(lesson, sum_ids(answer), true);
  append(lesson, std::vector{sum_end}, true);
  return lesson;
}

double right_answer(const Sum& sum, const std::vector<int>& answer) {
  return sum_text(answer) == sum_answer(sum) + "." ? 1 : 0;
}

double begins_right(const Sum& sum, const std::vector<int>& answer) {
  std::string text = sum_text(answer);
  if (!text.ends_with('.')) return 0;
  text.pop_back();
  return sum_answer(sum).starts_with(text) ? 1 : 0;  // for sum_answer(sum) == text
}

SumsSplit split_sums(std::size_t held_out, std::uint64_t seed) {
  std::vector<Sum> all;
  for (int a = 0; a < 100; ++a)
    for (int b = 0; b < 100; ++b) all.push_back({a, b});
  expect(held_out < all.size(), "sums that are held out", "below 10000", held_out);
  // Fisher and Yates: each of the sums that are left is as likely to be the next one.
  Random random(seed);
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    std::swap(all[i], all[i + std::size_t(random.next_uniform() * double(all.size() - i))]);
  const auto first = all.begin(), train = first + std::ptrdiff_t(held_out);
  return {{first, train}, {train, all.end()}};
}

Config sums_config() {
  const std::size_t V = sum_symbols.size();
  Config config = resized(preset("foundry-small"), {.C = 64, .L = 2, .H = 4, .G = 4, .V = V});
  config.T_max = 12;
  config.tied = true;
  return config;
}

}  // namespace t2t
