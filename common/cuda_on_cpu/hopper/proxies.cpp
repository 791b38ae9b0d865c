// fence.proxy.async: a GPU's copies and products may read what was in shared memory before a
// thread's ordinary stores, unless that thread has called fence_async since. With T2T_PROXIES=1 the
// stand-in looks after each thread's turn which bytes have changed, so it knows who wrote them.
// That takes time, so it is off otherwise.
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "cuda_on_cpu/hopper/bulk_copy.hpp"
#include "cuda_on_cpu/machine.hpp"

namespace t2t {
namespace stand_in {
namespace {

constexpr std::size_t chunk_bytes = 16;

/// Who wrote a chunk last by ordinary stores, and how often that thread had called fence_async.
struct Writer {
  Thread* thread = nullptr;
  unsigned fences = 0;
};

bool is_on = false;
std::vector<std::byte> seen;  // dynamic shared memory as it was when note_writes last looked
std::vector<Writer> writers;  // by chunk

std::size_t chunk_of(const std::byte* chunk) {
  return static_cast<std::size_t>(chunk - dynamic_shared()) / chunk_bytes;
}

}  // namespace

void begin_proxies() {
  const char* wanted = std::getenv("T2T_PROXIES");
  is_on = wanted != nullptr && std::string_view(wanted) != "0";
  if (!is_on) return;
  const Unwatched unwatched;
  const std::span<const std::byte> memory = machine().dynamic_shared;
  seen.assign(memory.begin(), memory.end());
  writers.assign(memory.size() / chunk_bytes, {});
}

void note_writes() {
  if (!is_on) return;
  const Unwatched unwatched;
  const std::span<const std::byte> memory = machine().dynamic_shared;
  Thread* const thread = machine().current;
  for (std::size_t i = 0; i < writers.size(); ++i) {
    const std::byte* const now = memory.data() + i * chunk_bytes;
    if (std::memcmp(now, seen.data() + i * chunk_bytes, chunk_bytes) == 0) continue;
    std::memcpy(seen.data() + i * chunk_bytes, now, chunk_bytes);
    writers[i] = {thread, thread->fences};
  }
}

void note_async_write(const std::byte* chunk) {
  if (!is_on) return;
  const Unwatched unwatched;
  const std::size_t i = chunk_of(chunk);
  std::memcpy(seen.data() + i * chunk_bytes, chunk, chunk_bytes);
  writers[i] = {};
}

void expect_fenced(const std::byte* chunk, const char* reader, const Place& place) {
  if (!is_on) return;
  const Writer& writer = writers[chunk_of(chunk)];
  if (writer.thread == nullptr || writer.thread->fences > writer.fences) return;
  note_fault(std::string(reader) + " reads what thread " + to_string(writer.thread->index) +
                 " wrote without calling fence_async since",
             place);
}

}  // namespace stand_in

void fence_async() {
  stand_in::note_writes();
  ++stand_in::machine().current->fences;
}

}  // namespace t2t
