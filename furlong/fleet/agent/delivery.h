#pragma once
// Brings the spool's records to the hub: enrolment, signed batches, patience.

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "furlong/base/random.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/fleet/agent/spool.h"
#include "furlong/fleet/http.h"

namespace furlong {
class Clock;
class Files;
}  // namespace furlong

namespace furlong::fleet {

/// That a batch may take on its way: 4 MiB at 2.4 KB/s are slow, but they move.
inline constexpr double records_timeout_s = 1800;

/// What people are told of the hub.
struct HubState {
  std::string state = "none";  ///< "none" (no hub), "waiting" (nothing tried yet), "ok", "retrying", "denied"
  std::string error;           ///< of the last attempt; empty: it went well
  std::string last_ok;         ///< UTC; empty: never
  double retry_in_s = 0;
  int failures = 0;       ///< in a row
  bool enrolled = false;  ///< it has taken this machine's key, by a token
};

/// What the hub is told of this machine besides records.
struct MachineReport {
  std::string agent;     ///< version
  std::string manifest;  ///< version in use; empty: none
  bool canary = false;
  bool operator==(const MachineReport&) const = default;
};

/// One thread calls step(); state() and tell() may be called from any.
class Delivery {
 public:
  using Note = std::function<void(std::string)>;
  Delivery(HubConfig hub, KeyPair key, HttpClient& http, Spool& spool, Files& files, Clock& clock,
           std::uint64_t seed, Note note);
  /// Enrols, or sends one batch, when it is time to. Returns the seconds after which the next step may have
  /// something to do. Nothing leaves the spool before the hub has said what it did with it.
  double step(const std::stop_token& stop);
  HubState state();
  /// Sent when it changes, and once an hour, so that the hub sees who is there and what it follows.
  void tell(MachineReport report);

 private:
  Status enrol(const std::stop_token& stop);
  Status ask_to_enrol(const std::string& token, const std::string& fact, const std::stop_token& stop);
  Result<std::string> token();
  void note_enrolled();
  Status send_report(const std::stop_token& stop);
  Result<bool> send_batch(const std::stop_token& stop);
  Status take_reply(const RecordBatch& batch, const HttpResponse& response);
  Error unknown_key(const HttpResponse& response) const;
  Status refused_whole(const RecordBatch& batch, const HttpResponse& response);
  Result<HttpResponse> post(std::string_view path, std::string_view media_type, std::string body,
                            double timeout_s, const std::stop_token& stop);
  double failed(const Error& error);
  void succeeded();

  const HubConfig hub_;
  const KeyPair key_;
  HttpClient& http_;
  Spool& spool_;
  Files& files_;
  Clock& clock_;
  Random random_;
  Note note_;
  std::size_t most_records_;
  std::int64_t next_try_ns_ = 0;
  double retry_after_s_ = 0;  ///< the hub's own wish, for the next failure
  bool slow_down_ = false;    ///< the hub will not have us: ask seldom
  bool unknown_ = false;      ///< the hub did not know our key the last time: enrol again
  int timeouts_ = 0;          ///< of one batch
  std::int64_t next_enrol_ns_ = 0;
  std::int64_t next_report_ns_ = 0;
  MachineReport reported_;
  std::mutex mutex_;
  HubState state_;
  MachineReport report_;
};

}  // namespace furlong::fleet
