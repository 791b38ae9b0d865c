#include "12_quantization/shows/show_tour.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "10_pretrained/check/show_speed.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "12_quantization/shows/show_formats.hpp"
#include "12_quantization/shows/show_packed_model.hpp"
#include "program/print.hpp"

namespace t2t {

int show_tour(const Flags& flags) {
  show_block();
  show_errors();
  show_outlier();
  show_instructions();
  if (std::filesystem::exists(flags.model) || flags.model != default_model()) {
    const Session session = open_session(flags);
    if (flags.make_weight) show_logits(session);
    show_speed(session, 512, 128);
  } else {
    fmt::print("\n");
    print_paragraph(fmt::format(
        "The real model's file is missing ({}), so its logits and its speed are not shown; "
        "./learn weights fetches it.",
        flags.model));
  }
  fmt::print("\n");
  print_paragraph(
      "Next: the page, docs/12_quantization.md; ./learn run 12 --chat talks to the packed model.");
  return 0;
}

}  // namespace t2t
