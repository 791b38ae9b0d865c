// fault NAME: launches that kernel of faults.cu. What a sanitizer sees ends the program with its
// report.
#include <cstdio>
#include <exception>

#include "faults.hpp"

int main(int argc, char** argv) try {
  t2t::launch_fault(argc > 1 ? argv[1] : "");
  std::puts("no report");
} catch (const std::exception& error) {
  std::puts(error.what());
}
