// Mailboxes: what the engine's thread says of answers waits here until a client takes it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "16_server/answer/said.hpp"

namespace t2t {

/// The mailbox of answers that were asked for together.
class Mailbox {
 public:
  /// What happens next; waits for it at most so long. Throws std::bad_alloc, after all that came
  /// before, if there was no memory to say it.
  std::optional<Said> next(std::chrono::milliseconds wait);
  /// From now on, `on_change` of Service::ask is not called any more.
  void silence();

 private:
  friend class Service;
  void put(Said said);
  void lose() noexcept;
  void tell() noexcept;

  std::mutex lock_;
  std::condition_variable changed_;
  std::function<void()> on_change_;
  std::deque<Said> said_;
  bool lost_ = false;             // something could not be put
  std::vector<std::size_t> ids_;  // the engine's; the service's alone
  std::optional<std::size_t> likeliest_;
};

}  // namespace t2t
