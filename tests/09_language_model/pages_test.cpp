// A cache in pages, as a server has it, behind the state's own functions: texts come and go, their
// pages are used again, and no line of the chapters knows of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "09_language_model/cases.hpp"
#include "09_language_model/fast/forward.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::pages_test {

/// Keys and values of all texts in one store of pages; a text has a list of its pages.
class PagedAttention {
 public:
  static constexpr std::size_t page = 4;  // tokens

  PagedAttention(std::span<const BlockSettings> layers, std::size_t S, std::size_t max_run_rows,
                 std::size_t texts, std::size_t pages)
      : layers_(layers, S, max_run_rows),
        pages_of_(texts),
        scratch_(max_run_rows, S, layers[0].H, layers[0].D) {
    const std::size_t width = layers[0].G * layers[0].D;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      keys_.push_back(empty(pages * page, width));
      values_.push_back(empty(pages * page, width));
    }
    for (std::size_t p = 0; p < pages; ++p) free_.push_back(p);
  }

  void operator()(const Projected& in, Matrix heads, const Trace& trace) {
    const BlockSettings& settings = in.block.settings();
    layers_.expect_call(in, heads, pages_of_.size());
    layers_.rotate(in, trace);
    for_each_run(in.runs, [&](const Run& run, std::size_t first) {
      make_room(run);
      Tensor<2>&k = keys_[in.block.layer()], &v = values_[in.block.layer()];
      for (std::size_t t = 0; t < run.rows; ++t) {
        std::ranges::copy(in.k.row(first + t), row(k, place(run, run.position + t)).begin());
        std::ranges::copy(in.v.row(first + t), row(v, place(run, run.position + t)).begin());
      }
      // The kernel wants a text's rows one after the other.
      const std::size_t S = run.position + run.rows;
      Tensor<2> text_keys = empty(S, k.shape(1)), text_values = text_keys;
      for (std::size_t s = 0; s < S; ++s) {
        std::ranges::copy(row(k, place(run, s)), row(text_keys, s).begin());
        std::ranges::copy(row(v, place(run, s)), row(text_values, s).begin());
      }
      grouped_attention_rows(in.q.rows_from(first, run.rows),
                             side_by_side(text_keys, text_values, settings.G), rule_of(settings),
                             heads.rows_from(first, run.rows), scratch_);
    });
  }

  void truncated(std::size_t text, std::size_t position) {
    std::vector<std::size_t>& pages = pages_of_[text];
    for (const std::size_t kept = (position + page - 1) / page; pages.size() > kept;
         pages.pop_back())
      free_.push_back(pages.back());
  }
  std::size_t free() const { return free_.size(); }

 private:
  std::size_t place(const Run& run, std::size_t position) const {
    return pages_of_[run.sequence][position / page] * page + position % page;
  }
  void make_room(const Run& run) {
    while (pages_of_[run.sequence].size() * page < run.position + run.rows) {
      if (free_.empty()) throw std::runtime_error("no page is free");
      pages_of_[run.sequence].push_back(free_.back());
      free_.pop_back();
    }
  }

  LayerTables layers_;
  std::vector<std::vector<std::size_t>> pages_of_;  // [texts]
  std::vector<std::size_t> free_;
  std::vector<Tensor<2>> keys_, values_;  // [L] of [pages·page, G·D]
  GroupedScratch scratch_;
};

TEST_CASE("pages: texts that come and go use each other's pages, and get the logits of a cache") {
  const Case c = llama();
  const Model model = c.model();
  PagedAttention paged(settings_of_all(c.config), 20, 5, 3, 6);
  StateOptions options{.chunk = 5, .sequences = 3};
  options.memory = {std::ref(paged), [&paged](std::size_t text, std::size_t position) {
                      paged.truncated(text, position);
                    }};
  ModelState pages(c.config, 20, options), caches(c.config, 20, {.chunk = 5, .sequences = 3});
  const auto both = [&](const std::vector<MoreTokens>& more) {
    Tensor<2> got = empty(more.size(), c.config.V), want = got;
    forward(model, pages, more, got);
    forward(model, caches, more, want);
    CHECK(all_close(got, want, c.bound(c.largest)));
  };
  const auto leave = [&](std::size_t text) {
    truncate(pages, 0, text);
    truncate(caches, 0, text);
  };
  const Ids a = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b = {9, 8, 7}, one = {5};
  both({{0, a}, {1, b}});  // three pages and one
  both({{1, one}, {0, one}});
  CHECK(paged.free() == 2);
  both({{2, std::span(a).first(4)}, {1, one}});  // one more each
  CHECK(paged.free() == 0);
  Tensor<2> logits = empty(1, c.config.V);
  REFUSES_AS(forward(model, pages, std::vector<MoreTokens>{{2, b}}, logits), "no page is free",
             std::runtime_error);
  CHECK(pages.length(2) == 4);
  leave(0);  // its three pages
  CHECK(paged.free() == 3);
  both({{2, b}, {1, b}, {0, one}});
  truncate(pages, 2, 1), truncate(caches, 2, 1);
  both({{1, a}, {2, one}});
  reset(pages);  // the pages of all texts
  CHECK(paged.free() == 6);
}

}  // namespace t2t::pages_test
