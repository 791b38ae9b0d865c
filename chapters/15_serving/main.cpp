// Shows how many texts share one model: pages for their keys and values, a scheduler that brings
// them on step by step, sums in one order, so that no text changes because others are there, and
// drafts of the next tokens, and answers in JSON. With --serve it is a server, and with --load many
// clients of one.
#include "15_serving/server/serve_task.hpp"
#include "15_serving/shows/show_chunks.hpp"
#include "15_serving/shows/show_load.hpp"
#include "15_serving/shows/show_pages.hpp"
#include "15_serving/shows/show_same_bits.hpp"
#include "15_serving/shows/show_speculation.hpp"
#include "15_serving/shows/show_structured.hpp"
#include "program/program.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Program program("15_serving",
                  "Many texts, one model: keys and values in pages, a scheduler of steps, and the "
                  "same bits for each text whatever others are served beside it.");
  ServeFlags serve_flags;
  LoadFlags load_flags;
  add_flags(program, serve_flags);
  add_flags(program, load_flags);
  program.has_answers(answers);
  const Task tour = {"", {"seed", "save"}, [&] {
                       show_pages();
                       show_waste(program);
                       show_chunks();
                       show_same_bits(program);
                       show_drafts();
                       show_speedup();
                       show_structured();
                       return 0;
                     }};
  return program.run_tasks(argc, argv,
                           {{serve_task(serve_flags), load_task(program, load_flags), tour}});
}
