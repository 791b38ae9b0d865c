#include "cuda_on_cpu/hopper/bulk_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "cuda_on_cpu/machine.hpp"

namespace t2t {
namespace stand_in {
namespace {

struct Copy {
  bool is_store;
  TensorMap map;
  BoxAt at;
  std::byte* tile;
  const Mbarrier* full;  // of a load
  Thread* issuer;
  Place place;
  std::size_t group = 0;  // of its thread, for a store that was committed: 1, 2, …
  char issued = 0;        // its address tells ThreadSanitizer what happened before the issue
};

std::vector<std::unique_ptr<Copy>> in_flight;  // of the block that runs, in the order of issue
std::optional<Agent> copier;

/// Calls work(16 bytes in shared memory, the same in global memory or null outside of the tensor).
template <class Work>
void for_each_chunk(const Copy& copy, Work work) {
  const TensorMap& map = copy.map;
  for (int group = 0; group < map.box[2]; ++group) {
    for (int row = 0; row < map.box[1]; ++row) {
      const std::array<std::int64_t, 4> at = {copy.at.token + row, group, copy.at.head,
                                              copy.at.sequence};
      const std::byte* global = map.data;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const bool inside = at[i] >= 0 && at[i] < map.size[i + 1];
        global = global != nullptr && inside ? global + at[i] * map.stride[i + 1] : nullptr;
      }
      const std::size_t first = (std::size_t(group) * map.box[1] + row) * 128;
      for (std::size_t offset = 0; offset < 128; offset += 16) {
        work(copy.tile + swizzled(first + offset), global == nullptr ? nullptr : global + offset);
      }
    }
  }
}

void load(const Copy& copy) {
  for_each_chunk(copy, [](std::byte* shared, const std::byte* global) {
    watch_write(shared, 16);
    if (global != nullptr) watch_read(global, 16);
    if (global == nullptr) {
      std::memset(shared, 0, 16);
    } else {
      std::memcpy(shared, global, 16);
    }
    note_async_write(shared);
  });
  bytes_landed(*copy.full, static_cast<std::int64_t>(copy.map.box_bytes()), copy.place);
}

void store(const Copy& copy) {
  for_each_chunk(copy, [&](std::byte* shared, const std::byte* global) {
    watch_read(shared, 16);
    expect_fenced(shared, "a store of a tile", copy.place);
    if (global == nullptr) return;
    watch_write(global, 16);
    std::memcpy(const_cast<std::byte*>(global), shared, 16);
  });
  release(&copy.issuer->stores_read);
}

void land(std::size_t which) {
  const Unwatched unwatched;
  const std::unique_ptr<Copy> copy = std::move(in_flight[which]);
  in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(which));
  const AsAgent as_copier(*copier);
  acquire(&copy->issued);
  copy->is_store ? store(*copy) : load(*copy);
}

void issue(Copy copy) {
  expect_hopper("copies of whole tiles", copy.place);
  if (!is_dynamic_shared(copy.tile, copy.map.box_bytes())) {
    fault("a tile of " + std::to_string(copy.map.box_bytes()) +
              " bytes reaches beyond the dynamic shared memory of the kernel",
          copy.place);
  }
  if ((copy.tile - dynamic_shared()) % tile_alignment != 0) {
    fault("a tile begins at a multiple of 1024 bytes of shared memory", copy.place);
  }
  note_writes();
  if (!copy.is_store) {
    for_each_chunk(copy, [](std::byte* shared, const std::byte*) {
      std::memset(shared, 0xff, 16);
      note_async_write(shared);
    });
  }
  std::size_t place = 0;
  {
    const Unwatched unwatched;
    place = in_flight.size();
    in_flight.push_back(std::make_unique<Copy>(copy));
  }
  release(&in_flight[place]->issued);
  if (machine().order.is_random() && machine().order.decide(4)) land(place);
}

}  // namespace

void begin_copies() {
  const Unwatched unwatched;
  in_flight.clear();
  copier.emplace();
  const AsAgent as_copier(*copier);
  acquire(&machine().block_begins);
}

bool land_a_copy() {
  if (in_flight.empty()) return false;
  land(machine().order.choose(in_flight.size()));
  return true;
}

void expect_no_copies() {
  if (in_flight.empty()) return;
  const Copy& copy = *in_flight.front();
  note_fault(copy.is_store ? "the block ends before this store has read its tile"
                           : "the block ends before this copy has landed",
             copy.place);
}

void join_copier() {
  const AsAgent as_copier(*copier);
  release(&machine().block_ends);
}

void wait_for_stores(int pending) {
  Thread& self = *machine().current;
  const auto must_land = [&](const std::unique_ptr<Copy>& copy) {
    return copy->is_store && copy->issuer == &self && copy->group > 0 &&
           copy->group + static_cast<std::size_t>(pending) <= self.store_groups;
  };
  for (;;) {
    const auto found = std::ranges::find_if(in_flight, must_land);
    if (found == in_flight.end()) break;
    land(static_cast<std::size_t>(found - in_flight.begin()));
  }
  acquire(&self.stores_read);
}

}  // namespace stand_in

using namespace stand_in;

void load_box(__nv_bfloat16* tile, const TensorMap& map, BoxAt at, Mbarrier& full, Place place) {
  if (!is_initialized(full)) fault("this mbarrier was not initialized", place);
  issue({false, map, at, reinterpret_cast<std::byte*>(tile), &full, machine().current, place});
}

void store_box(const TensorMap& map, BoxAt at, const __nv_bfloat16* tile, Place place) {
  auto* const bytes = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(tile));
  issue({true, map, at, bytes, nullptr, machine().current, place});
}

void commit_stores() {
  Thread& self = *machine().current;
  ++self.store_groups;
  for (const auto& copy : in_flight) {
    if (copy->is_store && copy->issuer == &self && copy->group == 0) {
      copy->group = self.store_groups;
    }
  }
}

}  // namespace t2t
