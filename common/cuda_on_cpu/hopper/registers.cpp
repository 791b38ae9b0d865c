// setmaxnreg: a block's threads begin with equally many registers, as many as a multiprocessor can
// give to each. What a warp gives back goes to a pool of its block, from which others take.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cuda_on_cpu/hopper/warpgroup.hpp"
#include "cuda_on_cpu/machine.hpp"

namespace t2t::stand_in {
namespace {

std::vector<int> registers_of;  // [warps] of the block that runs: of each thread
int pool = 0;                   // registers that no warp has, for each thread of a warp

struct RegistersCall {
  int registers;
  bool more;
};

/// Lets the block have what this warp gives back, and wakes those who wait for registers.
void give_to_pool(const LaneMeeting& lanes) {
  const auto [registers, more] = lanes.read<RegistersCall>(0, 0);
  int& now = registers_of[current_warp()];
  if (more ? registers < now : registers > now) {
    return note_fault(std::string(more ? "take" : "give") + "_registers<" +
                          std::to_string(registers) + ">, by threads that have " +
                          std::to_string(now) + " registers each",
                      *lanes.place);
  }
  if (more) return;
  pool += std::exchange(now, registers) - registers;
  Machine& e = machine();
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    if (std::exchange(thread.registers, 0) != 0) thread.state = Thread::State::ready;
  }
}

}  // namespace

void begin_registers() {
  const Unwatched unwatched;
  constexpr unsigned of_multiprocessor = 65536;
  const unsigned threads = machine().count;
  registers_of.assign((threads + 31) / 32,
                      static_cast<int>(std::min(256u, of_multiprocessor / threads / 8 * 8)));
  pool = 0;
}

void expect_equal_registers() {
  for (std::size_t w = 0; w < registers_of.size(); ++w) {
    if (registers_of[w] != registers_of[w / 4 * 4]) return note_unequal_warps(w / 4, "registers");
  }
}

std::string describe_registers(const Thread& thread) {
  return "for " + std::to_string(thread.registers) + " registers each, and the block has only " +
         std::to_string(pool) + " more for each thread of a warp";
}

void set_registers(int registers, bool more, const Place& place) {
  expect_warpgroups("setmaxnreg", place);
  const RegistersCall call{registers, more};
  meet_lanes(~0u, &call, nullptr, give_to_pool, place);
  stop_if_faulty();
  int& now = registers_of[current_warp()];
  while (now < registers && pool < registers - now) {
    machine().current->registers = registers;
    wait_at(place);
  }
  pool -= registers - std::exchange(now, registers);  // the first lane takes them for its warp
}

}  // namespace t2t::stand_in
