#include "cuda_on_cpu/grid.hpp"

#include "cuda_on_cpu/machine.hpp"

namespace t2t::stand_in {

// A fence counts for all that its thread does until its next atomic function, which is more than
// CUDA promises, and the atomic function before it is the one whose news it receives.

void before_atomic([[maybe_unused]] void* at) {
#ifdef T2T_RACE_DETECTOR
  Machine& e = machine();
  if (is_shared(at, 1)) return;
  if (e.static_shared.empty()) e.blocks_meet = true;
  if (e.current->fenced) release(at);
#endif
}

void after_atomic([[maybe_unused]] void* at) {
#ifdef T2T_RACE_DETECTOR
  if (is_shared(at, 1)) return;
  machine().current->fenced = false;
  machine().current->counted_at = at;
#endif
}

void fence_grid() {
  Thread& self = *machine().current;
  if (self.counted_at != nullptr) acquire(self.counted_at);
  self.counted_at = nullptr;
  self.fenced = true;
}

}  // namespace t2t::stand_in
