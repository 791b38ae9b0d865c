#include "19_ranks/sharded/shards.hpp"

#include <algorithm>

#include "19_ranks/collectives/all_to_all.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"

namespace t2t {

std::vector<ListedTensor> chunks_of(const Communicator& ranks, std::vector<ListedTensor> tensors) {
  for (ListedTensor& tensor : tensors)
    tensor.numbers = chunk_of(tensor.numbers, ranks.size, ranks.rank);
  return tensors;
}

Shards::Shards(const Communicator& ranks, const std::vector<ListedTensor>& tensors)
    : elements_(elements_of(chunks_of(ranks, tensors))),
      list_(listed_in(elements_, chunks_of(ranks, tensors))) {}

std::vector<float> own_chunks(const Communicator& ranks, const std::vector<ConstRow>& own,
                              const std::vector<std::size_t>& rows, std::size_t n) {
  const std::size_t length = range_of(n, ranks.size, ranks.rank).size();
  std::vector<float> sent;  // for each rank its chunk of each own row
  std::vector<std::size_t> sent_counts, counts;
  std::size_t all = 0;
  for (std::size_t r = 0; r < ranks.size; ++r) {
    const Range chunk = range_of(n, ranks.size, r);
    for (const ConstRow row : own)
      sent.insert(sent.end(), row.begin() + std::ptrdiff_t(chunk.begin),
                  row.begin() + std::ptrdiff_t(chunk.end));
    sent_counts.push_back(own.size() * chunk.size());
    counts.push_back(rows[r] * length);
    all += counts.back();
  }
  std::vector<float> chunks(all);
  all_to_all(ranks, sent, sent_counts, chunks, counts);
  return chunks;
}

void add_in_pairs(PairTree& tree, const std::vector<Range>& added, ConstRow rows,
                  const std::vector<Row>& sums) {
  const std::size_t length = added.empty() ? 0 : rows.size() / added.size();
  for (std::size_t i = 0; i < added.size(); ++i) {
    std::size_t last = tree.sums().size();
    std::ranges::copy(rows.subspan(i * length, length), sums[last].begin());
    for (std::size_t left = tree.add(added[i]); left > 0; --left, --last)
      add_row(sums[last - 1], sums[last]);
  }
}

}  // namespace t2t
