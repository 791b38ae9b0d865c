#include "16_server/server/service.hpp"

#include <fmt/format.h>

#include <exception>
#include <future>
#include <new>
#include <string>
#include <utility>

#include "shapes.hpp"

namespace t2t {

Service::Service(ModelRunner runner, std::size_t most_waiting)
    : engine_(runner), most_sequences_(runner.options.sequences + most_waiting) {
  engine_.on_logits = [this](std::size_t id, ConstRow logits) {
    Recipient& recipient = recipients_.at(id);
    if (recipient.answers->top_logprobs_)
      recipient.logits.emplace_back(logits.begin(), logits.end());
  };
  engine_.on_prompt_logits = [this](std::size_t id, int token, ConstRow logits) {
    Recipient& recipient = recipients_.at(id);
    if (recipient.answers->top_logprobs_)
      recipient.prompt->push_back(token_logprobs(logits, token, *recipient.answers->top_logprobs_));
  };
  count();
  thread_ = std::thread([this] { run(); });
}

namespace {
/// Why a submission was refused. What is thrown stays in the engine's thread, so this crosses over.
struct Refusal {
  enum class Fault { none, of_request, of_memory, of_server } fault = Fault::none;
  std::string why = {};
};
}  // namespace

static void throw_refusal(const Refusal& refusal) {
  if (refusal.fault == Refusal::Fault::of_request) throw std::invalid_argument(refusal.why);
  if (refusal.fault == Refusal::Fault::of_memory) throw std::bad_alloc();
  if (refusal.fault == Refusal::Fault::of_server) throw std::runtime_error(refusal.why);
}

/// Does it, and tells what it throws.
static Refusal refusal_of(const std::function<void()>& submission) {
  try {
    submission();
    return {};
  } catch (const std::invalid_argument& error) {
    return {Refusal::Fault::of_request, error.what()};
  } catch (const std::bad_alloc&) {
    return {Refusal::Fault::of_memory};
  } catch (const std::exception& error) {
    return {Refusal::Fault::of_server, error.what()};
  } catch (...) {
    return {Refusal::Fault::of_server, "an unknown error"};
  }
}

std::shared_ptr<Mailbox> Service::ask(std::vector<Request> requests,
                                      std::optional<std::size_t> top_logprobs,
                                      std::function<void()> on_change) {
  const auto answers = std::make_shared<Mailbox>();
  answers->top_logprobs_ = top_logprobs, answers->on_change_ = std::move(on_change);
  const std::size_t count = requests.size();
  expect(count <= most_sequences_, "answers at a time", fmt::format("at most {}", most_sequences_),
         count);
  auto refusal = std::make_shared<std::promise<Refusal>>();
  std::future<Refusal> refused = refusal->get_future();
  {
    const std::lock_guard lock(lock_);
    if (closed_) throw Closed("the server is ending, and accepts no more requests");
    if (unfinished_ + count > most_sequences_) {
      ++counts_.refused;
      throw TooBusy(fmt::format("{} sequences are running or waiting already", unfinished_));
    }
    // This thread waits until it is done. A command that is dropped breaks its promise, which
    // throws here.
    commands_.push_back([this, refusal = std::move(refusal), answers, &requests] {
      refusal->set_value(refusal_of([&] { submit(answers, std::move(requests)); }));
    });
    unfinished_ += count;
  }
  changed_.notify_all();
  throw_refusal(refused.get());
  return answers;
}

void Service::submit(const std::shared_ptr<Mailbox>& answers, std::vector<Request> requests) {
  const std::size_t count = requests.size();
  std::size_t prompt_tokens = 0;
  try {
    answers->ids_.reserve(count);
    for (Request& request : requests) {
      prompt_tokens += request.prompt.size();
      Recipient recipient{answers, answers->ids_.size()};
      if (request.wants_prompt_logits) recipient.prompt.emplace();
      const std::size_t id = engine_.submit(std::move(request));
      answers->ids_.push_back(id);
      recipients_.insert({id, std::move(recipient)});
    }
  } catch (...) {
    for (const std::size_t id : answers->ids_) engine_.cancel(id), recipients_.erase(id);
    finished(count);
    throw;
  }
  now_.sequences += count, now_.prompt_tokens += prompt_tokens;
}

void Service::cancel(const std::shared_ptr<Mailbox>& answers) {
  post([this, answers] {
    for (const std::size_t id : answers->ids_) end(id);
  });
}

void Service::cancel(const std::shared_ptr<Mailbox>& answers, std::size_t answer) {
  post([this, answers, answer] { end(answers->ids_.at(answer)); });
}

void Service::post(Command what) {
  {
    const std::lock_guard lock(lock_);
    commands_.push_back(std::move(what));
  }
  changed_.notify_all();
}

/// In the engine's thread: ends a sequence if it has not ended yet.
void Service::end(std::size_t id) {
  if (!recipients_.contains(id)) return;
  ++now_.cancelled;
  leave(id);
}

void Service::finished(std::size_t count) {
  {
    const std::lock_guard lock(lock_);
    unfinished_ -= count;
  }
  changed_.notify_all();
}

void Service::run() {
  while (take_commands()) {
    step();
    count();
  }
  fail_all("the server has ended");
  count();
}

/// Waits for something to do. False if the thread is to end.
bool Service::take_commands() {
  std::vector<Command> commands;
  bool ending = false;
  {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return !commands_.empty() || ending_ || !engine_.idle(); });
    commands.swap(commands_);
    ending = ending_;
  }
  for (const Command& command : commands) try_to(command);
  return !ending;
}

/// What goes wrong here ends all sequences, but not the thread.
void Service::try_to(const Command& command) {
  try {
    command();
  } catch (const std::bad_alloc&) {
    fail_all(no_memory);
  } catch (const std::exception& error) {
    fail_all(error.what());
  } catch (...) {
    fail_all("an unknown error");
  }
}

void Service::step() {
  if (engine_.idle()) return;
  try_to([this] {
    const std::vector<Event> events = engine_.step();
    ++now_.steps;
    for (const SequenceStep& part : engine_.sequence_steps()) now_.tokens_read += part.ids.size();
    now_.preemptions += engine_.plan().preempted.size();
    for (const Event& event : events) deliver(event);
  });
}

/// Puts the event into its mailbox. If it can't, for lack of memory, only its sequence ends.
void Service::deliver(const Event& event) {
  Recipient& recipient = recipients_.at(event.id);
  if (event.token) ++now_.tokens_generated;
  try {
    AnswerEvent answer_event{recipient.answer, event};
    answer_event.prompt = std::exchange(recipient.prompt, {});
    if (event.token && recipient.answers->top_logprobs_) {
      answer_event.logprobs =
          token_logprobs(recipient.logits.front(), *event.token, *recipient.answers->top_logprobs_);
      recipient.logits.pop_front();
    }
    recipient.answers->put(std::move(answer_event));
    if (!event.ending && event.error.empty()) return;
    ++(event.ending ? now_.ended : now_.failed);
  } catch (const std::bad_alloc&) {
    recipient.answers->lose();
    ++now_.failed;
  }
  leave(event.id);
}

/// Reports no more about this sequence, whether the engine has already ended it or not.
void Service::leave(std::size_t id) noexcept {
  recipients_.erase(id);
  try {
    engine_.cancel(id);
  } catch (...) {  // it is lost to the engine
  }
  finished(1);
}

/// Ends all sequences with an error.
void Service::fail_all(const char* why) noexcept {
  while (!recipients_.empty()) {
    const auto& [id, recipient] = *recipients_.begin();
    try {
      recipient.answers->put({recipient.answer, {id, {}, {}, why}});
    } catch (...) {
      recipient.answers->lose();
    }
    ++now_.failed;
    leave(id);
  }
}

void Service::close(std::chrono::milliseconds grace) {
  {
    std::unique_lock lock(lock_);
    closed_ = true;
    changed_.wait_for(lock, grace, [&] { return unfinished_ == 0; });
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Shows other threads what the engine's thread has counted.
void Service::count() {
  now_.running = engine_.running().size(), now_.waiting = engine_.waiting().size();
  now_.pages = engine_.pool().pages(), now_.pages_free = engine_.pool().free();
  now_.pages_cached = engine_.tree().evictable();
  const std::lock_guard lock(lock_);
  const std::size_t refused = counts_.refused;
  counts_ = now_;
  counts_.refused = refused;
}

bool Service::closed() const {
  const std::lock_guard lock(lock_);
  return closed_;
}

ServiceCounts Service::counts() const {
  const std::lock_guard lock(lock_);
  ServiceCounts counts = counts_;
  counts.unfinished = unfinished_;
  return counts;
}

}  // namespace t2t
