#include "cuda_on_cpu/hopper/warpgroup.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda_on_cpu/machine.hpp"

namespace t2t {
namespace stand_in {
namespace {

/// What a warp's part of a product multiplies: its 16 rows of a, and b.
struct Operands {
  std::array<std::array<std::uint16_t, 16>, 16> a;
  std::vector<std::array<std::uint16_t, 16>> b;  // by column
  bool operator==(const Operands&) const = default;
};

struct Product {
  std::array<float*, 32> sums;
  std::array<const std::uint32_t*, 32> a_registers;  // null: a lies in shared memory
  ProductCall call;                                  // the first lane's
  Operands operands;                                 // as they were at the issue
  Place place;
};

struct Warp {
  std::vector<Product> open;                  // issued, not committed
  std::deque<std::vector<Product>> groups;    // committed, not waited for
  std::map<float*, std::vector<float>> sums;  // of the first lane's arrays that are NaN until then
  std::size_t issued = 0;
  bool begun = false;            // begin_products since the last wait
  int registers = 0;             // of each thread
  std::unique_ptr<Agent> agent;  // who reads the tiles, in ThreadSanitizer's eyes
  char called = 0, read = 0;     // addresses that order the products after and before the threads
};

std::vector<Warp> warps;  // of the block that runs
/// What the first warp of each warpgroup to issue a product issued, for comparison with the others.
std::vector<std::vector<ProductCall>> issued;

/// Dynamic shared memory begins here for descriptors, as on a GPU, where CUDA takes the first 1024.
constexpr std::size_t shared_begins = 1024;

/// The 16 bytes at this address of shared memory; zeros, and a fault, where the kernel has none.
const std::byte* chunk_at(std::size_t address, const Place& place) {
  static constexpr std::byte zeros[16] = {};
  const std::byte* chunk = dynamic_shared() + (swizzled(address) - shared_begins);
  if (address >= shared_begins && is_dynamic_shared(chunk, 16)) return chunk;
  note_fault("a product's descriptor leads out of the shared memory of the kernel", place);
  return zeros;
}

struct Descriptor {
  std::size_t start, leading, stride;  // bytes

  explicit Descriptor(std::uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4) {}
};

/// Calls work(16 bytes, line, first) for the tile's chunks of 8 numbers each: along 16 channels of
/// each of `lines` rows, or, if transposed, along `lines` channels of each of 16 rows.
template <class Work>
void for_each_chunk(std::uint64_t bits, std::size_t first_line, std::size_t lines, bool transposed,
                    const Place& place, Work work) {
  const Descriptor at(bits);
  if (!transposed) {
    for (std::size_t n = 0; n < lines; ++n) {
      const std::size_t row =
          at.start + (first_line + n) / 8 * at.stride + (first_line + n) % 8 * 128;
      for (std::size_t k = 0; k < 16; k += 8) work(chunk_at(row + 2 * k, place), n, k);
    }
  } else {
    for (std::size_t k = 0; k < 16; ++k) {
      for (std::size_t n = 0; n < lines; n += 8) {
        const std::size_t chunk =
            at.start + n / 64 * at.leading + k / 8 * at.stride + k % 8 * 128 + n % 64 * 2;
        work(chunk_at(chunk, place), n, k);
      }
    }
  }
}

/// Reads what the product of this warp multiplies, and tells `seen` of each 16 bytes.
template <class Seen>
Operands read_operands(const Product& product, unsigned warp, Seen seen) {
  Operands operands;
  const ProductCall& call = product.call;
  operands.b.resize(static_cast<std::size_t>(call.N));
  const auto numbers = [](const std::byte* chunk) {
    std::array<std::uint16_t, 8> eight;
    std::memcpy(&eight, chunk, 16);
    return eight;
  };
  for_each_chunk(call.b, 0, operands.b.size(), call.transposed, product.place,
                 [&](const std::byte* chunk, std::size_t n, std::size_t k) {
                   seen(chunk);
                   const auto eight = numbers(chunk);
                   for (std::size_t i = 0; i < 8; ++i) {
                     if (call.transposed) {
                       operands.b[n + i][k] = eight[i];
                     } else {
                       operands.b[n][k + i] = eight[i];
                     }
                   }
                 });
  if (call.a_registers == nullptr) {
    for_each_chunk(call.a, 16 * (warp % 4), 16, false, product.place,
                   [&](const std::byte* chunk, std::size_t m, std::size_t k) {
                     seen(chunk);
                     const auto eight = numbers(chunk);
                     for (std::size_t i = 0; i < 8; ++i) operands.a[m][k + i] = eight[i];
                   });
    return operands;
  }
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t k = 0; k < 16; ++k) {
      const std::uint32_t pair = product.a_registers[m % 8 * 4 + k % 8 / 2][m / 8 + 2 * (k / 8)];
      operands.a[m][k] = static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16);
    }
  }
  return operands;
}

using Line = std::array<float, 16>;  // what a sum multiplies of a row of a, or of a column of b
Line floats(const std::array<std::uint16_t, 16>& bits) {
  Line line;
  for (std::size_t k = 0; k < 16; ++k) line[k] = std::bit_cast<float>(std::uint32_t{bits[k]} << 16);
  return line;
}

/// A lane's i-th sum is that of this row of a and this column of b.
std::size_t row_of(std::size_t lane, std::size_t i) { return lane / 4 + 8 * (i % 4 / 2); }
std::size_t column_of(std::size_t lane, std::size_t i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

void compute(const Product& product, std::vector<float>& sums) {
  std::vector<Line> a, b;
  for (const auto& row : product.operands.a) a.push_back(floats(row));
  for (const auto& column : product.operands.b) b.push_back(floats(column));
  const std::size_t each = static_cast<std::size_t>(product.call.N) / 2;  // sums of a lane
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < each; ++i) {
      float sum = product.call.adds ? sums[lane * each + i] : 0;
      const Line &x = a[row_of(lane, i)], &y = b[column_of(lane, i)];
      for (std::size_t k = 0; k < 16; ++k) sum += x[k] * y[k];
      sums[lane * each + i] = sum;
    }
  }
}

/// Takes the sums away from the lanes, which have NaN until the product is waited for.
void take_sums(Warp& warp, const Product& product) {
  if (warp.sums.contains(product.sums[0])) return;
  std::vector<float>& taken = warp.sums[product.sums[0]];
  for (float* const sums : product.sums) {
    for (int i = 0; i < product.call.N / 2; ++i) {
      taken.push_back(sums[i]);
      sums[i] = std::bit_cast<float>(0xffffffffu);
    }
  }
}

void give_sums(Warp& warp, const Product& product) {
  const auto found = warp.sums.find(product.sums[0]);
  if (found == warp.sums.end()) return;
  std::size_t next = 0;
  for (float* const sums : product.sums) {
    for (int i = 0; i < product.call.N / 2; ++i) sums[i] = found->second[next++];
  }
  warp.sums.erase(found);
}

bool is_pending(const Warp& warp, const float* sums) {
  const auto has = [&](const std::vector<Product>& products) {
    return std::ranges::any_of(products, [&](const Product& p) { return p.sums[0] == sums; });
  };
  return has(warp.open) || std::ranges::any_of(warp.groups, has);
}

/// A warpgroup's warps take part in the same products. The first warp that issues one sets it.
bool is_same_product(Warp& warp, const ProductCall& call) {
  std::vector<ProductCall>& others = issued[current_warp() / 4];
  if (warp.issued == others.size()) others.push_back(call);
  const ProductCall& other = others[warp.issued++];
  return other.a == call.a && other.b == call.b && other.N == call.N && other.adds == call.adds;
}

void issue(const LaneMeeting& lanes) {
  Warp& warp = warps[current_warp()];
  Product product{{}, {}, lanes.read<ProductCall>(0, 0), {}, *lanes.place};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& call = lanes.read<ProductCall>(lane, lane);
    if (call.a != product.call.a || call.b != product.call.b) {
      return note_fault("the lanes of a warp bring different descriptors", product.place);
    }
    product.sums[lane] = call.sums;
    product.a_registers[lane] = call.a_registers;
  }
  if (!warp.begun) {
    return note_fault("begin_products is missing since the warp's last wait, or its beginning",
                      product.place);
  }
  if (!is_same_product(warp, product.call)) {
    return note_fault("the warps of a warpgroup issue different products", product.place);
  }
  note_writes();
  {
    const AsAgent as_tensor_cores(*warp.agent);
    acquire(&warp.called);
    product.operands = read_operands(product, current_warp(), [&](const std::byte* chunk) {
      watch_read(chunk, 16);
      expect_fenced(chunk, "a product", product.place);
    });
    release(&warp.read);
  }
  take_sums(warp, product);
  warp.open.push_back(std::move(product));
}

void finish(const LaneMeeting& lanes) {
  Warp& warp = warps[current_warp()];
  const auto pending = static_cast<std::size_t>(lanes.read<int>(0, 0));
  std::vector<Product> done;
  while (warp.groups.size() > pending) {
    for (Product& product : warp.groups.front()) {
      if (read_operands(product, current_warp(), [](const std::byte*) {}) != product.operands) {
        return note_fault("what a product reads has changed before the wait for it", product.place);
      }
      compute(product, warp.sums.at(product.sums[0]));
      done.push_back(std::move(product));
    }
    warp.groups.pop_front();
  }
  for (const Product& product : done) {
    if (!is_pending(warp, product.sums[0])) give_sums(warp, product);
  }
  warp.begun = false;
}

}  // namespace

void begin_products_of_block() {
  const Unwatched unwatched;
  warps.clear();
  warps.resize((machine().count + 31) / 32);
  issued.assign((warps.size() + 3) / 4, {});
  for (Warp& warp : warps) {
    warp.agent = std::make_unique<Agent>();
    const AsAgent as_tensor_cores(*warp.agent);
    acquire(&machine().block_begins);
  }
}

void expect_no_products() {
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const Warp& warp = warps[w];
    if (!warp.open.empty()) {
      return note_fault("the block ends, and this product was not committed",
                        warp.open.front().place);
    }
    if (!warp.groups.empty()) {
      return note_fault("the block ends, and nobody waited for this product",
                        warp.groups.front().front().place);
    }
    if (warp.issued != warps[w / 4 * 4].issued) return note_unequal_warps(w / 4, "products");
  }
}

void join_tensor_cores() {
  for (const Warp& warp : warps) {
    const AsAgent as_tensor_cores(*warp.agent);
    release(&machine().block_ends);
  }
}

void issue_product(const ProductCall& call, const Place& place) {
  expect_warpgroups("product of a warpgroup", place);
  release(&warps[current_warp()].called);
  meet_lanes(~0u, &call, nullptr, issue, place);
  stop_if_faulty();
}

void wait_for_products(int pending, const Place& place) {
  Warp& warp = warps[current_warp()];
  meet_lanes(~0u, &pending, nullptr, finish, place);
  stop_if_faulty();
  acquire(&warp.read);
}

std::uint64_t describe(const __nv_bfloat16* tile, unsigned leading_bytes, unsigned stride_bytes,
                       const Place& place) {
  if (!is_dynamic_shared(tile, 16)) {
    fault("a product reads tiles in dynamic shared memory of the kernel", place);
  }
  const auto at =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(tile) - dynamic_shared()) +
      shared_begins;
  constexpr std::uint64_t swizzle_of_128_bytes = 1ull << 62;
  return at >> 4 | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{stride_bytes >> 4} << 32 | swizzle_of_128_bytes;
}

void begin_products(const Place& place) {
  meet_lanes(
      ~0u, nullptr, nullptr, [](const LaneMeeting&) { warps[current_warp()].begun = true; }, place);
}

}  // namespace stand_in

using namespace stand_in;

bool elected(Place place) {
  return meet<bool>(
      ~0u, 0,
      [](unsigned lane, const LaneMeeting&) {
        Order& order = machine().order;
        return lane == (order.is_random() ? order.seed() : order.choose(32)) % 32;
      },
      place);
}

void commit_products(Place place) {
  meet_lanes(
      ~0u, nullptr, nullptr,
      [](const LaneMeeting&) {
        Warp& warp = warps[current_warp()];
        warp.groups.push_back(std::exchange(warp.open, {}));
      },
      place);
}

}  // namespace t2t
