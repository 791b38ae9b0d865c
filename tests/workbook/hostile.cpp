// A test program whose part misbehaves as T2T_HOSTILE says: workbook_test.py looks at what ./learn
// check makes of it.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
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

TEST_CASE("a part that behaves") { CHECK(1 + 1 == 2); }

TEST_CASE("by hand: a part that misbehaves") {
  if (way == "loop")
    for (volatile bool on = true; on;) {
    }
  if (way == "crash") *reinterpret_cast<volatile int*>(std::getenv("T2T_NOWHERE")) = 1;
  if (way == "stack") overflow_the_stack(way.c_str() ? &std::string(" ")[0] : nullptr);
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
  CHECK(way != "fails");
  CHECK(way != "prints");
}
