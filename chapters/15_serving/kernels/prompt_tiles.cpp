// Checks the prompts of a step, and cuts them into tiles of queries. Runs on the host.
#include <algorithm>
#include <string>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "15_serving/kernels/prompts.hpp"
#include "shapes.hpp"

namespace t2t {

PromptPlan plan_prompts(std::span<const std::vector<std::size_t>> tables,
                        std::span<const PromptRows> prompts, int pages, int page_size) {
  expect_tables(tables, "prompts", prompts.size(), pages, page_size);
  PromptPlan plan{pages, page_size, {}, {}};
  for (std::size_t b = 0; b < tables.size(); ++b) {
    const auto [row, rows, position] = prompts[b];
    expect_size("rows", rows);
    expect(row >= 0, "row", "at least 0", row);
    expect(position >= 0, "position", "at least 0", position);
    const int before = int(plan.tables.size());
    add_pages(b, tables[b], long(position) + rows, plan.pages, plan.page_size, plan.tables);
    for (int done = 0; done < rows; done += prompt_tile_rows)
      plan.tiles.push_back(
          {row + done, std::min(rows - done, prompt_tile_rows), position + done, before});
  }
  std::ranges::stable_sort(plan.tiles, std::ranges::greater{},
                           [](const PromptTile& tile) { return tile.position + tile.rows; });
  return plan;
}

PagedPrompts::PagedPrompts(const PromptPlan& plan)
    : pages(plan.pages),
      page_size(plan.page_size),
      tiles(std::span(plan.tiles)),
      tables(std::span(plan.tables)) {}

PagedPrompts::operator PromptsOnDevice() const {
  return {int(tiles.size()), pages, page_size, tiles.data(), tables.data()};
}

}  // namespace t2t
