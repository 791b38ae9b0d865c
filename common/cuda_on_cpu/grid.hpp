// What the blocks of a launch tell each other: atomics on global memory, and fences.
//
// On a GPU blocks run at the same time, and nothing orders their accesses but this: a thread calls
// __threadfence() and then an atomic function, and another thread calls an atomic function on the
// same number after it, and then __threadfence(). What the first did before its fence can be read
// by the second after its own.
//
// The stand-in runs one block after another, so that reads always find what earlier blocks wrote.
// In a build with the race detector a launch is therefore watched more closely from its first
// atomic function on global memory on: each later block has threads and dynamic shared memory of
// its own, which nothing but fences orders after those of earlier blocks. A kernel with static
// shared memory is not watched like this, since all of its blocks share the one copy.
#pragma once

namespace t2t::stand_in {

/// Called before and after each atomic function.
void before_atomic(void* at);
void after_atomic(void* at);

void fence_grid();

}  // namespace t2t::stand_in

inline void __threadfence() { t2t::stand_in::fence_grid(); }
