// One request for answers while it is being answered: the engine thread's messages become what the
// client sees, a stream of events or one whole reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "16_server/answer/answer_deltas.hpp"
#include "16_server/api/api_request.hpp"
#include "16_server/api/reply.hpp"
#include "16_server/server/service.hpp"

namespace t2t {

class Exchange {
 public:
  /// Asks the service. `number` and `created` are as in Reply, `on_change` is as in Service::ask;
  /// the service and the model must outlive it. Throws as Service::ask does.
  Exchange(ApiRequest api_request, Service& service, const ServedModel& served,
           std::uint64_t number, std::int64_t created, std::function<void()> on_change = {});
  /// Cancels what has not ended.
  ~Exchange();
  Exchange(const Exchange&) = delete;

  /// The client's part of all that has come since the last call, without waiting. A stream gets its
  /// events; if an answer fails, the last event says why. A whole reply, or an error in its place,
  /// comes in one piece at the end.
  std::string take();

  bool is_stream() const { return api_request_.stream; }
  bool ended() const { return status_ != 0; }
  /// Once it has ended: 200, or 500 if an answer has failed, or 503 if there was no memory.
  int status() const { return status_; }
  /// "37 prompt tokens, 12 generated in 0.52 s; stop"
  std::string summary() const;

 private:
  std::optional<AnswerDelta> next_piece();
  void stream_on(std::string& text);
  void collect(std::string& text);
  void fail(int status, const char* why, std::string& text);

  ApiRequest api_request_;
  Service& service_;
  Reply reply_;
  AnswerDeltas deltas_;
  std::shared_ptr<Mailbox> answers_;
  bool begun_ = false;
  int status_ = 0;
  std::string ending_ = "the client went away";
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace t2t
