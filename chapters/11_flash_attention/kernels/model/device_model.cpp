// The order of the launches. Runs on the host.
#include "11_flash_attention/kernels/model/device_model.hpp"

#include <algorithm>
#include <utility>

#include "11_flash_attention/kernels/best_rung.hpp"
#include "11_flash_attention/kernels/uploads.hpp"
#include "shapes.hpp"

namespace t2t {

constexpr std::size_t logit_rows = 128;  // rows of logits on the device at once
constexpr std::size_t decoded = 16;      // rows times heads of a group, up to which rung 5 is best

/// Refuses what the kernels do not compute.
static const BlockSettings& supported(const Config& config, const DeviceRoom& room) {
  const BlockSettings& s = config.block;
  expect_only(differences_from_llama(config),
              {Difference::halves, Difference::scaled_rope, Difference::tied},
              "the model for a GPU");
  expect_tile_width(int(s.D));
  expect(s.C % 8 == 0, "C", "a multiple of 8", s.C);
  expect(s.F >= 8 && s.F % 8 == 0, "F", "a multiple of 8", s.F);
  expect(room.S >= 1, "S", "at least 1", room.S);
  expect(room.sequences >= 1, "sequences", "at least 1", room.sequences);
  expect(room.chunk >= 1 && room.chunk <= 65535, "chunk", "1 to 65535", room.chunk);
  return s;
}

/// Stretches for a sequence of S tokens, whose queries for one token are one tile for each group.
static int stretches_of(const BlockSettings& s, std::size_t S) {
  return decode_splits(int(s.G), int(S), decode_blocks(int(s.D)) * multiprocessors());
}

/// Up to how many rows of one sequence rung 5 takes. A row that may be recorded is among them.
static std::size_t decoded_rows(const BlockSettings& s) {
  return std::max<std::size_t>(1, decoded / (s.H / s.G));
}

DeviceModel::DeviceModel(const Model& model, const DeviceRoom& room, DeviceCache other,
                         const UploadMatrices& upload)
    : s_(supported(model.config(), room)),
      V_(model.config().V),
      room_(room),
      other_(std::move(other)),
      matrices_(upload(model)),
      gains_(upload_gains(model)),
      final_gain_(uploaded(model.weights().final_norm.gain)),
      cos_(uploaded(block_rope_table(s_, room.S).cos)),
      sin_(uploaded(block_rope_table(s_, room.S).sin)),
      keys_(other_.layer ? 0 : model.config().L * room.sequences * s_.G * room.S * s_.D),
      values_(keys_.size()),
      tokens_(4 * room.chunk),
      x_(room.chunk * s_.C),
      normed_(room.chunk * s_.C),
      qkv_(room.chunk * (s_.H + 2 * s_.G) * s_.D),
      q_(room.chunk * s_.H * s_.D),
      heads_(room.chunk * s_.H * s_.D),
      hidden_(room.chunk * s_.F),
      logits_(std::min(logit_rows, room.chunk) * V_),
      splits_(stretches_of(s_, room.S)),
      stretches_({decoded_rows(s_) * s_.H * std::size_t(splits_) * (s_.D + 1),
                  s_.G * std::size_t(packed_tiles(int(decoded_rows(s_) * (s_.H / s_.G))))}),
      steps_(room.sequences) {}

NormedRows DeviceModel::normed(const DeviceBuffer<float>& gain, const int* rows) {
  return {x_.data(), rows, gain.data(), s_.eps, normed_.data()};
}

LayerCache DeviceModel::cache(std::size_t l) {
  if (other_.layer) return other_.layer(l);
  const std::size_t of_layer = room_.sequences * s_.G * room_.S * s_.D;
  return {keys_.data() + l * of_layer, values_.data() + l * of_layer, int(room_.S)};
}

void DeviceModel::attend(std::size_t l, const Run& run, std::size_t first) {
  const int T = int(run.rows), H = int(s_.H), G = int(s_.G), D = int(s_.D), S = int(room_.S);
  const std::size_t of_sequence = run.sequence * s_.G * room_.S * s_.D;
  const std::size_t of_run = first * s_.H * s_.D;
  const bf16 *q = q_.data() + of_run, *keys = cache(l).keys + of_sequence;
  const bf16* values = cache(l).values + of_sequence;
  const Strides rows = row_major(T, H, D), cached = {long(G) * S * D, D, long(S) * D};
  AttentionCall<bf16> call = {
      q, keys, values, heads_.data() + of_run, rows, cached, cached, rows, 1, T, S, H, G,
      D, true, 0};
  // Rung 5 reads on the device how many keys there are, since a recorded step cannot be told.
  if (run.rows <= decoded_rows(s_))
    return attend_decode(call, splits_, stretches_, positions() + first);
  call.start = int(run.position), call.S = call.start + T;
  attend_prompt(call);
}

void DeviceModel::launch_layers(std::span<const Run> runs, int T) {
  const int H = int(s_.H), G = int(s_.G), D = int(s_.D);
  const RopePairs pairs =
      s_.pairing == Pairing::neighbours ? RopePairs::neighbours : RopePairs::halves;
  matrices_.embed(ids(), T, x_.data());
  for (std::size_t l = 0; l < gains_.size(); ++l) {
    // Attention reads the stream through a norm, and its result is added to the stream.
    matrices_.project(l, normed(gains_[l].attention), T, qkv_.data());
    launch_rope_and_append(qkv_.data(), {positions(), sequences(), other_.places}, cos_.data(),
                           sin_.data(), pairs, T, H, G, D, q_.data(), cache(l));
    if (other_.attend)
      other_.attend(l, q_.data(), heads_.data());
    else
      for_each_run({runs.data(), runs.size()},
                   [&](const Run& run, std::size_t first) { attend(l, run, first); });
    matrices_.add_heads(l, heads_.data(), T, x_.data());

    // So does the network.
    matrices_.gate_and_up(l, normed(gains_[l].feed_forward), T, hidden_.data());
    matrices_.add_hidden(l, hidden_.data(), T, x_.data());
  }
}

/// The logits of N of the rows that want them, from the first on.
void DeviceModel::launch_head(std::size_t first, std::size_t N) {
  matrices_.score(normed(final_gain_, wanted() + first), int(N), logits_.data());
}

/// All launches of one token that wants logits.
void DeviceModel::launch_step(std::size_t sequence) {
  const Run run = {sequence, 0, 1};  // its position is read on the device
  launch_layers({&run, 1}, 1);
  launch_head(0, 1);
}

/// The same, as a graph once it is recorded. The first step of a sequence is not: CUDA may load a
/// kernel when it is first launched, and a recording should hold launches alone.
void DeviceModel::step(std::size_t sequence) {
  if (std::optional<Graph>& recorded = steps_[sequence]) return recorded->launch();
  launch_step(sequence);
  steps_[sequence].emplace([&] { launch_step(sequence); });
}

void DeviceModel::upload(const PlannedRows& rows) {
  std::vector<int> all(tokens_.size());
  const std::size_t chunk = room_.chunk;
  std::ranges::copy(rows.ids, all.begin());
  std::ranges::copy(rows.positions, all.begin() + long(chunk));
  std::ranges::copy(rows.sequences, all.begin() + long(2 * chunk));
  std::ranges::copy(rows.wanted, all.begin() + long(3 * chunk));
  tokens_.upload(all);
}

void DeviceModel::download(std::size_t N, Matrix logits) const {
  // Each copy takes some microseconds, and rows are usually neighbours on the host, too.
  const std::size_t at_once = logits.stride == V_ ? N : 1;
  for (std::size_t n = 0; n < N; n += at_once)
    copy_from_device(logits.row(n).data(), logits_.data() + n * V_, at_once * V_ * sizeof(float));
}

void DeviceModel::run(std::span<const MoreTokens> more, std::span<const std::size_t> lengths,
                      Matrix logits) {
  std::size_t done = 0;  // rows of logits
  for (const PlannedRows& rows : plan_rows(more, lengths, room_.chunk)) {
    upload(rows);
    std::size_t N = std::min(logit_rows, rows.wanted.size());  // rows of logits at once
    const auto launch = [&] {
      launch_layers(rows.runs, int(rows.T()));
      if (N > 0) launch_head(0, N);
    };
    if (other_.run)
      other_.run(rows, launch);
    else if (rows.T() == 1 && N == 1)
      step(rows.runs[0].sequence);
    else
      launch();
    for (std::size_t first = 0; first < rows.wanted.size(); first += N, done += N) {
      N = std::min(logit_rows, rows.wanted.size() - first);
      if (first > 0) launch_head(first, N);
      download(N, logits.rows_from(done, N));
    }
  }
  synchronize();  // what goes wrong in a kernel is told here
}

}  // namespace t2t
