// Attention sinks: a learned score in each head that takes weight and adds nothing.
#include "25_sinks/shows/show_sinks.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Program program("25_sinks",
                  "A sink is a learned score in each head that competes with the keys and has no "
                  "value. Shows what it takes of a row's weight, and a head that learns one.");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    show_by_hand();
    program.save("shares", show_shares(program.seed()));
    show_learned(program.seed());
  });
}
