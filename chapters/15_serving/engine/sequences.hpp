// The running and waiting sequences, with their pages: how they are preempted and admitted, and
// which keys and values a waiting sequence has without reading its tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "15_serving/engine/sequence.hpp"
#include "15_serving/pages/page_pool.hpp"
#include "15_serving/pages/prefix_tree.hpp"
#include "15_serving/scheduler/scheduler.hpp"

namespace t2t {

class Sequences {
 public:
  explicit Sequences(ModelRunner runner);
  Sequences(const Sequences&) = delete;  // the tree refers to the pool

  /// A new sequence waits.
  void add(Sequence sequence) { waiting_.push_back(std::move(sequence)); }
  /// Gives a sequence's pages back and forgets it. False if there is none with this id.
  bool remove(std::size_t id);
  /// A running sequence. Throws std::out_of_range if none has this id.
  Sequence& running_sequence(std::size_t id);

  /// The next step's limits. While some sequences decode, prompts are read in small chunks, so that
  /// no step takes long.
  StepLimits limits() const;
  std::vector<ScheduledSequence> scheduled_running() const;
  /// The waiting sequences that may be admitted, oldest first, at most as many as may still run.
  /// If an older sequence has yet to compute a waiting sequence's prefix, the list ends before that
  /// sequence: it waits for the prefix, and no younger sequence may overtake it.
  std::vector<ScheduledSequence> scheduled_waiting() const;

  /// Lets a running sequence wait. Without copies of its pages, its tokens are read again.
  void preempt(std::size_t id);
  /// Admits waiting sequences, with the pages of their prefixes.
  void admit(std::span<const std::size_t> ids);
  /// Takes pages until the sequence has room for `tokens` more tokens.
  void make_room(Sequence& sequence, std::size_t tokens);
  /// Gives back the pages after the computed tokens, which only rejected drafts needed. What these
  /// wrote into the last page is overwritten later.
  void rewind(Sequence& sequence);
  /// Lets later sequences find this sequence's full pages. Where the tree already has such a page,
  /// the sequence shares it and gives its own back.
  void cache(Sequence& sequence);

  /// Pages that are free, or that only the tree refers to.
  std::size_t pages_left() const { return pool_.free() + tree_.evictable(); }
  /// How many tokens a sequence can have at most.
  std::size_t max_tokens() const;
  const ModelRunner& runner() const { return runner_; }
  const std::vector<Sequence>& running() const { return running_; }  // by arrival
  const std::vector<Sequence>& waiting() const { return waiting_; }  // by arrival
  const PagePool& pool() const { return pool_; }
  const PrefixTree& tree() const { return tree_; }

 private:
  /// The keys and values that a waiting sequence already has.
  struct Prefix {
    std::vector<std::size_t> shared = {};     // pages of the tree
    std::size_t computed = 0;                 // tokens, in these pages and the two below
    std::optional<std::size_t> to_copy = {};  // the page of a running sequence after these pages
    std::vector<PageCopy> swapped = {};       // of all its pages, if it was preempted
  };
  Prefix prefix_of(const Sequence& sequence) const;
  std::vector<PageCopy> copies_of(const Sequence& sequence) const;
  void take_copies(Sequence& sequence, const Prefix& found);
  std::size_t take_page();
  void leave(Sequence& sequence);

  ModelRunner runner_;
  PagePool pool_;
  PrefixTree tree_;
  std::vector<Sequence> running_, waiting_;
};

}  // namespace t2t
