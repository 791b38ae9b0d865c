#include "08_block/fast/trace.hpp"

#include <fmt/format.h>

#include <array>

namespace t2t {

std::string_view part_name(Part part) {
  static constexpr std::array<std::string_view, part_count> names = {"embedding",
                                                                     "attention_norm",
                                                                     "q",
                                                                     "k",
                                                                     "v",
                                                                     "q_rotated",
                                                                     "k_rotated",
                                                                     "heads",
                                                                     "attention",
                                                                     "post_attention_norm",
                                                                     "x_plus_attention",
                                                                     "feed_forward_norm",
                                                                     "gate",
                                                                     "up",
                                                                     "hidden",
                                                                     "feed_forward",
                                                                     "post_feed_forward_norm",
                                                                     "x_plus_feed_forward",
                                                                     "final_norm",
                                                                     "logits"};
  return names[std::size_t(part)];
}

bool is_of_block(Part part) {
  return part != Part::embedding && part != Part::final_norm && part != Part::logits;
}

std::string trace_name(Part part, std::size_t layer) {
  return is_of_block(part) ? fmt::format("layer {} {}", layer, part_name(part))
                           : std::string(part_name(part));
}

}  // namespace t2t
