#include "25_sinks/layers/shared_caches.hpp"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>
#include <utility>

#include "08_block/fast/cached_attention.hpp"
#include "shapes.hpp"

namespace t2t {

/// Whether a reader with settings b finds in the owner's cache the keys that it would make.
static bool same_keys(const BlockSettings& a, const BlockSettings& b) {
  return a.G == b.G && a.D == b.D && a.uses_rope == b.uses_rope && a.theta == b.theta &&
         a.frequencies == b.frequencies && a.pairing == b.pairing;
}

void expect_owners(std::span<const BlockSettings> layers, std::span<const std::size_t> owners) {
  expect(owners.size() == layers.size(), "owners", fmt::format("L = {}", layers.size()),
         owners.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::size_t owner = owners[l];
    if (owner > l || owners[owner] != owner)
      throw std::invalid_argument(fmt::format(
          "layer {}: wanted itself or an earlier layer with a cache as owner, got {}", l, owner));
    if (!same_keys(layers[owner], layers[l]))
      throw std::invalid_argument(fmt::format(
          "layer {}: wanted an owner with the same G, D and RoPE, got layer {}", l, owner));
  }
}

static std::vector<std::size_t> own_caches(std::size_t L) {
  std::vector<std::size_t> owners(L);
  std::iota(owners.begin(), owners.end(), std::size_t(0));
  return owners;
}

SharedCaches::SharedCaches(std::span<const BlockSettings> layers, std::vector<std::size_t> owners,
                           std::size_t S, std::size_t max_run_rows, std::size_t sequences,
                           LayerKernel kernel)
    : tables_(layers, S, max_run_rows),
      owners_(owners.empty() ? own_caches(layers.size()) : std::move(owners)),
      kernel_(std::move(kernel)) {
  expect(sequences >= 1, "sequences", "at least 1", sequences);
  expect_owners(layers, owners_);
  caches.resize(sequences);
  for (std::vector<KvCache>& of_sequence : caches) {
    of_sequence.reserve(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l)
      of_sequence.push_back(owners_[l] == l ? make_kv_cache(layers[l].G, S, layers[l].D)
                                            : KvCache{});
  }
  if (!kernel_)
    kernel_ = [kernel = grouped_kernel(layers, S, max_run_rows)](
                  std::size_t, ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule,
                  Matrix out) { kernel(q, heads, rule, out); };
}

/// Throws unless the owner has appended the keys of this pass: a reader comes after it.
static void expect_appended(const Run& run, std::size_t owner, const KvCache& cache) {
  const std::size_t wanted = run.position + run.rows;
  if (cache.length != wanted)
    throw std::invalid_argument(
        fmt::format("layer {}, which owns the cache: wanted {} positions in it, got {}", owner,
                    wanted, cache.length));
}

void SharedCaches::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  tables_.expect_call(in, heads, caches.size());
  const std::size_t layer = in.block.layer(), owner = owners_[layer];
  const auto cache_of = [&](const Run& run) -> KvCache& { return caches[run.sequence][owner]; };
  for (const Run& run : in.runs) {
    if (owner == layer) expect_no_gap(run, cache_of(run).length);
    if (owner != layer) expect_appended(run, owner, cache_of(run));
  }

  // Queries and keys are rotated by their positions. A reader's keys are not used.
  tables_.rotate(in, trace);

  // Only an owner appends.
  if (owner == layer)
    for_each_run(in.runs, [&](const Run& run, std::size_t first) {
      cache_of(run).length = run.position;
      append(cache_of(run), in.k.rows_from(first, run.rows), in.v.rows_from(first, run.rows));
    });
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    kernel_(layer, in.q.rows_from(first, run.rows), cached_heads(cache_of(run)),
            rule_of(in.block.settings()), heads.rows_from(first, run.rows));
  });
}

std::size_t SharedCaches::bytes() const {
  std::size_t sum = 0;
  for (const std::vector<KvCache>& of_sequence : caches)
    for (std::size_t l = 0; l < of_sequence.size(); ++l)
      if (owners_[l] == l) sum += t2t::bytes(of_sequence[l]);
  return sum;
}

}  // namespace t2t
