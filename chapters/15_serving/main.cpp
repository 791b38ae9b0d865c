// Shows how many sequences share one model: pages for their keys and values, a scheduler that
// advances them step by step, sums in a fixed order, so that no sequence changes because of others,
// and drafts of the next tokens.
#include <fmt/core.h>

#include <string>

#include "15_serving/shows/figure.hpp"
#include "15_serving/shows/show_chunks.hpp"
#include "15_serving/shows/show_pages.hpp"
#include "15_serving/shows/show_same_bits.hpp"
#include "15_serving/shows/show_speculation.hpp"
#include "files/files.hpp"
#include "program/program.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Program program(
      "15_serving",
      "Many sequences, one model: keys and values in pages, a scheduler that plans each step, and "
      "bit-identical results for a sequence whatever others are served beside it.");
  std::string svg;
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    if (!svg.empty()) return write_file(svg, figure_of_pages());
    show_pages();
    show_waste(program);
    show_chunks();
    show_same_bits(program);
    show_drafts();
    show_speedup();
    fmt::print("\n  Next: ./learn run 16, a server; the page: docs/15_serving.md\n");
  });
}
