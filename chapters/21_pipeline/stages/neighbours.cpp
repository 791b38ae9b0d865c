#include "21_pipeline/stages/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t most_parts = 16'000;

Neighbours::Neighbours(const Communicator& ranks, std::size_t parts) : ranks_(ranks) {
  expect(parts <= most_parts, "parts of a batch", fmt::format("at most {}", most_parts), parts);
}

/// MPI's tag: two for each micro-batch, after those of the collectives.
static Purpose tag_of(std::size_t part, bool forward) {
  return Purpose(purposes + 2 * part + (forward ? 0 : 1));
}

void Neighbours::receive_x(Matrix x, std::size_t part) {
  receive(ranks_, {x.data, x.rows * x.cols}, ranks_.rank - 1, tag_of(part, true));
}
void Neighbours::receive_dx(Matrix dx, std::size_t part) {
  receive(ranks_, {dx.data, dx.rows * dx.cols}, ranks_.rank + 1, tag_of(part, false));
}

void Neighbours::post(Way way, ConstMatrix x, std::size_t part) {
  auto& [copy, transfer] = outgoing_[way];
  if (transfer) transfer->finish();
  copy.assign(x.data, x.data + x.rows * x.cols);
  transfer.emplace(ranks_, way == to_next ? ranks_.rank + 1 : ranks_.rank - 1, copy.size(), true);
  transfer->begin_send(copy.data(), tag_of(part, way == to_next));
}
void Neighbours::send_x(ConstMatrix x, std::size_t part) { post(to_next, x, part); }
void Neighbours::send_dx(ConstMatrix dx, std::size_t part) { post(to_previous, dx, part); }

void Neighbours::finish() {
  for (Outgoing& one : outgoing_) {
    if (one.transfer) one.transfer->finish();
    one.transfer.reset();
  }
}

}  // namespace t2t
