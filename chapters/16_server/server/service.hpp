// The thread of the engine, and the threads that ask it for answers.
//
// The engine is for one thread, so the service's own thread steps it while there is work, and
// sleeps otherwise. Other threads ask for answers and learn through a mailbox what happens:
//
//   a client's thread   ask ─→ commands ─→ │ the engine's thread: takes the commands that have
//                       next ←─ Mailbox ←─ │ come, does a step, and puts its events into mailboxes
//
// Commands are taken between two steps, so no request waits longer than a step to be accepted. No
// client, however slow, holds the engine up, because a mailbox accepts every message.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "15_serving/engine/service_counts.hpp"
#include "16_server/server/mailbox.hpp"

namespace t2t {

/// Thrown by Service::ask when too many sequences wait already.
struct TooBusy : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown by Service::ask when the service accepts no more work.
struct Closed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Service {
 public:
  /// Starts its thread. At most most_waiting sequences wait beside the running ones. Throws as
  /// Engine does.
  Service(ModelRunner runner, std::size_t most_waiting);
  ~Service() { close(std::chrono::seconds(0)); }
  Service(const Service&) = delete;

  /// Submits some requests together, all or none. If `top_logprobs` is given, each token comes with
  /// its log-probability and those of this many likeliest tokens, and so do the tokens of prompts
  /// whose requests want their logits. The engine's thread calls `on_change` whenever the mailbox
  /// has received a message; it must not wait. Throws std::invalid_argument as Engine::submit does
  /// and for more requests than may ever run and wait, TooBusy, Closed, std::bad_alloc, and
  /// std::runtime_error for any other fault of the server's own.
  std::shared_ptr<Mailbox> ask(std::vector<Request> requests,
                               std::optional<std::size_t> top_logprobs = {},
                               std::function<void()> on_change = {});
  /// Ends the answers that have not ended yet. Nothing more happens to them.
  void cancel(const std::shared_ptr<Mailbox>& answers);
  /// Ends one of them.
  void cancel(const std::shared_ptr<Mailbox>& answers, std::size_t answer);
  /// Accepts no more work, waits until all answers have ended, at most so long, and then ends the
  /// others with an error, and the thread.
  void close(std::chrono::milliseconds grace);

  ServiceCounts counts() const;
  /// Whether it accepts no more work.
  bool closed() const;

 private:
  struct Recipient {
    std::shared_ptr<Mailbox> answers;
    std::size_t answer;
    std::optional<std::vector<TokenLogprobs>> prompt = {};  // until the first event
    std::deque<std::vector<float>> logits = {};  // of tokens whose events are yet to come
  };
  using Command = std::function<void()>;  // for the engine's thread

  void run();
  bool take_commands();
  void try_to(const Command& command);
  void submit(const std::shared_ptr<Mailbox>& answers, std::vector<Request> requests);
  void step();
  void deliver(const Event& event);
  void fail_all(const char* why) noexcept;
  void leave(std::size_t id) noexcept;
  void end(std::size_t id);
  void finished(std::size_t count);
  void post(Command what);
  void count();

  // Of the engine's thread.
  Engine engine_;
  std::map<std::size_t, Recipient> recipients_;  // by the engine's id
  ServiceCounts now_;
  std::size_t most_sequences_;  // that run and wait

  // Of all threads, under the lock.
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  ServiceCounts counts_;
  std::size_t unfinished_ = 0;  // sequences that were requested and have not ended
  bool closed_ = false, ending_ = false;

  std::thread thread_;
};

}  // namespace t2t
