// Mailboxes: the engine thread's messages about answers wait here until a client takes them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "16_server/answer/answer_event.hpp"

namespace t2t {

/// The mailbox of answers that were asked for together.
class Mailbox {
 public:
  /// The next message; waits for it at most so long. Throws std::bad_alloc, after all earlier
  /// messages, if there was no memory for one.
  std::optional<AnswerEvent> next(std::chrono::milliseconds wait);
  /// From now on, `on_change` of Service::ask is no longer called.
  void silence();

 private:
  friend class Service;
  void put(AnswerEvent answer_event);
  void lose() noexcept;
  void tell() noexcept;

  std::mutex lock_;
  std::condition_variable changed_;
  std::function<void()> on_change_;
  std::deque<AnswerEvent> events_;
  bool lost_ = false;             // something could not be put
  std::vector<std::size_t> ids_;  // in the engine; used by the Service alone
  std::optional<std::size_t> top_logprobs_;
};

}  // namespace t2t
