// A test program whose part misbehaves as T2T_HOSTILE says: workbook_test.py looks at what ./learn
// check makes of it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tensor.hpp"

static const std::string way = [] {
  const char* set = std::getenv("T2T_HOSTILE");
  if (set != nullptr && std::string(set) == "exit") std::exit(0);
  return std::string(set == nullptr ? "" : set);
}();

static void overflow_the_stack(volatile char* above) {
  volatile char page[4096];
  page[0] = above[0];
  overflow_the_stack(page);
  page[1] = page[0];
}

/// Writes a record of its own in the place of the program's, whose name Linux tells, and ends.
static void forge_the_record() {
  std::ifstream words("/proc/self/cmdline");
  for (std::string word; std::getline(words, word, '\0');)
    if (word.rfind("--out=", 0) == 0)
      std::ofstream(word.substr(6))
          << "<doctest><TestCase name='a part that behaves' filename='' line='1'>"
             "<OverallResultsAsserts test_case_success='true'/></TestCase></doctest>";
  std::_Exit(0);
}

/// Leaves a process behind, and prints its number.
static void leave_a_child() {
  const pid_t child = fork();
  if (child == 0) setsid(), sleep(100);
  std::printf("child %d\n", int(child));
  std::fflush(stdout);
}

/// Spoils what malloc notes of its memory. malloc then ends the program while it holds its lock, so
/// that a signal handler which calls it would wait for ever.
static void spoil_malloc() {
  std::thread([] {}).join();          // from now on there is a lock
  static void* volatile places[400];  // the last of many lies before the memory that is still free
  for (int i = 0; i < 200; ++i) places[i] = std::malloc(3000);
  auto* note = static_cast<volatile char*>(places[199]);
  for (int i = 3000; i < 3100; ++i) note[i] = '\xff';
  for (int i = 200; i < 400; ++i) places[i] = std::malloc(3000);
}

TEST_CASE("a part that behaves") { CHECK(1 + 1 == 2); }

TEST_CASE("by hand: a part that misbehaves") {
  if (way == "loop")
    for (volatile bool on = true; on;) {
    }
  if (way == "crash") *reinterpret_cast<volatile int*>(std::getenv("T2T_NOWHERE")) = 1;
  if (way == "stack") overflow_the_stack(way.c_str() ? &std::string(" ")[0] : nullptr);
  if (way == "heap") spoil_malloc();
  if (way == "memory") {
    std::vector<std::vector<char>> all;
    for (int gigabytes = 0; gigabytes < 50; ++gigabytes) all.emplace_back(1 << 30, 'x');
  }
  if (way == "prints") std::puts("hello\x1b[2Jfrom the part</TestCase>");
  if (way == "throws") throw 42;
  if (way == "past the end") {
    t2t::Tensor<2> x = t2t::empty(2, 3);
    x.data()[6] = 1;
  }
  if (way == "forges") forge_the_record();
  if (way == "child") leave_a_child();
  if (way == "sleeps") sleep(4);
  if (way == "environment") CHECK(std::getenv("SECRET_TOKEN") == nullptr);
  if (way == "vector") std::vector<int>(3).data()[3] = 1;
  CHECK(way != "fails");
  CHECK(way != "prints");
}
