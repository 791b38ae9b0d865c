// The engine: sequences arrive at any time, and each step advances some of them by some tokens.
//
//   plan_step  →  pages are taken, shared and given back  →  one pass of the model  →  next tokens
//
// A sequence's answer depends on its own tokens, its sampling and its seed alone. In the pass, each
// sum of attention has a fixed order (attention/paged_rows.hpp). If the products with weights also
// have a fixed order, then no bit of a sequence's logits depends on the other sequences, on its
// prompt's chunks, on whether it was preempted, or on whether its prefix was found in pages or
// copied. Products with chapter 12's weights in 8 bits or fewer have a fixed order, and so have
// those of products/batch_invariant.hpp.
//
// A sequence may have drafts of its next tokens (speculation/draft.hpp). They are read in one pass
// with its last token, and change the sequence's time but none of its tokens or bits.
//
// A single thread calls submit, cancel and step.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "09_language_model/generate.hpp"
#include "15_serving/engine/sequence_steps.hpp"
#include "15_serving/engine/sequences.hpp"
#include "15_serving/scheduler/scheduler.hpp"

namespace t2t {

class Engine {
 public:
  /// Throws std::invalid_argument as plan_step does, for the runner's options.
  explicit Engine(ModelRunner runner);

  /// Returns the id of the new sequence. Throws std::invalid_argument for an empty prompt, a prompt
  /// that leaves no room for an answer, an id or a stop token outside [0, V), and sampling that
  /// expect_sampling refuses.
  std::size_t submit(Request request);
  /// Ends a sequence at once and gives its pages back. False if there is none with this id.
  bool cancel(std::size_t id) { return sequences_.remove(id); }
  /// Does one step. Returns what happened, in the order of the sequences' arrival. If a sequence's
  /// logits allow no choice (they are NaN, for instance), the sequence ends with an error; the
  /// others continue. If the model runner throws, no sequence has read a token, and step can be
  /// called again; some sequences may have been preempted, admitted, or given pages that they don't
  /// use yet.
  std::vector<Event> step();
  bool idle() const { return running().empty() && waiting().empty(); }

  /// If given, receives the logits of each new token of a sequence before they are filtered and the
  /// token is chosen. What it throws becomes the sequence's error.
  std::function<void(std::size_t id, ConstRow logits)> on_logits;
  /// If given, receives the logits that predict each prompt token from the second on, for requests
  /// that want them, in order and once each. What it throws becomes the sequence's error.
  std::function<void(std::size_t id, int token, ConstRow logits)> on_prompt_logits;

  const std::vector<Sequence>& running() const { return sequences_.running(); }
  const std::vector<Sequence>& waiting() const { return sequences_.waiting(); }
  const PagePool& pool() const { return sequences_.pool(); }
  const PrefixTree& tree() const { return sequences_.tree(); }
  /// How many tokens a sequence can have at most.
  std::size_t max_tokens() const { return sequences_.max_tokens(); }
  /// The plan of the last step, and the sequences' parts of it, with drafts.
  const StepPlan& plan() const { return plan_; }
  const std::vector<SequenceStep>& sequence_steps() const { return sequence_steps_; }

 private:
  Matrix hand_on(Sequence& sequence, SequenceStep& part, Matrix logits);
  void answer(Sequence& sequence, SequenceStep& part, Matrix logits, std::vector<Event>& events);
  Event next(Sequence& sequence, Row logits);
  Event choose(Sequence& sequence, Row logits);

  Sequences sequences_;
  SamplingScratch sampling_;
  StepPlan plan_;
  std::vector<SequenceStep> sequence_steps_;
  std::size_t next_id_ = 0;
};

}  // namespace t2t
