#include "16_server/server/mailbox.hpp"

#include <new>
#include <utility>

namespace t2t {

void Mailbox::put(Said said) {
  const std::lock_guard lock(lock_);
  said_.push_back(std::move(said));
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

std::optional<Said> Mailbox::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(lock_);
  if (!changed_.wait_for(lock, wait, [&] { return !said_.empty() || lost_; })) return {};
  if (said_.empty()) throw std::bad_alloc();
  Said said = std::move(said_.front());
  said_.pop_front();
  return said;
}

}  // namespace t2t
