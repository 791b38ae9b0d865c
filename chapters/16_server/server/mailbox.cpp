#include "16_server/server/mailbox.hpp"

#include <new>
#include <utility>

namespace t2t {

void Mailbox::put(AnswerEvent answer_event) {
  const std::lock_guard lock(lock_);
  events_.push_back(std::move(answer_event));
  tell();
}

void Mailbox::lose() noexcept {
  const std::lock_guard lock(lock_);
  lost_ = true;
  tell();
}

void Mailbox::tell() noexcept {
  changed_.notify_all();
  try {
    if (on_change_) on_change_();
  } catch (...) {  // without memory; who reads the mailbox looks into it from time to time
  }
}

void Mailbox::silence() {
  const std::lock_guard lock(lock_);
  on_change_ = {};
}

std::optional<AnswerEvent> Mailbox::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(lock_);
  if (!changed_.wait_for(lock, wait, [&] { return !events_.empty() || lost_; })) return {};
  if (events_.empty()) throw std::bad_alloc();
  AnswerEvent answer_event = std::move(events_.front());
  events_.pop_front();
  return answer_event;
}

}  // namespace t2t
