#include "15_serving/server/service.hpp"

#include <fmt/format.h>

#include <exception>
#include <future>
#include <string>
#include <utility>

namespace t2t {

void Answers::put(Said said) {
  {
    const std::lock_guard lock(lock_);
    said_.push_back(std::move(said));
  }
  changed_.notify_all();
}

std::optional<Said> Answers::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(lock_);
  if (!changed_.wait_for(lock, wait, [&] { return !said_.empty(); })) return {};
  Said said = std::move(said_.front());
  said_.pop_front();
  return said;
}

Service::Service(PageReader reader, std::size_t most_waiting)
    : engine_(reader), most_texts_(reader.sizes.texts + most_waiting) {
  engine_.scored = [this](std::size_t id, ConstRow logits) {
    Place& place = places_.at(id);
    if (place.answers->likeliest_) place.logits.emplace_back(logits.begin(), logits.end());
  };
  engine_.prompt_scored = [this](std::size_t id, int token, ConstRow logits) {
    Place& place = places_.at(id);
    if (place.answers->likeliest_)
      place.prompt->push_back(token_scores(logits, token, *place.answers->likeliest_));
  };
  count();
  thread_ = std::thread([this] { run(); });
}

std::shared_ptr<Answers> Service::ask(std::vector<Request> requests,
                                      std::optional<std::size_t> likeliest) {
  const auto answers = std::make_shared<Answers>();
  answers->likeliest_ = likeliest;
  const std::size_t count = requests.size();
  const auto refusal = std::make_shared<std::promise<std::string>>();  // "": there is none
  {
    const std::lock_guard lock(lock_);
    if (closed_) throw Closed("the server is ending, and takes no more requests");
    if (unfinished_ + count > most_texts_) {
      ++counts_.refused;
      throw TooBusy(fmt::format("{} texts are being answered or wait already", unfinished_));
    }
    unfinished_ += count;
    // This thread waits until it is done. What is thrown stays in its thread.
    orders_.push_back([this, refusal, answers, &requests] {
      try {
        submit(answers, std::move(requests));
        refusal->set_value("");
      } catch (const std::exception& error) {
        refusal->set_value(error.what());
      }
    });
  }
  changed_.notify_all();
  const std::string why = refusal->get_future().get();
  if (!why.empty()) throw std::invalid_argument(why);
  return answers;
}

void Service::submit(const std::shared_ptr<Answers>& answers, std::vector<Request> requests) {
  const std::size_t count = requests.size();
  std::size_t prompt_tokens = 0;
  try {
    for (Request& request : requests) {
      prompt_tokens += request.prompt.size();
      Place place{answers, answers->ids_.size()};
      if (request.score_prompt) place.prompt.emplace();
      const std::size_t id = engine_.submit(std::move(request));
      places_.insert({id, std::move(place)});
      answers->ids_.push_back(id);
    }
  } catch (...) {
    for (const std::size_t id : answers->ids_) engine_.cancel(id), places_.erase(id);
    finished(count);
    throw;
  }
  now_.texts += count, now_.prompt_tokens += prompt_tokens;
}

void Service::cancel(const std::shared_ptr<Answers>& answers) {
  order([this, answers] {
    for (const std::size_t id : answers->ids_) end(id);
  });
}

void Service::cancel(const std::shared_ptr<Answers>& answers, std::size_t answer) {
  order([this, answers, answer] { end(answers->ids_.at(answer)); });
}

void Service::order(Order what) {
  {
    const std::lock_guard lock(lock_);
    orders_.push_back(std::move(what));
  }
  changed_.notify_all();
}

/// Of the engine's thread: ends a text if it has not ended yet.
void Service::end(std::size_t id) {
  if (places_.erase(id) == 0) return;
  engine_.cancel(id);
  ++now_.cancelled;
  finished(1);
}

void Service::finished(std::size_t count) {
  {
    const std::lock_guard lock(lock_);
    unfinished_ -= count;
  }
  changed_.notify_all();
}

void Service::run() {
  while (take_orders()) {
    step();
    count();
  }
  fail_all("the server has ended");
  count();
}

/// Waits for something to do. False if the thread is to end.
bool Service::take_orders() {
  std::vector<Order> orders;
  bool ending = false;
  {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return !orders_.empty() || ending_ || !engine_.idle(); });
    orders.swap(orders_);
    ending = ending_;
  }
  for (const Order& order : orders) try_to(order);
  return !ending;
}

/// What goes wrong here ends all texts, but not the thread.
void Service::try_to(const Order& order) {
  try {
    order();
  } catch (const std::exception& error) {
    fail_all(error.what());
  }
}

void Service::step() {
  if (engine_.idle()) return;
  try_to([this] {
    const std::vector<Event> events = engine_.step();
    ++now_.steps;
    for (const Engine::Reading& reading : engine_.readings())
      now_.tokens_read += reading.ids.size();
    now_.stops += engine_.plan().stopped.size();
    for (const Event& event : events) deliver(event);
  });
}

void Service::deliver(const Event& event) {
  Place& place = places_.at(event.id);
  Said said{place.answer, event};
  said.prompt = std::exchange(place.prompt, {});
  if (event.token) ++now_.tokens_said;
  if (event.token && place.answers->likeliest_) {
    said.scores = token_scores(place.logits.front(), *event.token, *place.answers->likeliest_);
    place.logits.pop_front();
  }
  place.answers->put(std::move(said));
  if (!event.ending && event.error.empty()) return;
  ++(event.ending ? now_.ended : now_.failed);
  places_.erase(event.id);
  finished(1);
}

/// Ends all texts with an error. Those that the engine itself can't end are lost to it.
void Service::fail_all(const std::string& why) {
  while (!places_.empty()) {
    const std::size_t id = places_.begin()->first;
    deliver({id, {}, {}, why});
    try {
      engine_.cancel(id);
    } catch (const std::exception&) {
    }
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
  now_.pages_kept = engine_.tree().spare();
  const std::lock_guard lock(lock_);
  const std::size_t refused = counts_.refused;
  counts_ = now_;
  counts_.refused = refused;
}

ServiceCounts Service::counts() const {
  const std::lock_guard lock(lock_);
  ServiceCounts counts = counts_;
  counts.unfinished = unfinished_;
  return counts;
}

}  // namespace t2t
