// What must be true of pages: how they are counted, and how a sequence's beginning is found in
// them.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "15_serving/pages/page_pool.hpp"
#include "15_serving/pages/prefix_tree.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::pages_test {

using std::size_t;
using Pages = std::vector<size_t>;

TEST_CASE("by hand: a page is free again when its last user has given it back") {
  PagePool pool(2);
  CHECK(pool.free() == 2);
  const size_t a = pool.take(), b = pool.take();
  CHECK(a != b);
  CHECK(pool.free() == 0);
  REFUSES_AS(pool.take(), "no page is free", std::runtime_error);
  pool.share(a);
  CHECK(pool.references(a) == 2);
  pool.give_back(a);
  CHECK(pool.free() == 0);
  pool.give_back(a);
  CHECK(pool.free() == 1);
  CHECK(pool.references(a) == 0);
  CHECK(pool.take() == a);
  pool.give_back(a);
  REFUSES(pool.give_back(a), "page 0: wanted one with references, got a free one");
  REFUSES(pool.share(a), "page 0: wanted one with references, got a free one");
  REFUSES(pool.references(2), "page: wanted below 2, got 2");
  REFUSES(PagePool(0), "pages: wanted at least 1, got 0");
}

/// A tree of pages of two tokens, and a sequence whose pages it keeps and which is gone again.
struct Kept {
  PagePool pool{8};
  PrefixTree tree{pool, 2};

  Pages keep(const Ids& ids) {
    Pages table = tree.find(ids);
    for (const size_t page : table) pool.share(page);
    while (table.size() * 2 < ids.size()) table.push_back(pool.take());
    tree.insert(ids, table);
    for (const size_t page : table) pool.give_back(page);
    return table;
  }
};

TEST_CASE("a page may have more references than 16 bits can count") {
  PagePool pool(1);
  const size_t page = pool.take();
  for (int i = 0; i < 70'000; ++i) pool.share(page);
  CHECK(pool.references(page) == 70'001);
  for (int i = 0; i < 70'000; ++i) pool.give_back(page);
  CHECK(pool.references(page) == 1);
  CHECK(pool.free() == 0);
}

TEST_CASE("by hand: whole pages of a text are found again, but never all of its tokens") {
  Kept kept;
  const Pages table = kept.keep({1, 2, 3, 4, 5});
  CHECK(kept.tree.pages().size() == 2);  // the page with 5 is not whole
  CHECK(kept.pool.free() == 6);
  CHECK(kept.tree.find(Ids{1, 2, 3, 4, 5}) == Pages{table[0], table[1]});
  CHECK(kept.tree.find(Ids{1, 2, 3, 4}) == Pages{table[0]});  // 3 and 4 must be read
  CHECK(kept.tree.find(Ids{1, 2, 9, 9, 9}) == Pages{table[0]});
  CHECK(kept.tree.find(Ids{1, 9, 3, 4, 5}) == Pages{});
  CHECK(kept.tree.find(Ids{1, 2}) == Pages{});
  CHECK(kept.tree.find(Ids{1}) == Pages{});
}

TEST_CASE("equal tokens after different prefixes are different pages") {
  Kept kept;
  const Pages a = kept.keep({1, 1, 7, 7}), b = kept.keep({2, 2, 7, 7});
  CHECK(a[1] != b[1]);
  CHECK(kept.tree.find(Ids{1, 1, 7, 7, 0}) == a);
  CHECK(kept.tree.find(Ids{2, 2, 7, 7, 0}) == b);
  CHECK(kept.tree.find(Ids{7, 7, 0}) == Pages{});
}

TEST_CASE("a text that computed what the tree has already uses the tree's page from then on") {
  Kept kept;
  Pages one = {kept.pool.take()}, two = {kept.pool.take()};
  const size_t of_one = one[0];
  kept.tree.insert(Ids{3, 4}, one);
  kept.tree.insert(Ids{3, 4}, two);
  CHECK(two == Pages{of_one});
  CHECK(kept.pool.references(of_one) == 3);
  CHECK(kept.pool.free() == 7);
}

TEST_CASE("what was used least recently is given up first, and only what nothing needs") {
  Kept kept;
  const Pages a = kept.keep({1, 1, 2, 2}), b = kept.keep({5, 5});
  CHECK(kept.tree.evictable() == 3);
  kept.keep({1, 1, 2, 2});  // a is newer than b now
  CHECK(kept.tree.evict());
  CHECK(kept.pool.references(b[0]) == 0);
  kept.pool.share(a[1]);  // a sequence uses the second page, and so needs the first
  CHECK(kept.tree.evictable() == 0);
  CHECK(kept.tree.evictable(Pages{a[1]}) == 2);  // without that sequence
  CHECK_FALSE(kept.tree.evict());
  kept.pool.share(a[1]);
  CHECK(kept.tree.evictable(Pages{a[1]}) == 0);  // another sequence uses it, too
  kept.pool.give_back(a[1]), kept.pool.give_back(a[1]);
  CHECK(kept.tree.evict());  // first the page that no other follows
  CHECK(kept.pool.references(a[1]) == 0);
  CHECK(kept.tree.evict());
  CHECK(kept.pool.free() == 8);
  CHECK_FALSE(kept.tree.evict());
  CHECK(kept.tree.find(Ids{1, 1, 2, 2, 0}) == Pages{});
}

TEST_CASE("pages with one hash are told apart by their tokens and their parents") {
  PagePool pool(8);
  PrefixTree tree(pool, 2, [](size_t, std::span<const int>) { return std::uint64_t(7); });
  Pages a = {pool.take(), pool.take()}, b = {pool.take(), pool.take()};
  tree.insert(Ids{1, 1, 7, 7}, a);
  tree.insert(Ids{2, 2, 7, 7}, b);
  CHECK(tree.pages().size() == 4);
  CHECK(tree.find(Ids{1, 1, 7, 7, 0}) == a);
  CHECK(tree.find(Ids{2, 2, 7, 7, 0}) == b);
  CHECK(tree.find(Ids{7, 7, 0}) == Pages{});
  for (const size_t page : a) pool.give_back(page);
  REQUIRE(tree.evict());
  CHECK(tree.find(Ids{1, 1, 7, 7, 0}) == Pages{a[0]});
  CHECK(tree.find(Ids{2, 2, 7, 7, 0}) == b);
}

TEST_CASE("the hash depends on the parent, on each token and on their order") {
  const Ids ids = {1, 2, 3};
  CHECK(hash_of_page(0, ids) != hash_of_page(1, ids));
  CHECK(hash_of_page(0, ids) != hash_of_page(0, Ids{1, 3, 2}));
  CHECK(hash_of_page(0, ids) != hash_of_page(0, Ids{1, 2, 4}));
  CHECK(hash_of_page(0, ids) == hash_of_page(0, Ids{1, 2, 3}));
}

TEST_CASE("a tree refuses pages without tokens, and a table that is too short") {
  PagePool pool(2);
  REFUSES(PrefixTree(pool, 0), "tokens of a page: wanted at least 1, got 0");
  PrefixTree tree(pool, 2);
  Pages one = {pool.take()};
  REFUSES(tree.insert(Ids{1, 2, 3, 4}, one), "pages of the table: wanted at least 2, got 1");
}

}  // namespace t2t::pages_test
