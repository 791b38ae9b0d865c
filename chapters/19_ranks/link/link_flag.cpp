#include "19_ranks/link/link_flag.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "program/print.hpp"
#include "utf8_start.hpp"

namespace t2t {

/// The number that is all of the text, or NaN.
static double number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : NAN;
}

Link link_of_flag(const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::string_view all = text;
  const Link link = {number_of(all.substr(0, comma)),
                     comma == text.npos ? NAN : number_of(all.substr(comma + 1))};
  if (!(link.alpha >= 0 && link.beta > 0 && std::isfinite(link.alpha)))
    throw std::invalid_argument(
        "--link: wanted seconds and bytes per second, such as 30e-6,10e9, got " + printable(text));
  return link;
}

std::string link_text(const Link& link) {
  return fmt::format("a link of {} and {:g} GB/s", duration_text(link.alpha), 1e-9 * link.beta);
}

}  // namespace t2t
