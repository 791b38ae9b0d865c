// Shows which tokens an answer in JSON may have next. With --serve it is a server, and with --load
// many clients of a server.
#include "16_server/program/serve_task.hpp"
#include "16_server/shows/show_load.hpp"
#include "16_server/shows/show_structured.hpp"
#include "program/program.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  Program program("16_server",
                  "A server that answers over HTTP, and answers that keep to JSON or to a schema.");
  ServeFlags serve_flags;
  LoadFlags load_flags;
  add_flags(program, serve_flags);
  add_flags(program, load_flags);
  program.has_solutions(solutions);
  const Task tour = {"", {"seed", "save"}, [&] {
                       show_structured();
                       return 0;
                     }};
  return program.run_tasks(argc, argv,
                           {{serve_task(serve_flags), load_task(program, load_flags), tour}});
}
