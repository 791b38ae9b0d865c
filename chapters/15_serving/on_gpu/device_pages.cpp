#include "15_serving/on_gpu/device_pages.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "shapes.hpp"

namespace t2t {

namespace {

/// The lists of a batch: the place of each row's key and value; what SequencesOnDevice and
/// PromptsOnDevice point at; and last the tables, first those of the sequences that decode.
enum List : std::size_t {
  places,
  lengths,
  table_at,
  stretch_at,
  blocks,
  rows_of_decodes,
  tiles,
  all_tables
};

}  // namespace

static std::size_t stretches_of(std::size_t S) { return (S + gpu_stretch - 1) / gpu_stretch; }

/// How long each list may become: all sequences are in a batch, with all of their pages.
static std::vector<std::size_t> longest(const EngineOptions& options, std::size_t S) {
  const std::size_t n = options.sequences, of_tile = sizeof(PromptTile) / sizeof(int);
  const std::size_t most_tiles = n + options.budget / prompt_tile_rows;
  const std::size_t of_blocks = sizeof(PagedBlock) / sizeof(int) * n * stretches_of(S);
  return {options.budget,          n, n, n + 1, of_blocks, n, of_tile * most_tiles,
          n * options.pages_for(S)};
}

static int checked_pages(const EngineOptions& options) {
  const std::size_t most = std::numeric_limits<int>::max();
  expect(options.page_size >= 1, "positions of a page", "at least 1", options.page_size);
  expect(options.pages >= 1 && options.pages <= most / options.page_size, "pages",
         "1 to " + std::to_string(most / options.page_size), options.pages);
  return int(options.pages);
}

DevicePages::DevicePages(const Config& config, const EngineOptions& options, std::size_t S)
    : tables(options.sequences),
      s_(config.block),
      L_(config.L),
      pages_(checked_pages(options)),
      page_size_(int(options.page_size)),
      keys_(L_ * s_.G * options.pages * options.page_size * s_.D),
      values_(keys_.size()),
      packed_(L_ * s_.G * options.page_size * s_.D),
      scratch_(paged_scratch(options.sequences, options.sequences * stretches_of(S), int(s_.H),
                             int(s_.G), int(s_.D))),
      slots_(paged_blocks(int(s_.D)) * multiprocessors()),
      lists_(longest(options, S)) {}

DeviceCache DevicePages::cache() {
  const std::size_t of_layer = keys_.size() / L_;
  return {.layer =
              [this, of_layer](std::size_t l) {
                return LayerCache{keys_.data() + l * of_layer, values_.data() + l * of_layer,
                                  pages_ * page_size_};
              },
          .places = lists_.on_device(places),
          .attend = [this](std::size_t l, const bf16* q, bf16* heads) { attend(l, q, heads); },
          .run = [this](const PlannedRows& rows,
                        const std::function<void()>& launch) { run(rows, launch); }};
}

void DevicePages::set_places(const PlannedRows& rows) {
  std::vector<int> all;
  for (std::size_t t = 0; t < rows.T(); ++t) {
    const PageTable& table = tables[std::size_t(rows.sequences[t])];
    const int position = rows.positions[t];
    all.push_back(int(table[std::size_t(position / page_size_)]) * page_size_ +
                  position % page_size_);
  }
  lists_.set(places, all);
}

void DevicePages::set_decodes(std::span<const PageTable> of, std::span<const int> of_lengths,
                              std::span<const int> rows, std::vector<int>& in_all) {
  decodes_ = {};
  if (rows.empty()) return;
  const int of_stretch = int(s_.G) * packed_tiles(int(s_.H / s_.G));
  const int at_once = stretches_at_once(of_lengths, of_stretch, slots_);
  const PagedPlan plan = plan_sequences(of, of_lengths, pages_, page_size_, at_once);
  std::vector<int> of_blocks;
  for (const PagedBlock& block : plan.blocks)
    of_blocks.insert(of_blocks.end(), {block.sequence, block.stretch, block.count});
  lists_.set(lengths, plan.lengths);
  lists_.set(table_at, plan.table_at);
  lists_.set(stretch_at, plan.stretch_at);
  lists_.set(blocks, of_blocks);
  lists_.set(rows_of_decodes, rows);
  in_all = plan.tables;
  decodes_ = {int(rows.size()),
              plan.stretch_at.back(),
              int(plan.blocks.size()),
              pages_,
              page_size_,
              lists_.on_device(lengths),
              lists_.on_device(all_tables),
              lists_.on_device(table_at),
              lists_.on_device(stretch_at),
              reinterpret_cast<const PagedBlock*>(lists_.on_device(blocks)),
              lists_.on_device(rows_of_decodes)};
}

void DevicePages::set_prompts(std::span<const PageTable> of, std::span<const PromptRows> rows,
                              std::vector<int>& in_all) {
  prompts_ = {};
  if (rows.empty()) return;
  const PromptPlan plan = plan_prompts(of, rows, pages_, page_size_);
  const int before = int(in_all.size());  // the decodes' tables come first
  std::vector<int> numbers;
  for (const PromptTile& tile : plan.tiles)
    numbers.insert(numbers.end(), {tile.row, tile.rows, tile.position, before + tile.table_at});
  in_all.insert(in_all.end(), plan.tables.begin(), plan.tables.end());
  lists_.set(tiles, numbers);
  prompts_ = {int(plan.tiles.size()), pages_, page_size_,
              reinterpret_cast<const PromptTile*>(lists_.on_device(tiles)),
              lists_.on_device(all_tables)};
}

void DevicePages::prepare(const PlannedRows& rows) {
  std::vector<PageTable> of_decodes, of_prompts;
  std::vector<int> decoded, seen;
  std::vector<PromptRows> prompts;
  int first = 0;
  for (const Run& run : rows.runs) {
    const PageTable& table = tables[run.sequence];
    const int count = int(run.rows), position = int(run.position);
    if (count == 1)
      of_decodes.push_back(table), seen.push_back(position + 1), decoded.push_back(first);
    else
      of_prompts.push_back(table), prompts.push_back({first, count, position});
    first += count;
  }
  std::vector<int> in_all;
  set_decodes(of_decodes, seen, decoded, in_all);
  set_prompts(of_prompts, prompts, in_all);
  set_places(rows);  // the tables are checked by now
  lists_.set(all_tables, in_all);
  lists_.upload();
}

void DevicePages::run(const PlannedRows& rows, const std::function<void()>& launch) {
  prepare(rows);
  const Shape shape{rows.T(), rows.wanted.size(), decodes_.stretches, decodes_.blocks};
  if (prompts_.count > 0 || last_ != shape) {
    // CUDA may load a kernel when it is first launched: a shape is recorded when it comes again.
    recorded_.reset(), last_.reset();
    launch();
    if (prompts_.count == 0) last_ = shape;
    return;
  }
  if (!recorded_) recorded_.emplace(launch);
  recorded_->launch();
}

void DevicePages::attend(std::size_t l, const bf16* q, bf16* heads) {
  const std::size_t of_layer = keys_.size() / L_;
  const PagedCall call{q,
                       keys_.data() + l * of_layer,
                       values_.data() + l * of_layer,
                       heads,
                       int(s_.H),
                       int(s_.G),
                       int(s_.D)};
  if (decodes_.B > 0) attend_pages(call, decodes_, scratch_);
  if (prompts_.count > 0) attend_prompts(call, prompts_);
}

PageStore DevicePages::store(DeviceBuffer<bf16>& rows) const {
  return {rows.data(), int(L_ * s_.G), pages_, std::size_t(page_size_) * s_.D};
}

PageCopy DevicePages::copy_of(std::size_t page) {
  PageCopy copy(bytes_of_a_page());
  pack_page(store(keys_), page, packed_.data());
  copy_from_device(copy.data(), packed_.data(), copy.size() / 2);
  pack_page(store(values_), page, packed_.data());
  copy_from_device(copy.data() + copy.size() / 2, packed_.data(), copy.size() / 2);
  return copy;
}

void DevicePages::put(std::size_t page, std::span<const std::byte> copy) {
  expect(copy.size() == bytes_of_a_page(), "bytes of a page", std::to_string(bytes_of_a_page()),
         copy.size());
  copy_to_device(packed_.data(), copy.data(), copy.size() / 2);
  unpack_page(store(keys_), page, packed_.data());
  copy_to_device(packed_.data(), copy.data() + copy.size() / 2, copy.size() / 2);
  unpack_page(store(values_), page, packed_.data());
}

}  // namespace t2t
