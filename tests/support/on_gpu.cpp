// on_gpu [PROGRAM arguments]: where there is a GPU it runs PROGRAM, or without one ends with 0.
// Where there is no GPU it exits with 77, which ctest counts as skipped, or with 1 when
// T2T_REQUIRE_GPU=1 says that there should be one. A GPU that can't be used is an error.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "cuda/device.hpp"

int main(int argc, char** argv) try {
  const char* required = std::getenv("T2T_REQUIRE_GPU");
  if (!t2t::has_gpu()) {
    std::puts("no GPU here");
    return required != nullptr && std::string_view(required) == "1" ? 1 : 77;
  }
  if (argc == 1) return 0;
  execv(argv[1], argv + 1);
  std::perror("on_gpu");
  return 1;
} catch (const std::exception& error) {
  std::puts(error.what());
  return 1;
}
