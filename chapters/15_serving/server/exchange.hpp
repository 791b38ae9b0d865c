// One request for answers while it is being answered: what the engine's thread says becomes what
// the client sees, a stream of events or one whole reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "15_serving/answer/answering.hpp"
#include "15_serving/api/ask.hpp"
#include "15_serving/api/reply.hpp"
#include "15_serving/server/service.hpp"

namespace t2t {

/// The other end of a connection.
struct Client {
  std::function<bool(std::string_view)> write;  // false: it could not be written
  std::function<bool()> is_there;
};

class Exchange {
 public:
  /// Asks the service. `number` and `created` are as in Reply; the service and the model must
  /// outlive it. Throws as Service::ask does.
  Exchange(Ask ask, Service& service, const ServedModel& served, std::uint64_t number,
           std::int64_t created);
  /// Cancels what has not ended.
  ~Exchange();
  Exchange(const Exchange&) = delete;

  enum class State { going_on, done, broken };
  /// Waits a moment for what comes next, and writes it. `broken`: the client has gone, or an answer
  /// has failed, and the connection is to be closed without an end. A stream is told why; a whole
  /// reply has not begun, and does not come.
  State go_on(const Client& client);

  bool is_stream() const { return ask_.stream; }
  /// "37 tokens read, 12 said in 0.52 s; stop"
  std::string summary() const;

 private:
  std::optional<AnswerPiece> next_piece();
  bool stream_on(const Client& client);
  bool wait_for_whole(const Client& client);

  Ask ask_;
  Service& service_;
  Reply reply_;
  Answering answering_;
  std::shared_ptr<Answers> answers_;
  bool begun_ = false;
  std::string ending_ = "the client went away";
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace t2t
