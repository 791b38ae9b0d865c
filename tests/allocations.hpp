// Every allocation of this program by new, counted, xtensor's among them: for checks that a call
// makes none. Include it in one file of a program.
#pragma once

#include <cstdlib>
#include <new>

static std::size_t allocations = 0;
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
