#include "cuda_on_cpu/hopper/mbarrier.hpp"

#include <map>

#include "cuda_on_cpu/machine.hpp"

namespace t2t {
namespace stand_in {
namespace {

struct Phase {
  int arrivals;            // of a whole phase
  int missing;             // arrivals of this phase that have not come
  std::int64_t bytes = 0;  // expected, and not landed
  unsigned number = 0;     // phases that have ended
  Place made;
  // Their addresses tell ThreadSanitizer what happened before an even and before an odd phase
  // ended.
  char ended[2] = {};
};

std::map<const Mbarrier*, Phase> phases;  // of the block that runs

Phase* find(const Mbarrier* barrier) {
  const Unwatched unwatched;
  const auto found = phases.find(barrier);
  return found == phases.end() ? nullptr : &found->second;
}

Phase& phase_of(const Mbarrier& barrier, const Place& place) {
  Phase* phase = find(&barrier);
  if (phase == nullptr) fault("this mbarrier was not initialized", place);
  return *phase;
}

/// Ends the phase if nothing is missing, and wakes those who wait for its end.
bool end_if_complete(const Mbarrier& barrier, Phase& phase) {
  if (phase.missing > 0 || phase.bytes > 0) return false;
  ++phase.number;
  phase.missing = phase.arrivals;
  Machine& e = machine();
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    if (thread.mbarrier != &barrier) continue;
    thread.mbarrier = nullptr;
    thread.state = Thread::State::ready;
  }
  return true;
}

void arrive(const Mbarrier& barrier, int bytes, const Place& place) {
  Phase& phase = phase_of(barrier, place);
  if (phase.missing == 0) {
    fault("arrives at an mbarrier whose phase has had all of its arrivals: " +
              std::to_string(phase.arrivals),
          place);
  }
  phase.bytes += bytes;
  if (phase.bytes >= 1 << 20) fault("an mbarrier counts at most 2^20 - 1 bytes", place);
  release(&phase.ended[phase.number % 2]);
  --phase.missing;
  if (!end_if_complete(barrier, phase)) return;
  // Those who were woken may overtake this thread.
  Machine& e = machine();
  if (e.order.decide(2)) e.current->fiber.suspend();
}

}  // namespace

void begin_mbarriers() {
  const Unwatched unwatched;
  phases.clear();
}

bool is_initialized(const Mbarrier& barrier) { return find(&barrier) != nullptr; }

void bytes_landed(const Mbarrier& barrier, std::int64_t bytes, const Place& place) {
  Phase& phase = *find(&barrier);
  phase.bytes -= bytes;
  if (phase.bytes < 0 && phase.missing == 0) {
    return note_fault("more bytes land at an mbarrier than it was told to expect", place);
  }
  release(&phase.ended[phase.number % 2]);
  end_if_complete(barrier, phase);
}

std::string describe_mbarrier(const Thread& thread) {
  const Phase& phase = *find(thread.mbarrier);
  return "for the end of phase " + std::to_string(phase.number) + " at the mbarrier of line " +
         std::to_string(phase.made.line()) + ", which lacks " + std::to_string(phase.missing) +
         " arrivals and " + std::to_string(phase.bytes) + " bytes";
}

}  // namespace stand_in

using namespace stand_in;

void mbarrier_init(Mbarrier& barrier, int arrivals, Place place) {
  expect_hopper("mbarriers that count bytes", place);
  if (!is_shared(&barrier, sizeof barrier)) {
    fault("an mbarrier lies in shared memory of the kernel", place);
  }
  if (arrivals < 1 || arrivals >= 1 << 20) {
    fault("an mbarrier takes 1 to 2^20 - 1 arrivals, not " + std::to_string(arrivals), place);
  }
  const Unwatched unwatched;
  phases.insert_or_assign(&barrier, Phase{arrivals, arrivals, 0, 0, place});
}

void mbarrier_arrive(Mbarrier& barrier, Place place) { arrive(barrier, 0, place); }

void mbarrier_arrive_expect(Mbarrier& barrier, int bytes, Place place) {
  if (bytes < 0) fault("an mbarrier cannot expect " + std::to_string(bytes) + " bytes", place);
  arrive(barrier, bytes, place);
}

void mbarrier_wait(const Mbarrier& barrier, int parity, Place place) {
  Phase& phase = phase_of(barrier, place);
  if (parity != 0 && parity != 1) {
    fault("a phase's parity is 0 or 1, not " + std::to_string(parity), place);
  }
  while (static_cast<int>(phase.number % 2) == parity) {
    machine().current->mbarrier = &barrier;
    wait_at(place);
  }
  acquire(&phase.ended[parity]);
}

}  // namespace t2t
