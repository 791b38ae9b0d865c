// Barriers and warp operations: which threads wait for each other, and what to report when they
// wait forever.
#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "cuda_on_cpu/machine.hpp"

namespace t2t::stand_in {
namespace {

bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

/// The open meeting of this kind that the thread belongs to, or a new one.
Meeting& find_or_open(const Meeting& like) {
  const Unwatched unwatched;
  Machine& e = machine();
  for (auto& meeting : e.meetings) {
    if (meeting->kind == like.kind && meeting->key == like.key && meeting->warp == like.warp &&
        (like.kind != Meeting::Kind::warp || same(meeting->place, like.place))) {
      return *meeting;
    }
  }
  return *e.meetings.emplace_back(std::make_unique<Meeting>(like));
}

/// All threads of the meeting have come: they may go on. What each did before is visible to all, if
/// the meeting orders memory.
void complete(Meeting& meeting) {
  Machine& e = machine();
  if (meeting.orders_memory) acquire(&meeting);
  const bool one_warp = meeting.kind == Meeting::Kind::warp;
  const unsigned begin = one_warp ? meeting.warp * 32 : 0;
  const unsigned end = one_warp ? std::min(begin + 32, e.count) : e.count;
  for (unsigned i = begin; i < end; ++i) {
    Thread& thread = *e.threads[i];
    if (thread.meeting != &meeting) continue;
    thread.meeting = nullptr;
    if (thread.state == Thread::State::waiting) thread.state = Thread::State::ready;
    if (meeting.orders_memory) release(&thread.woken);
  }
  const Unwatched unwatched;
  std::erase_if(e.meetings, [&](const auto& open) { return open.get() == &meeting; });
}

void come(Meeting& meeting, const Place& place) {
  Thread& self = *machine().current;
  self.meeting = &meeting;
  self.place = place;
  ++meeting.here;
  if (meeting.orders_memory) release(&meeting);
}

void wait_until_woken(bool orders_memory) {
  Thread& self = *machine().current;
  if (self.meeting != nullptr) {
    wait_at(self.place);
  }
  if (orders_memory) acquire(&self.woken);
}

std::string describe(const Thread& thread) {
  if (thread.state == Thread::State::done) return "ended";
  const std::string place =
      ", " + std::string(thread.place.file_name()) + ":" + std::to_string(thread.place.line());
  if (thread.mbarrier != nullptr) return "wait " + describe_mbarrier(thread) + place;
  if (thread.registers != 0) return "wait " + describe_registers(thread) + place;
  std::string at = thread.meeting->kind == Meeting::Kind::block ? "at __syncthreads"
                   : thread.meeting->kind == Meeting::Kind::named
                       ? "at barrier " + std::to_string(thread.meeting->key)
                       : "in a warp operation";
  return "wait " + at + place;
}

}  // namespace

std::string describe_stuck_block() {
  Machine& e = machine();
  std::map<std::string, std::pair<unsigned, std::string>> groups;  // how many, the first one
  for (unsigned i = 0; i < e.count; ++i) {
    auto& [many, first] = groups[describe(*e.threads[i])];
    if (many++ == 0) first = to_string(e.threads[i]->index);
  }
  std::string text = "block " + to_string(blockIdx) + " is stuck:";
  for (const auto& [where, group] : groups) {
    text += "\n  " + std::to_string(group.first) + " threads " + where + "; the first is " +
            group.second;
  }
  return text;
}

void complete_block_barrier() {
  Machine& e = machine();
  for (auto& meeting : e.meetings) {
    if (meeting->kind == Meeting::Kind::block && meeting->here == e.live) {
      return complete(*meeting);
    }
  }
}

void wait_for_block(const Place& place) {
  Meeting& meeting = find_or_open({Meeting::Kind::block, 0, 0, 0, 0, place});
  if (!same(meeting.place, place)) {
    fault("waits at one __syncthreads while others wait at another, " +
              std::string(meeting.place.file_name()) + ":" + std::to_string(meeting.place.line()),
          place);
  }
  come(meeting, place);
  complete_block_barrier();
  wait_until_woken(true);
}

/// The open meeting at a named barrier.
static Meeting& named_meeting(int id, int threads, const Place& place) {
  Machine& e = machine();
  if (id < 1 || id > 15) {
    fault("barriers are numbered 1 to 15 (0 is __syncthreads), not " + std::to_string(id), place);
  }
  if (threads < 32 || threads % 32 != 0 || threads > static_cast<int>((e.count + 31) / 32 * 32)) {
    fault("a barrier takes whole warps of its block, not " + std::to_string(threads) + " threads",
          place);
  }
  const auto wanted = static_cast<unsigned>(threads);
  Meeting& meeting =
      find_or_open({Meeting::Kind::named, static_cast<unsigned>(id), 0, wanted, 0, place});
  if (meeting.wanted != wanted) {
    fault("barrier " + std::to_string(id) + " waits for " + std::to_string(meeting.wanted) +
              " threads, here for " + std::to_string(threads),
          place);
  }
  return meeting;
}

void wait_for_named(int id, int threads, const Place& place) {
  Meeting& meeting = named_meeting(id, threads, place);
  come(meeting, place);
  if (meeting.here == meeting.wanted) complete(meeting);
  wait_until_woken(true);
}

void arrive_at_named(int id, int threads, const Place& place) {
  Meeting& meeting = named_meeting(id, threads, place);
  release(&meeting);
  if (++meeting.here == meeting.wanted) complete(meeting);
}

void LaneMeeting::fault_absent(unsigned from, unsigned reader) const {
  Unwatched::end();  // meet_lanes', which is never left
  fault("lane " + std::to_string(reader) + " reads from lane " + std::to_string(from) +
            ", which is not in the mask",
        *place);
}

void meet_lanes(unsigned mask, const void* brought, void* result, void (*work)(const LaneMeeting&),
                const Place& place, bool orders_memory) {
  Machine& e = machine();
  Thread& self = *e.current;
  const unsigned warp = self.number / 32, lane = self.number % 32;
  if (!(mask >> lane & 1)) {
    fault("lane " + std::to_string(lane) + " takes part in a warp operation that leaves it out",
          place);
  }
  Meeting& meeting =
      find_or_open({Meeting::Kind::warp, mask, warp, static_cast<unsigned>(std::popcount(mask)), 0,
                    place, orders_memory});
  self.brought = brought;
  self.result = result;
  come(meeting, place);
  if (meeting.here == meeting.wanted) {
    const Unwatched unwatched;  // the lanes exchange registers, not memory
    LaneMeeting lanes{mask, {}, {}, &place};
    for (unsigned i = warp * 32; i < std::min(warp * 32 + 32, e.count); ++i) {
      if (e.threads[i]->meeting != &meeting) continue;
      lanes.brought[i % 32] = e.threads[i]->brought;
      lanes.result[i % 32] = e.threads[i]->result;
    }
    work(lanes);
    complete(meeting);
  }
  wait_until_woken(orders_memory);
}

}  // namespace t2t::stand_in
