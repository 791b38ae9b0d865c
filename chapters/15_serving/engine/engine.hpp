// The engine: texts come in at any time, and each step brings some of them on by some tokens.
//
//   plan_step  →  pages are taken, shared and given back  →  one pass of the model  →  next tokens
//
// A text's answer depends on its own tokens, its sampling and its seed alone. In the pass, each sum
// of attention has one order (attention/paged_rows.hpp). If the products with weights have one
// order too, then no bit of a text's logits depends on the other texts, on the chunks of its
// prompt, on whether it was stopped, or on whether its beginning was found in pages or copied.
// Products with chapter 12's weights in 8 bits or fewer have one order, and so have those of
// products/one_order.hpp.
//
// A text may have drafts of its next tokens (speculation/draft.hpp). They are read in one pass with
// its last token and change how long the text takes, but no token and no bit of it.
//
// The engine is for one thread, which calls submit, cancel and step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "09_language_model/generate.hpp"
#include "15_serving/engine/page_reader.hpp"
#include "15_serving/pages/page_pool.hpp"
#include "15_serving/pages/prefix_tree.hpp"
#include "15_serving/scheduler/scheduler.hpp"
#include "15_serving/speculation/draft.hpp"
#include "random.hpp"

namespace t2t {

struct Request {
  std::vector<int> prompt;      // at least one token
  std::size_t most = 64;        // new tokens at most; 0: the prompt is only read
  std::vector<int> stops = {};  // ids that end the text
  Sampling sampling = {};
  std::uint64_t seed = 0;
  /// If given, changes the logits of the next token before it is chosen: −infinity forbids a token.
  /// It depends on the answer so far alone, and what it throws becomes the text's error.
  std::function<void(std::span<const int> answer, Row logits)> filter = {};
  /// If given, is asked for up to `drafts` of the next tokens in each step in which the answer goes
  /// on, as far as budget and pages are left over. What it throws becomes the text's error, and so
  /// does an id outside [0, V).
  Draft draft = {};
  std::size_t drafts = 4;
  /// Whether Engine::prompt_scored is to be handed the logits before each token of the prompt. Then
  /// all of the prompt is read, whatever is found in pages.
  bool score_prompt = false;
};

/// The error of a text for which there was no memory.
inline constexpr const char* no_memory = "there is not enough memory";
/// The error of a text that ended because this was thrown.
inline std::string error_of(const std::exception& thrown) {
  return dynamic_cast<const std::bad_alloc*>(&thrown) ? no_memory : thrown.what();
}

/// What a step has to tell of a text: a token, or its end, or both. Where drafts are accepted, a
/// step has several tokens of a text to tell, one event for each.
struct Event {
  std::size_t id;
  std::optional<int> token;
  std::optional<Ending> ending;
  std::string error = {};  // why the text could not go on: it has ended, without an ending
};

class Engine {
 public:
  /// Throws std::invalid_argument as plan_step does for the sizes of the reader's memory.
  explicit Engine(PageReader reader);
  Engine(const Engine&) = delete;  // the tree refers to the pool

  /// A text that has been submitted and has not ended.
  struct Text {
    std::size_t id, arrival;
    Request request;
    std::vector<int> tokens;         // the prompt and the answer so far
    std::size_t computed = 0;        // how many of them have keys and values, in pages or copies
    std::vector<std::size_t> table;  // of their pages
    std::size_t place = 0;           // among the texts that run
    Random random;
    std::vector<PageCopy> swapped = {};  // of one that was stopped: its pages, instead of a table
    std::size_t scored = 0;              // tokens of the prompt whose logits were handed on

    /// Whether logits of the prompt are still to be handed on.
    bool is_scoring() const { return request.score_prompt && scored + 1 < request.prompt.size(); }
  };
  /// What a text reads in a step: some of its tokens, and drafts of those that follow.
  struct Reading {
    std::size_t id;
    std::vector<int> ids;
    std::size_t wanted = 0;    // how many of the last ids want logits
    std::size_t scored = 0;    // how many of these logits, the first ones, are before the prompt's
    std::size_t drafted = 0;   // how many of the last ids are drafts
    std::size_t accepted = 0;  // how many of these are what was chosen
    std::string error = {};    // why the text can't go on
  };

  /// Returns the id of the new text. Throws std::invalid_argument for an empty prompt, one that
  /// leaves no room for an answer, an id or a stop outside [0, V), and sampling that
  /// expect_sampling refuses.
  std::size_t submit(Request request);
  /// Ends a text at once and gives its pages back. False if there is none with this id.
  bool cancel(std::size_t id);
  /// Does one step. Returns what happened, in the order of the texts' arrival. A text whose logits
  /// no token can be chosen from, such as NaN, ends with an error; the others go on. If the reader
  /// throws, no text has read a token, and step can be called again; some texts may have been
  /// stopped, let in, or given pages that they don't use yet.
  std::vector<Event> step();
  bool idle() const { return running_.empty() && waiting_.empty(); }

  /// If given, is handed the logits of each new token of a text before they are filtered and the
  /// token is chosen. What it throws becomes the text's error.
  std::function<void(std::size_t id, ConstRow logits)> scored;
  /// If given, is handed the logits before each token of the prompts that are to be scored, from
  /// their second token on, in order and once each. What it throws becomes the text's error.
  std::function<void(std::size_t id, int token, ConstRow logits)> prompt_scored;

  const std::vector<Text>& running() const { return running_; }
  const std::vector<Text>& waiting() const { return waiting_; }
  const PagePool& pool() const { return pool_; }
  const PrefixTree& tree() const { return tree_; }
  /// Tokens that a text can have at most.
  std::size_t most_tokens() const;
  /// The plan of the last step, and what was read in it, with drafts.
  const StepPlan& plan() const { return plan_; }
  const std::vector<Reading>& readings() const { return readings_; }

 private:
  /// What a waiting text has of its keys and values.
  struct Beginning {
    std::vector<std::size_t> shared = {};     // pages of the tree
    std::size_t computed = 0;                 // tokens, in these pages and in copies
    std::optional<std::size_t> to_copy = {};  // the page of a running text after these pages
    std::vector<PageCopy> swapped = {};       // of all its pages, if it was stopped
  };

  /// Where the text with this id is in a list, or the list's end.
  static auto by_id(std::vector<Text>& texts, std::size_t id) {
    return std::ranges::find(texts, id, &Text::id);
  }
  static Text& move_text(std::size_t id, std::vector<Text>& from, std::vector<Text>& to);
  StepLimits limits() const;
  std::vector<ScheduledText> scheduled_running() const;
  std::vector<ScheduledText> scheduled_waiting() const;
  Beginning beginning_of(const Text& text) const;
  std::vector<PageCopy> copies_of(const Text& text) const;
  void stop(std::size_t id);
  void admit(std::span<const std::size_t> ids);
  void take_copies(Text& text, const Beginning& found);
  std::size_t take_page();
  void make_room(Text& text, std::size_t tokens);
  void leave(Text& text);
  void expect_token(const char* name, int id) const;
  Text& text_of(std::size_t id);  // of one that runs
  void plan_readings();
  std::size_t drafts_with_room(const Text& text) const;
  void add_drafts(Text& text, Reading& reading, std::size_t budget);
  Matrix hand_on(Text& text, Reading& reading, Matrix logits);
  void answer(Text& text, Reading& reading, Matrix logits, std::vector<Event>& events);
  void rewind(Text& text);
  Event next(Text& text, Row logits);
  Event choose(Text& text, Row logits);

  PageReader reader_;
  PagePool pool_;
  PrefixTree tree_;
  SamplingScratch sampling_;
  std::vector<Text> running_, waiting_;  // both by arrival
  StepPlan plan_;
  std::vector<Reading> readings_;
  std::size_t next_id_ = 0;
};

}  // namespace t2t
