#include "20_split_models/serving/ranked_runner.hpp"

#include <exception>
#include <limits>
#include <utility>

#include "19_ranks/collectives/messages.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/counting/costs.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "shapes.hpp"

namespace t2t {

/// Rank 0 gets the columns that the others have; nobody else needs the logits.
static void gather_on_first(const Communicator& ranks, Matrix logits) {
  const auto own = [&](std::size_t rank) { return range_of(logits.cols, ranks.size, rank); };
  for (std::size_t t = 0; t < logits.rows; ++t) {
    const auto [begin, end] = own(ranks.rank);
    if (ranks.rank != 0)
      send(ranks, logits.row(t).subspan(begin, end - begin), 0, Purpose::all_gather);
    for (std::size_t r = 1; ranks.rank == 0 && r < ranks.size; ++r)
      receive(ranks, logits.row(t).subspan(own(r).begin, own(r).size()), r, Purpose::all_gather);
  }
}

/// Up to here a float holds every integer: ids, positions and pages travel as floats.
static constexpr std::size_t most_exact = std::size_t(1) << 24;

ModelRunner runner_of_rank(const Communicator& ranks, const Model& own,
                           const EngineOptions& options) {
  expect(options.swap == 0, "pages to swap on several ranks", "0", options.swap);
  expect(own.config().V <= most_exact, "V", "at most 2^24", own.config().V);
  expect(options.pages * options.page_size <= most_exact, "tokens of the cache", "at most 2^24",
         options.pages * options.page_size);
  StateOptions slots = parallel_options({ranks, tree_all_reduce});
  slots.scored = [ranks](Matrix logits) { gather_on_first(ranks, logits); };
  ModelRunner runner = model_runner(own, options, slots);
  runner.copy_of = {}, runner.put = {};
  return runner;
}

/// A step's chunks as one row: their number, then for each one five numbers, its ids and its table.
static std::vector<float> packed_chunks(std::span<const Chunk> chunks) {
  std::vector<float> packed = {float(chunks.size())};
  for (const Chunk& chunk : chunks) {
    for (const std::size_t number :
         {chunk.sequence, chunk.position, chunk.wanted, chunk.ids.size(), chunk.table.size()})
      packed.push_back(float(number));
    packed.insert(packed.end(), chunk.ids.begin(), chunk.ids.end());
    packed.insert(packed.end(), chunk.table.begin(), chunk.table.end());
  }
  return packed;
}

/// What packed_chunks packed, with the ids and tables that the chunks refer to.
struct ReceivedChunks {
  std::vector<Chunk> chunks;
  std::size_t wanted = 0;  // rows of logits
  std::vector<int> ids;
  std::vector<std::size_t> tables;

  explicit ReceivedChunks(std::span<const float> packed) {
    ids.reserve(packed.size()), tables.reserve(packed.size());  // spans into them stay valid
    const auto next = [&packed] {
      const std::size_t number = std::size_t(packed.front());
      packed = packed.subspan(1);
      return number;
    };
    for (std::size_t left = next(); left > 0; --left) {
      Chunk chunk{.sequence = next(), .position = next(), .ids = {}, .table = {}, .wanted = next()};
      const std::size_t T = next(), pages = next();
      for (std::size_t t = 0; t < T; ++t) ids.push_back(int(next()));
      for (std::size_t i = 0; i < pages; ++i) tables.push_back(next());
      chunk.ids = std::span(ids).last(T), chunk.table = std::span(tables).last(pages);
      chunks.push_back(chunk), wanted += chunk.wanted;
    }
  }
};

LeadingRank::LeadingRank(const Communicator& ranks, ModelRunner own)
    : ranks_(ranks), own_(std::move(own)) {}

/// A step begins with the length of its chunks; a length of 0 is the end.
static void tell_length(const Communicator& ranks, std::size_t length) {
  float told = float(length);
  tree_broadcast(ranks, {&told, 1});
}

LeadingRank::~LeadingRank() {
  try {
    tell_length(ranks_, 0);
  } catch (const std::exception&) {
    // A rank that does not take the message has failed in a step, which then threw.
  }
}

ModelRunner LeadingRank::runner() {
  ModelRunner runner = own_;
  runner.run = [this](std::span<const Chunk> chunks, Matrix logits) {
    std::vector<float> packed = packed_chunks(chunks);
    tell_length(ranks_, packed.size());
    tree_broadcast(ranks_, packed);
    own_.run(chunks, logits);
  };
  return runner;
}

void follow(const Communicator& ranks, const ModelRunner& own) {
  Communicator patient = ranks;  // nobody may ask for hours
  patient.limit = std::numeric_limits<double>::infinity();
  Tensor<2> logits = empty(0, own.V);
  for (;;) {
    float length = 0;
    tree_broadcast(patient, {&length, 1});
    if (length == 0) return;
    std::vector<float> packed = std::vector<float>(std::size_t(length));
    tree_broadcast(ranks, packed);
    const ReceivedChunks received{packed};
    if (logits.shape(0) < received.wanted) logits = empty(received.wanted, own.V);
    own.run(received.chunks, Matrix(logits).rows_from(0, received.wanted));
  }
}

/// What a rank sends when rank 0's n floats go down the tree.
static Sent broadcast_cost(std::size_t n, std::size_t ranks, std::size_t rank) {
  Sent sent;
  for (std::size_t apart = 1; apart < ranks; apart *= 2)
    if (rank % (2 * apart) == 0 && rank + apart < ranks) sent += {1, sizeof(float) * n};
  return sent;
}

Sent end_cost(std::size_t ranks, std::size_t rank) { return broadcast_cost(1, ranks, rank); }

Sent step_cost(const Config& whole, std::span<const Chunk> chunks, std::size_t ranks,
               std::size_t rank) {
  std::size_t T = 0, wanted = 0;
  for (const Chunk& chunk : chunks) T += chunk.ids.size(), wanted += chunk.wanted;
  Sent sent = broadcast_cost(1, ranks, rank);
  sent += broadcast_cost(packed_chunks(chunks).size(), ranks, rank);
  for (std::size_t i = 0; i < 1 + 2 * whole.L; ++i)
    sent += tree_all_reduce_cost(T * whole.block.C, ranks, rank);
  const std::size_t own = range_of(whole.V, ranks, rank).size();
  if (rank != 0) sent += {wanted, wanted * sizeof(float) * own};
  return sent;
}

}  // namespace t2t
