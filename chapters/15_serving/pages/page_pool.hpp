// Which pages of memory are free, and how many references each other page has.
//
// A page has room for the keys and values of a few positions. A pool only counts its pages;
// attention/paged_attention.hpp holds their contents. If two sequences begin with the same page,
// the page has two references, and it is free again when both have given it back.
#pragma once

#include <cstddef>
#include <vector>

namespace t2t {

class PagePool {
 public:
  /// All pages are free, and are taken in the order of their numbers, from 0. Throws
  /// std::invalid_argument if there are none.
  explicit PagePool(std::size_t pages);

  std::size_t pages() const { return references_.size(); }
  std::size_t free() const { return free_.size(); }
  /// How many references a page has; 0 if it is free. Throws std::invalid_argument for a page that
  /// is not below pages().
  std::size_t references(std::size_t page) const;

  /// Returns a free page, which has one reference from now on: of several, the one given back last.
  /// Throws std::runtime_error when none is free.
  std::size_t take();
  /// Adds a reference to a page that has at least one. Throws std::invalid_argument for a free
  /// page, and as references does.
  void share(std::size_t page);
  /// Removes one reference to a page, which is free when none is left. Throws std::invalid_argument
  /// for a free page, and as references does.
  void give_back(std::size_t page);

 private:
  std::vector<std::size_t> references_;  // [pages]: of each page, 0 if it is free
  std::vector<std::size_t> free_;        // the free pages; the last one is taken first
};

}  // namespace t2t
