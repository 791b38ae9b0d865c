// Decode over pages: chapter 11's rung 5 for sequences whose keys lie in pages.
//
// Changed from rung 5: before a step of 16 keys is copied, the sequence's table says where they
// lie. If the page size is a multiple of 16, a step lies in one page, and one look at the table is
// enough; otherwise each key is looked up. A stretch always has 256 keys, and a block computes a
// stretch of a sequence for one group of heads. The host lists the stretches of all sequences, so
// that a long sequence has many blocks, a short one has few, and no block is idle.
//
// Rung 5 chooses the number of stretches by the GPU's size and the number of sequences, so a
// sequence's sums are cut elsewhere when other sequences run beside it. Here nothing depends on
// them. The price is short stretches, whose sums are written and joined even where many sequences
// would keep the GPU busy without them. Measured on an H100: 71 to 107 % of rung 5's bytes per
// second.
#include "11_flash_attention/kernels/decode_stretches.hpp"
#include "15_serving/kernels/kernels.hpp"
#include "15_serving/kernels/sequence_pages.hpp"

namespace t2t {

namespace {

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
template <int D>
__device__ void walk(const SequencePages& sequence, float scale, const uint32_t (&q)[D / 16][4],
                     int first, int last, bf16* tiles, float (&mean)[D / 8][4], OnlineRows& rows) {
  constexpr int tile = step_keys * D, apart = decode_warps * step_keys;
  const int seen[2] = {last, last};  // all heads of the group see the same keys
  const auto fill = [&](int s, int stage) {
    bf16* k_tile = tiles + 2 * stage * tile;
    if (s < last) copy_step<D>(k_tile, k_tile + tile, sequence, s, last);
    commit_copies();  // also when it is empty, since the wait below counts groups
  };
  for (int stage = 0; stage < decode_stages; ++stage) fill(first + stage * apart, stage);
  for (int s = first, stage = 0; s < last; s += apart, stage = (stage + 1) % decode_stages) {
    const bf16* k_tile = tiles + 2 * stage * tile;
    wait_for_copies<decode_stages - 1>();
    __syncwarp();  // the copies of all lanes are here
    attend_step<D>(k_tile, k_tile + tile, q, s, seen, scale, mean, rows);
    __syncwarp();  // all lanes are done with this stage
    fill(s + decode_stages * apart, stage);
  }
  wait_for_copies<0>();
}

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

// [kernel]
/// The grid is [stretches of all sequences, G, tiles of 16 heads].
template <int D>
__global__ void __launch_bounds__(decode_threads, 2)
    decode_pages(PagedCall call, SequencesOnDevice sequences, float scale, Stretches out) {
  T2T_DYNAMIC_SHARED(bf16, tiles);
  const int b = sequences.stretch_sequence[blockIdx.x], p = blockIdx.x - sequences.stretch_at[b];
  const int first = p * gpu_stretch, last = min(first + gpu_stretch, sequences.lengths[b]);
  const int g = blockIdx.y, warp = threadIdx.x / 32, N = call.H / call.G;
  const int rows = min(N - int(blockIdx.z) * packed_rows, packed_rows);
  const int first_head = g * N + blockIdx.z * packed_rows;

  uint32_t q[D / 16][4];
  load_heads<D>(call, sequences.rows != nullptr ? sequences.rows[b] : b, first_head, rows, q);
  const long of_group = long(g) * sequences.pages * sequences.page_size * D;
  const SequencePages sequence{sequences.tables + sequences.table_at[b], call.keys + of_group,
                               call.values + of_group, sequences.page_size};
  OnlineRows online;
  float mean[D / 8][4] = {};
  walk<D>(sequence, scale, q, first + warp * step_keys, last,
          tiles + warp * decode_stages * 2 * step_keys * D, mean, online);
  __syncthreads();  // all warps are done with their tiles, whose memory is used again
  WarpSums<D>& sums = *reinterpret_cast<WarpSums<D>*>(tiles);
  store_sums<D>(mean, online, scale, sums);
  __syncthreads();

  // The stretches of a head are contiguous, and so are the heads of a sequence.
  const int before = sequences.stretch_at[b], count = sequences.stretch_at[b + 1] - before;
  for (int i = threadIdx.x; i < rows * D; i += decode_threads) {
    const int r = i / D, d = i % D;
    const auto [base, sum, total] = sum_warps(sums, r, d);
    const std::size_t at = std::size_t(before) * call.H + std::size_t(first_head + r) * count + p;
    out.means[at * D + d] = total / sum;  // a stretch has a key, so sum is above 0
    if (d == 0) out.log_sums[at] = base + log2f(sum);
  }
}
// [/kernel]

template <int D>
void launch(const PagedCall& call, const SequencesOnDevice& sequences, const Stretches& stretches) {
  const int tiles = (call.H / call.G + packed_rows - 1) / packed_rows;
  T2T_LAUNCH(decode_pages<D>, dim3(sequences.stretches, call.G, tiles), dim3(decode_threads),
             decode_shared<D>(), call, sequences, scale_log2(D), stretches);
}

}  // namespace

void attend_pages(const PagedCall& call, const SequencesOnDevice& sequences, float* scratch) {
  expect_decode_call(call, sequences, scratch);
  const std::size_t results = std::size_t(sequences.stretches) * call.H;
  const Stretches stretches{scratch, scratch + results * call.D};
  call.D == 64 ? launch<64>(call, sequences, stretches) : launch<128>(call, sequences, stretches);
  join_decode({stretches, call.out, row_major(1, call.H, call.D), sequences.B, 1, call.H, call.D, 0,
               sequences.stretch_at, sequences.rows});
}

}  // namespace t2t
