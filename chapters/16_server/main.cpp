// Shows which tokens an answer in JSON may have next. With --serve it is a server, and with --load
// many clients of a server.
#include "16_server/program/run_server.hpp"

int main(int argc, char** argv) { return t2t::run_server(argc, argv, t2t::solutions); }
