// Chapter 09's whole model on a device: ids go in, logits come out, and everything between them
// stays in the device's memory: the cache in bf16, the residual stream in float32, and the matrices
// in bf16 or as another chapter stores them (device_matrices.hpp).
//
//   x = embedding[ids]      x = block(x), L times      logits = norm(x)·headᵀ
//
//   block:  norm, q, k and v in one product → RoPE, append → attention → x += heads·w_oᵀ
//           norm, gate, up and SwiGLU in one product                   → x += hidden·w_downᵀ
//
// A prompt's chunk attends by the best rung for the GPU (best_rung.hpp), and up to 16 rows of
// queries of a group by rung 5. A step of one token is always the same launches with the same
// arguments: it is recorded as a graph, once for each sequence. gpu_state.hpp makes a ModelState of
// this class.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "11_flash_attention/kernels/decode/decode_scratch.hpp"
#include "11_flash_attention/kernels/model/device_matrices.hpp"
#include "11_flash_attention/kernels/model/device_weights.hpp"
#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "11_flash_attention/kernels/model/row_plan.hpp"
#include "cuda/graph.hpp"

namespace t2t {

/// How many tokens a DeviceModel has room for.
struct DeviceRoom {
  std::size_t S;          // of each sequence
  std::size_t sequences;  // continued at the same time
  std::size_t chunk;      // in the layers at once
};

/// A cache of another kind in place of the model's own, such as chapter 15's pages. All functions
/// launch kernels, or return device memory.
struct DeviceCache {
  std::function<LayerCache(std::size_t l)> layer = {};  // new keys and values go there,
  const int* places = nullptr;                          // [chunk], at these places (TokenRows)
  /// Attends from all rows of the chunk, q [T, H, D], and writes heads [T, H, D].
  std::function<void(std::size_t l, const bf16* q, bf16* heads)> attend = {};
  /// Runs a chunk: makes ready what the other functions need, then calls launch, or repeats what it
  /// launched for a chunk that differs in nothing but what is read from device memory.
  std::function<void(const PlannedRows& rows, const std::function<void()>& launch)> run = {};
};

class DeviceModel {
 public:
  /// Uploads the weights. Throws std::invalid_argument when the model differs from LLaMA's in more
  /// than RoPE's pairing and frequencies and tied weights ("the model for a GPU: wanted one without
  /// a sliding window"), D is not 64 or 128, C or F is not a multiple of 8, a size of the room is
  /// 0, or chunk is above 65535; std::runtime_error when the device has too little memory. With a
  /// cache of another kind, all of its members must be given.
  DeviceModel(const Model& model, const DeviceRoom& room, DeviceCache other = {},
              const UploadMatrices& upload = bf16_matrices);

  /// A Pass (state_options.hpp) with checked arguments; logits is [N, V]. Throws std::runtime_error
  /// when a kernel or a copy fails.
  void run(std::span<const MoreTokens> more, std::span<const std::size_t> lengths, Matrix logits);

 private:
  void upload(const PlannedRows& rows);
  void launch_layers(std::span<const Run> runs, int T);
  void attend(std::size_t l, const Run& run, std::size_t first);
  void launch_head(std::size_t first, std::size_t N);
  void launch_step(std::size_t sequence);
  void step(std::size_t sequence);
  void download(std::size_t N, Matrix logits) const;

  int* ids() { return tokens_.data(); }
  int* positions() { return tokens_.data() + room_.chunk; }
  int* sequences() { return tokens_.data() + 2 * room_.chunk; }
  int* wanted() { return tokens_.data() + 3 * room_.chunk; }
  NormedRows normed(const DeviceBuffer<float>& gain, const int* rows = nullptr);
  LayerCache cache(std::size_t l);

  BlockSettings s_;
  std::size_t V_;
  DeviceRoom room_;
  DeviceCache other_;
  DeviceMatrices matrices_;
  std::vector<DeviceGains> gains_;           // L
  DeviceBuffer<float> final_gain_;           // [C]
  DeviceBuffer<float> cos_, sin_;            // [S, D/2]
  DeviceBuffer<bf16> keys_, values_;         // [L, sequences, G, S, D], empty with another cache
  DeviceBuffer<int> tokens_;                 // [4, chunk]: ids, positions, sequences, wanted rows
  DeviceBuffer<float> x_;                    // [chunk, C], the residual stream
  DeviceBuffer<bf16> normed_;                // [chunk, C]
  DeviceBuffer<float> qkv_;                  // [chunk, H + 2·G, D]
  DeviceBuffer<bf16> q_, heads_;             // [chunk, H, D]
  DeviceBuffer<bf16> hidden_;                // [chunk, F]
  DeviceBuffer<float> logits_;               // [rows of logits at once, V]
  int splits_;                               // stretches of rung 5
  DecodeScratch stretches_;                  // its scratch
  std::vector<std::optional<Graph>> steps_;  // [sequences]: a step of one token, once recorded
};

}  // namespace t2t
