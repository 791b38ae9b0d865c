// Pages that are cached after their sequence has ended, so that a sequence with the same prefix
// need not recompute them.
//
// What is in a page depends on its own tokens and on all tokens before it, through attention and
// the layers. A page is therefore found by its tokens and by the page before it, its parent. The
// pages are the nodes of a tree: sequences with a common prefix share a path from the root. Only
// full pages are cached, after all of their tokens have been computed. A node is looked up by a
// hash of its parent and its tokens. Since two nodes may have the same hash, the parent and the
// tokens are also compared.
//
//   a system prompt of 40 tokens, pages of 16:   root ─ page 7 ─ page 2 ─┬─ page 9    question A
//                                                                        └─ page 4    question B
//
// The tree holds a reference to each of its pages in the pool. When pages run out, it evicts the
// least recently used of those that no sequence uses and no other page follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "15_serving/pages/page_pool.hpp"

namespace t2t {

/// The hash for looking a node up: FNV-1a over the parent's index in the tree and then the tokens,
/// each as an integer of 8 bytes, the lowest byte first. The hash begins as 0xcbf29ce484222325; for
/// each byte it is XORed with the byte and multiplied by 0x100000001b3.
std::uint64_t hash_of_page(std::size_t parent, std::span<const int> tokens);
using HashOfPage = std::uint64_t (*)(std::size_t parent, std::span<const int> tokens);

class PrefixTree {
 public:
  /// For pages of `page_size` tokens. The pool must outlive the tree. `hash` is hash_of_page, or in
  /// tests a function with many equal hashes. Throws std::invalid_argument for pages of 0 tokens.
  PrefixTree(PagePool& pool, std::size_t page_size, HashOfPage hash = hash_of_page);
  PrefixTree(const PrefixTree&) = delete;  // a copy would give the same pages back

  /// The pages of a sequence's prefix, from the root, as far as the tree has them. They never
  /// cover the whole sequence: its last token must be read to get its logits. Changes nothing:
  /// whoever uses the pages must share them in the pool.
  std::vector<std::size_t> find(std::span<const int> ids) const;

  /// Enters a sequence's full pages. `ids` are its first tokens, all of which have been computed,
  /// and `table` lists its pages. Tokens after the last full page are ignored. The tree takes a
  /// reference to each page that it did not have. Where it has another page with the same tokens
  /// and parent, that page replaces the sequence's own in the table: the sequence shares it and
  /// gives its own back. The contents of the two are the same, bit for bit. All pages of the path
  /// count as used now. Throws std::invalid_argument when the table has too few pages.
  void insert(std::span<const int> ids, std::span<std::size_t> table);

  /// Gives one page back to the pool, which frees it: the least recently used of the leaves to
  /// which only the tree refers. Returns false if there is none.
  bool evict();
  /// How many pages evict could free, one after the other: those to which only the tree refers, and
  /// whose descendants are all such pages. Each page in `given_back` counts as having one
  /// reference fewer, as if a sequence had given it back.
  std::size_t evictable(std::span<const std::size_t> given_back = {}) const;

  /// The tree's pages, in any order.
  std::vector<std::size_t> pages() const;

 private:
  static constexpr std::size_t root = 0;
  struct Node {
    std::size_t parent, page;  // the parent's index in nodes_
    std::vector<int> tokens;   // of a full page; none for the root and for an unused one
    std::size_t children = 0;  // how many nodes have it as their parent
    std::uint64_t used = 0;    // now_ when it was inserted last, for the first time or again
  };
  /// The index of the node with this parent and these tokens, or nothing if the tree has none.
  std::optional<std::size_t> child(std::size_t parent, std::span<const int> tokens) const;
  /// Adds a node that does not exist yet, and takes a reference to its page. Uses an unused
  /// index if there is one. Returns the node's index.
  std::size_t add(std::size_t parent, std::span<const int> tokens, std::size_t page);
  /// Removes a node without children, and gives its page back. Its index is unused from then on.
  void remove(std::size_t node);

  PagePool& pool_;
  HashOfPage hash_;
  std::size_t page_size_;                                        // tokens of a page
  std::vector<Node> nodes_;                                      // nodes_[root] has no page
  std::vector<std::size_t> unused_;                              // indices into nodes_
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;  // to the index of a node, not root
  std::uint64_t now_ = 0;                                        // counts the calls of insert
};

}  // namespace t2t
