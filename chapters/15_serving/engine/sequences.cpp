#include "15_serving/engine/sequences.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace t2t {

Sequences::Sequences(ModelRunner runner)
    : runner_(std::move(runner)),
      pool_(runner_.options.pages),
      tree_(pool_, runner_.options.page_size) {}

/// Where the sequence with this id is in a list, or the list's end.
static auto by_id(std::vector<Sequence>& sequences, std::size_t id) {
  return std::ranges::find(sequences, id, &Sequence::id);
}

Sequence& Sequences::running_sequence(std::size_t id) {
  const auto sequence = by_id(running_, id);
  if (sequence == running_.end())
    throw std::out_of_range(fmt::format("sequence {}: wanted one that runs", id));
  return *sequence;
}

bool Sequences::remove(std::size_t id) {
  for (std::vector<Sequence>* sequences : {&running_, &waiting_})
    if (const auto sequence = by_id(*sequences, id); sequence != sequences->end()) {
      leave(*sequence);
      sequences->erase(sequence);
      return true;
    }
  return false;
}

StepLimits Sequences::limits() const {
  const EngineOptions& options = runner_.options;
  const auto is_answered = [](const Sequence& sequence) {
    return sequence.tokens.size() - sequence.computed == 1;
  };
  const auto answers = std::size_t(std::ranges::count_if(running_, is_answered));
  const bool in_chunks = options.max_prefill_tokens > 0 && answers > 0;
  const std::size_t most = std::max(answers + options.max_prefill_tokens, options.sequences);
  return {in_chunks ? std::min(most, options.budget) : options.budget, options.sequences,
          options.page_size};
}

std::size_t Sequences::max_tokens() const {
  return std::min(runner_.positions, runner_.options.pages * runner_.options.page_size);
}

std::vector<ScheduledSequence> Sequences::scheduled_running() const {
  std::vector<ScheduledSequence> sequences;
  const std::size_t evictable = tree_.evictable();
  for (const Sequence& sequence : running_) {
    std::size_t freed = tree_.evictable(sequence.table) - evictable;
    for (const std::size_t page : sequence.table) freed += pool_.references(page) == 1;
    sequences.push_back({sequence.id, sequence.arrival, sequence.tokens.size(), sequence.computed,
                         sequence.table.size(), freed});
  }
  return sequences;
}

/// A page for one sequence alone.
std::size_t Sequences::take_page() {
  if (pool_.free() == 0) tree_.evict();
  return pool_.take();
}

void Sequences::make_room(Sequence& sequence, std::size_t tokens) {
  while (sequence.table.size() * runner_.options.page_size < sequence.computed + tokens)
    sequence.table.push_back(take_page());
}

void Sequences::rewind(Sequence& sequence) {
  const std::size_t needed = runner_.options.pages_for(sequence.computed);
  for (; sequence.table.size() > needed; sequence.table.pop_back())
    pool_.give_back(sequence.table.back());
}

void Sequences::cache(Sequence& sequence) {
  tree_.insert(std::span(sequence.tokens).first(sequence.computed), sequence.table);
}

/// The length of two sequences' common prefix.
static std::size_t common_tokens(const std::vector<int>& a, const std::vector<int>& b,
                                 std::size_t most) {
  const auto end = a.begin() + long(std::min({a.size(), b.size(), most}));
  return std::size_t(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

/// What a sequence has without reading: the tree's pages, and then either the pages that were
/// copied when it was preempted, or the beginning of a running sequence's page. At least one token
/// is left to read. A prompt whose logits are wanted is read.
Sequences::Prefix Sequences::prefix_of(const Sequence& sequence) const {
  if (sequence.needs_prompt_logits()) return {.computed = sequence.computed};
  const std::size_t page_size = runner_.options.page_size;
  Prefix found{.shared = tree_.find(sequence.tokens)};
  found.computed = std::max(found.shared.size() * page_size, sequence.computed);
  for (const Sequence& other : running_) {
    const std::size_t most = std::min(other.computed, sequence.tokens.size() - 1);
    const std::size_t common = common_tokens(sequence.tokens, other.tokens, most);
    if (common <= found.computed || common / page_size > found.shared.size()) continue;
    found.computed = common, found.to_copy = other.table[found.shared.size()];
  }
  return found;
}

/// Whether one of these older sequences will fill the next page of this sequence's prefix, after
/// its `computed` tokens. Then this sequence waits, and shares the page.
static bool will_be_read_by(std::span<const Sequence> older, const Sequence& sequence,
                            std::size_t computed, std::size_t page_size) {
  const std::size_t filled = (computed / page_size + 1) * page_size;
  const bool may_share = filled < sequence.tokens.size() && !sequence.needs_prompt_logits();
  return may_share && std::ranges::any_of(older, [&](const Sequence& other) {
           return common_tokens(sequence.tokens, other.tokens, filled) == filled;
         });
}

std::vector<ScheduledSequence> Sequences::scheduled_waiting() const {
  std::vector<ScheduledSequence> sequences;
  const std::size_t places = runner_.options.sequences - running_.size(),
                    page_size = runner_.options.page_size;
  for (std::size_t i = 0; i < std::min(places, waiting_.size()); ++i) {
    const Sequence& sequence = waiting_[i];
    const Prefix found = prefix_of(sequence);
    if (will_be_read_by(running_, sequence, found.computed, page_size) ||
        will_be_read_by(std::span(waiting_).first(i), sequence, found.computed, page_size))
      break;
    const auto is_evictable = [&](std::size_t number) { return pool_.references(number) == 1; };
    const std::size_t pages = runner_.options.pages_for(found.computed);
    const std::size_t copies = pages - found.shared.size();
    sequences.push_back({sequence.id, sequence.arrival, sequence.tokens.size(), found.computed,
                         pages, 0,
                         copies + std::size_t(std::ranges::count_if(found.shared, is_evictable))});
  }
  return sequences;
}

/// Moves a sequence from one list to its place, by arrival, in the other.
static Sequence& move_sequence(std::size_t id, std::vector<Sequence>& from,
                               std::vector<Sequence>& to) {
  const auto sequence = by_id(from, id);
  const auto after = std::ranges::upper_bound(to, sequence->arrival, {}, &Sequence::arrival);
  Sequence& moved = *to.insert(after, std::move(*sequence));
  from.erase(sequence);
  return moved;
}

/// Gives all pages of a sequence back, and drops its copies. The tree may still hold some pages.
void Sequences::leave(Sequence& sequence) {
  for (const std::size_t page : sequence.table) pool_.give_back(page);
  sequence.table.clear(), sequence.swapped.clear(), sequence.computed = 0;
}

/// Copies of the pages of a sequence's computed tokens, or none if there is no room for all of
/// them.
std::vector<PageCopy> Sequences::copies_of(const Sequence& sequence) const {
  std::size_t left = runner_.options.swap;
  for (const Sequence& other : waiting_) left -= other.swapped.size();
  const std::size_t needed = runner_.options.pages_for(sequence.computed);
  if (needed > left) return {};
  try {
    std::vector<PageCopy> copies;
    for (std::size_t i = 0; i < needed; ++i) copies.push_back(runner_.copy_of(sequence.table[i]));
    return copies;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void Sequences::preempt(std::size_t id) {
  std::vector<PageCopy> copies = copies_of(running_sequence(id));
  const std::size_t computed = copies.empty() ? 0 : running_sequence(id).computed;
  Sequence& sequence = move_sequence(id, running_, waiting_);
  leave(sequence);
  sequence.swapped = std::move(copies), sequence.computed = computed;
}

/// All share what they have found before any of them takes a page, since the tree may evict a
/// page that nobody shares.
void Sequences::admit(std::span<const std::size_t> ids) {
  std::vector<Prefix> prefixes;
  for (const std::size_t id : ids) prefixes.push_back(prefix_of(*by_id(waiting_, id)));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::size_t index = 0;
    while (std::ranges::find(running_, index, &Sequence::index) != running_.end()) ++index;
    Sequence& sequence = move_sequence(ids[i], waiting_, running_);
    sequence.index = index;
    prefixes[i].swapped = std::exchange(sequence.swapped, {});
    sequence.table = prefixes[i].shared;
    for (const std::size_t page : sequence.table) pool_.share(page);
    sequence.computed = sequence.table.size() * runner_.options.page_size;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) take_copies(running_sequence(ids[i]), prefixes[i]);
}

/// Gives a sequence what it has found and can't share: its own copies, or a copy of a running
/// sequence's page, in which it will write over what that sequence has there.
void Sequences::take_copies(Sequence& sequence, const Prefix& found) {
  while (sequence.computed < found.computed) {
    const std::size_t i = sequence.table.size();
    sequence.table.push_back(take_page());
    if (found.to_copy)
      runner_.put(sequence.table[i], runner_.copy_of(*found.to_copy));
    else
      runner_.put(sequence.table[i], found.swapped.at(i));
    sequence.computed = std::min((i + 1) * runner_.options.page_size, found.computed);
  }
}

}  // namespace t2t
