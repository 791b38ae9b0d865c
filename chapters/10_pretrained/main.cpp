// Loads a real model into the block of chapter 08, chats with it, checks and times it, and finds
// where another implementation first differs from it.
#include "10_pretrained/program/show_tour.hpp"
#include "10_pretrained/program/tasks.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Flags flags;
  Program program("10_pretrained",
                  "Loads a real language model into the block of chapter 08, chats with it and "
                  "checks it. Without flags: a short tour.");
  add_flags(program, flags);
  program.has_solutions(solutions);
  const Task tour = {"", {"model", "seed"}, [&] { return show_tour(flags, program.seed()); }};
  return program.run_tasks(argc, argv, pretrained_tasks(program, flags, tour));
}
