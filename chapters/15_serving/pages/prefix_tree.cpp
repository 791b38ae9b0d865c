#include "15_serving/pages/prefix_tree.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "shapes.hpp"

namespace t2t {

std::uint64_t hash_of_page(std::size_t parent, std::span<const int> tokens) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (value >> 8 * byte & 0xff)) * 0x100000001b3;
    }
  };
  add(parent);
  for (const int token : tokens) add(std::uint64_t(token));
  return hash;
}

PrefixTree::PrefixTree(PagePool& pool, std::size_t page_size, HashOfPage hash)
    : pool_(pool), hash_(hash), page_size_(page_size) {
  expect(page_size >= 1, "tokens of a page", "at least 1", 0);
  nodes_.push_back({root, 0, {}});
}

std::optional<std::size_t> PrefixTree::child(std::size_t parent,
                                             std::span<const int> tokens) const {
  const auto [first, last] = by_hash_.equal_range(hash_(parent, tokens));
  for (auto found = first; found != last; ++found) {
    const Node& node = nodes_[found->second];
    if (node.parent == parent && std::ranges::equal(node.tokens, tokens)) return found->second;
  }
  return {};
}

std::size_t PrefixTree::add(std::size_t parent, std::span<const int> tokens, std::size_t page) {
  pool_.share(page);
  std::size_t node = nodes_.size();
  if (unused_.empty()) {
    nodes_.emplace_back();
  } else {
    node = unused_.back();
    unused_.pop_back();
  }
  nodes_[node] = {parent, page, {tokens.begin(), tokens.end()}};
  ++nodes_[parent].children;
  by_hash_.emplace(hash_(parent, tokens), node);
  return node;
}

void PrefixTree::remove(std::size_t node) {
  const Node& removed = nodes_[node];
  const auto [first, last] = by_hash_.equal_range(hash_(removed.parent, removed.tokens));
  by_hash_.erase(std::find_if(first, last, [&](const auto& at) { return at.second == node; }));
  --nodes_[removed.parent].children;
  pool_.give_back(removed.page);
  nodes_[node] = {root, 0, {}};
  unused_.push_back(node);
}

std::vector<std::size_t> PrefixTree::find(std::span<const int> ids) const {
  std::vector<std::size_t> pages;
  std::size_t node = root;
  while ((pages.size() + 1) * page_size_ < ids.size()) {
    const auto next = child(node, ids.subspan(pages.size() * page_size_, page_size_));
    if (!next) break;
    node = *next;
    pages.push_back(nodes_[node].page);
  }
  return pages;
}

void PrefixTree::insert(std::span<const int> ids, std::span<std::size_t> table) {
  expect(table.size() >= ids.size() / page_size_, "pages of the table",
         "at least " + std::to_string(ids.size() / page_size_), table.size());
  std::size_t node = root;
  ++now_;
  for (std::size_t i = 0; (i + 1) * page_size_ <= ids.size(); ++i) {
    const std::span<const int> tokens = ids.subspan(i * page_size_, page_size_);
    const auto known = child(node, tokens);
    node = known ? *known : add(node, tokens, table[i]);
    nodes_[node].used = now_;
    if (nodes_[node].page == table[i]) continue;
    pool_.share(nodes_[node].page);
    pool_.give_back(std::exchange(table[i], nodes_[node].page));
  }
}

bool PrefixTree::evict() {
  std::size_t oldest = root;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.tokens.empty() || node.children > 0 || pool_.references(node.page) > 1) continue;
    if (oldest == root || node.used < nodes_[oldest].used) oldest = i;
  }
  if (oldest == root) return false;
  remove(oldest);
  return true;
}

std::size_t PrefixTree::evictable(std::span<const std::size_t> given_back) const {
  // A page is needed if a sequence uses it, or a page that follows it.
  std::vector<bool> needed(nodes_.size(), false), fewer(pool_.pages(), false);
  for (const std::size_t page : given_back) fewer[page] = true;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].tokens.empty()) continue;
    if (pool_.references(nodes_[i].page) - fewer[nodes_[i].page] == 1) continue;
    for (std::size_t at = i; at != root && !needed[at]; at = nodes_[at].parent) needed[at] = true;
  }
  std::size_t evictable = 0;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    evictable += !nodes_[i].tokens.empty() && !needed[i];
  return evictable;
}

std::vector<std::size_t> PrefixTree::pages() const {
  std::vector<std::size_t> pages;
  for (const Node& node : nodes_)
    if (!node.tokens.empty()) pages.push_back(node.page);
  return pages;
}

}  // namespace t2t
