#include "cuda_on_cpu/async_copy.hpp"

#include <cstdint>
#include <numeric>

#include "cuda_on_cpu/machine.hpp"

namespace t2t::stand_in {
namespace {

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

}  // namespace

void issue_copy(void* shared, const void* global, const Place& place) {
  if (!aligned(shared))
    fault("copy_async_16 writes to an address that is no multiple of 16", place);
  if (!aligned(global)) fault("copy_async_16 reads at an address that is no multiple of 16", place);
  if (!is_shared(shared))
    fault("copy_async_16 writes to what is not shared memory of the kernel", place);
  const Unwatched unwatched;
  machine().current->copies.push_back({static_cast<uint4*>(shared), {}});
}

PendingCopy& last_copy() { return machine().current->copies.back(); }

void commit_group() {
  const Unwatched unwatched;
  Thread& self = *machine().current;
  const std::size_t before =
      std::accumulate(self.committed.begin(), self.committed.end(), std::size_t{0});
  self.committed.push_back(self.copies.size() - before);
}

std::vector<PendingCopy> take_arrived(int pending) {
  Thread& self = *machine().current;
  std::size_t arrived = 0;
  while (self.committed.size() > static_cast<std::size_t>(pending)) {
    arrived += self.committed.front();
    self.committed.erase(self.committed.begin());
  }
  const auto end = self.copies.begin() + static_cast<std::ptrdiff_t>(arrived);
  std::vector<PendingCopy> copies(self.copies.begin(), end);
  self.copies.erase(self.copies.begin(), end);
  return copies;
}

}  // namespace t2t::stand_in
