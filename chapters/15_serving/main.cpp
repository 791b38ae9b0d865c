// Shows how many texts share one model: pages for their keys and values, a scheduler that brings
// them on step by step, and sums in one order, so that no text changes because others are there.
#include "15_serving/shows/show_chunks.hpp"
#include "15_serving/shows/show_pages.hpp"
#include "15_serving/shows/show_same_bits.hpp"
#include "program/program.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Program program("15_serving",
                  "Many texts, one model: keys and values in pages, a scheduler of steps, and the "
                  "same bits for each text whatever others are served beside it.");
  program.has_answers(answers);
  return program.run(argc, argv, [&] {
    show_pages();
    show_waste(program);
    show_chunks();
    show_same_bits(program);
  });
}
