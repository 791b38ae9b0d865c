// Decode over pages: chapter 11's rung 5 for sequences whose keys lie in pages.
//
// Changed from rung 5: before a step of 16 keys is copied, the sequence's table says where they
// lie. If the page size is a multiple of 16, a step lies in one page, and one look at the table is
// enough; otherwise each key is looked up. A stretch always has 256 keys. The host lists the blocks
// of all sequences, each of which computes neighbouring stretches of one sequence, for one group of
// heads. A long sequence has many blocks, a short one has few, and no block is idle.
//
// Rung 5 chooses the number of stretches by the GPU's size and the number of sequences, so a
// sequence's sums are cut elsewhere when other sequences run beside it. Here nothing depends on
// them. The price is short stretches, whose sums are written and joined even where many sequences
// would keep the GPU busy without them.
//
// Measured on an H100: 71 to 107 % of rung 5's bytes per second, when a block had one stretch, and
// so began with empty tiles for every 4 steps of a warp. Now the copies of a block's next stretch
// begin while the sums of this one are joined. For that, the sums no longer lie over the tiles, and
// a warp has tiles for 2 steps instead of 3, so that as many blocks fit as before. This should take
// up to a seventh off the time where there are more stretches than the GPU runs blocks. Never run
// on a GPU.
#include "11_flash_attention/kernels/decode/decode_stretches.hpp"
#include "15_serving/kernels/kernels.hpp"
#include "15_serving/kernels/sequence_pages.hpp"

namespace t2t {

namespace {

constexpr int stages = 2;  // steps for which a warp has tiles of keys and of values

/// Shared memory of a block: the tiles of its warps, and behind them its sums.
template <int D>
constexpr int shared_bytes() {
  return decode_tiles<D>(stages) + int(sizeof(WarpSums<D>));
}

/// Begins to copy keys s to s + 15 and their values into a warp's tiles. Keys from `last` on are
/// not read, and their rows become 0.
template <int D>
__device__ __forceinline__ void copy_step(bf16* k_tile, bf16* v_tile, const SequencePages& sequence,
                                          int s, int last) {
  const int lane = threadIdx.x % 32;
  if (sequence.page_size % step_keys == 0) {  // the whole step lies in one page
    const long at = sequence.at<D>(s);
    copy_rows<D, step_keys, 32>(k_tile, sequence.keys + at, D, last - s, lane);
    copy_rows<D, step_keys, 32>(v_tile, sequence.values + at, D, last - s, lane);
    return;
  }
  copy_keys<D, step_keys, 32>(k_tile, v_tile, sequence, s, last, lane);
}

/// One warp's steps of 16 keys each, which begin at key `first` and each 64th after it, below last.
/// They run on from one stretch of the block to the next.
template <int D>
class Walk {
 public:
  /// Begins to copy the first steps' keys and values. `tiles` are the warp's.
  __device__ __forceinline__ Walk(const SequencePages& sequence, int first, int last, bf16* tiles)
      : sequence_(sequence), s_(first), last_(last), tiles_(tiles) {
    for (int stage = 0; stage < stages; ++stage) fill(first + stage * apart, stage);
  }

  /// The steps of the next stretch. Meanwhile the steps after it begin to be copied.
  __device__ __forceinline__ void stretch(const uint32_t (&q)[D / 16][4], float scale,
                                          float (&mean)[D / 8][4], OnlineRows& rows) {
    const int seen[2] = {last_, last_};  // all heads of the group see the same keys
    for (int step = 0; step < gpu_stretch / apart && s_ < last_; ++step, s_ += apart) {
      const int stage = step % stages;
      const bf16* k_tile = tiles_ + 2 * stage * tile;
      wait_for_copies<stages - 1>();
      __syncwarp();  // the copies of all lanes are here
      attend_step<D>(k_tile, k_tile + tile, q, s_, seen, scale, mean, rows);
      __syncwarp();  // all lanes are done with this stage
      fill(s_ + stages * apart, stage);
    }
  }

  __device__ __forceinline__ void end() { wait_for_copies<0>(); }

 private:
  static constexpr int tile = step_keys * D, apart = decode_warps * step_keys;
  static_assert(gpu_stretch / apart % stages == 0, "each stretch begins with stage 0");

  __device__ __forceinline__ void fill(int s, int stage) {
    bf16* k_tile = tiles_ + 2 * stage * tile;
    if (s < last_) copy_step<D>(k_tile, k_tile + tile, sequence_, s, last_);
    commit_copies();  // also when it is empty, since the wait above counts groups
  }

  SequencePages sequence_;
  int s_, last_;
  bf16* tiles_;
};

/// Loads this block's rows of queries, heads first_head to first_head + rows − 1 of row t of q.
template <int D>
__device__ void load_heads(const PagedCall& call, int t, int first_head, int rows,
                           uint32_t (&q)[D / 16][4]) {
  const bf16* row[2] = {nullptr, nullptr};
  for (int half = 0; half < 2; ++half) {
    const int r = 8 * half + threadIdx.x % 32 / 4;
    if (r < rows) row[half] = call.q + (std::size_t(t) * call.H + first_head + r) * D;
  }
  for (int c = 0; c < D / 16; ++c) load_rows(q[c], {row[0], row[1]}, 16 * c);
}

/// Joins the sums of a block's warps, and writes stretch p's mean and log-sum of each of its rows.
/// Row r of the block's is row first_row + r of the sequence's H, which have `count` stretches
/// each.
template <int D>
__device__ void store_stretch(const WarpSums<D>& sums, int rows, std::size_t first_row, int count,
                              int p, const Stretches& out) {
  for (int i = threadIdx.x; i < rows * D; i += decode_threads) {
    const int r = i / D, d = i % D;
    const auto [base, sum, total] = sum_warps(sums, r, d);
    const std::size_t at = first_row * count + std::size_t(r) * count + p;
    out.means[at * D + d] = total / sum;  // a stretch has a key, so sum is above 0
    if (d == 0) out.log_sums[at] = base + log2f(sum);
  }
}

// [kernel]
/// The grid is [blocks of all sequences, G, tiles of 16 heads].
template <int D>
__global__ void __launch_bounds__(decode_threads, 2)
    decode_pages(PagedCall call, SequencesOnDevice sequences, float scale, Stretches out) {
  T2T_DYNAMIC_SHARED(bf16, tiles);
  WarpSums<D>& sums =
      *reinterpret_cast<WarpSums<D>*>(tiles + decode_tiles<D>(stages) / sizeof(bf16));
  const PagedBlock block = sequences.of_blocks[blockIdx.x];
  const int b = block.sequence, g = blockIdx.y, warp = threadIdx.x / 32, N = call.H / call.G;
  const int first = block.stretch * gpu_stretch;
  const int last = min(first + block.count * gpu_stretch, sequences.lengths[b]);
  const int rows = min(N - int(blockIdx.z) * packed_rows, packed_rows);
  const int first_head = g * N + blockIdx.z * packed_rows;

  const long of_group = long(g) * sequences.pages * sequences.page_size * D;
  const SequencePages sequence{sequences.tables + sequences.table_at[b], call.keys + of_group,
                               call.values + of_group, sequences.page_size};
  Walk<D> walk(sequence, first + warp * step_keys, last, tiles + warp * stages * 2 * step_keys * D);
  const int row = sequences.rows != nullptr ? sequences.rows[b] : b;
  uint32_t q[D / 16][4];
  load_heads<D>(call, row, first_head, rows, q);

  // The stretches of a head are contiguous, and so are the heads of a sequence.
  const int before = sequences.stretch_at[b], count = sequences.stretch_at[b + 1] - before;
  out.means += std::size_t(before) * call.H * D, out.log_sums += std::size_t(before) * call.H;
  for (int p = block.stretch; p < block.stretch + block.count; ++p) {
    OnlineRows online;
    float mean[D / 8][4] = {};
    walk.stretch(q, scale, mean, online);
    __syncthreads();  // all threads have read the sums of the stretch before
    store_sums<D>(mean, online, scale, sums);
    __syncthreads();
    store_stretch<D>(sums, rows, first_head, count, p, out);
  }
  walk.end();

  unsigned* arrived = out.arrived + (b * gridDim.y + g) * gridDim.z + blockIdx.z;
  if (!arrives_last(arrived, block.count, count, sums.last_to_arrive)) return;
  for (int r = warp; r < rows; r += decode_warps) {
    const std::size_t at = std::size_t(first_head + r) * count;
    join_row<D>(out.means + at * D, out.log_sums + at, count,
                call.out + (std::size_t(row) * call.H + first_head + r) * D);
  }
}
// [/kernel]

template <int D>
void launch(const PagedCall& call, const SequencesOnDevice& sequences, const Stretches& stretches) {
  const int tiles = packed_tiles(call.H / call.G);
  T2T_LAUNCH(decode_pages<D>, dim3(sequences.blocks, call.G, tiles), dim3(decode_threads),
             shared_bytes<D>(), call, sequences, scale_log2(D), stretches);
}

}  // namespace

int paged_blocks(int D) {
  const LaunchSite site = {"decode_pages", __FILE__, __LINE__};
  return D == 64
             ? blocks_of_multiprocessor(site, decode_pages<64>, decode_threads, shared_bytes<64>())
             : blocks_of_multiprocessor(site, decode_pages<128>, decode_threads,
                                        shared_bytes<128>());
}

void attend_pages(const PagedCall& call, const SequencesOnDevice& sequences,
                  DecodeScratch& scratch) {
  expect_decode_call(call, sequences, scratch);
  const std::size_t results = std::size_t(sequences.stretches) * call.H;
  const Stretches stretches = stretches_in(scratch, results, call.D);
  call.D == 64 ? launch<64>(call, sequences, stretches) : launch<128>(call, sequences, stretches);
}

}  // namespace t2t
