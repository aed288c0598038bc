#pragma once
// POST /v1/enrol and POST /v1/records: who may send, how much, and what is answered
// (docs/formats/record-batch.md, docs/hub.md).

#include <functional>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/judge.h"
#include "furlong/fleet/hub/kinds.h"
#include "furlong/fleet/hub/limits.h"
#include "furlong/fleet/hub/metrics.h"
#include "furlong/fleet/hub/pool.h"
#include "furlong/fleet/hub/writer.h"

namespace furlong::fleet {

inline constexpr std::string_view enrol_path = "/v1/enrol";
inline constexpr std::string_view records_path = "/v1/records";

struct IntakeOptions {
  JudgeOptions judge;
  KindsOptions kinds;
  double batches_per_minute = 120;    ///< of a machine; bursts of as many
  double enrolments_per_minute = 30;  ///< that fail, of an address; likewise
  double failures_per_minute = 60;    ///< requests that prove no identity, of an address; likewise
  /// Of these in the name of a machine that proved itself lately, from one address: while there are fewer,
  /// they do not stand in the way of its own.
  double forgeries_per_minute = 600;
  /// Batches that are verified and judged at one moment, in all: more than there are cores would only take
  /// time from the writer. 0: as many as there are cores.
  int judges = 0;
  std::size_t most_names = 10'000;  ///< that each limit remembers
  bool behind_proxy = false;        ///< see HubOptions
};

/// Thread safe; add to the queue through `writer` and read through `pool`, which must live longer.
class Intake {
 public:
  using Say = std::function<void(LogLevel, std::string_view)>;
  Intake(IntakeOptions options, Writer& writer, StorePool& pool, Metrics& metrics, Clock& clock, Say say);

  /// Before the body is read: what can be refused by the head alone, in memory alone.
  std::optional<ServerReply> guard(const ServerRequest& head);
  ServerReply enrol(const ServerRequest& request);
  ServerReply records(const ServerRequest& request);

  /// How many names the limits remember, by limit; for metrics.
  std::vector<std::pair<std::string, std::size_t>> remembered() const;

 private:
  std::string address_of(const ServerRequest& request) const;
  std::optional<ServerReply> wrong_head(const ServerRequest& request);
  ServerReply refuse(int status, Code code, std::string_view reason, std::string_view message);
  ServerReply refuse_busy(double retry_s, std::string_view reason, std::string_view message);
  ServerReply refuse_store(const Error& error);
  ServerReply failed_proof(const ServerRequest& request, std::string_view machine, std::string_view reason,
                           std::string_view message);
  std::optional<ServerReply> over_failures(const ServerRequest& request, std::string_view machine);
  Result<PublicKey> key_of(std::string_view machine, const ServerRequest& request, ServerReply& refusal);
  std::optional<IncomingBatch> judge(const ServerRequest& request, std::string_view machine,
                                     const PublicKey& key, ServerReply& refusal);
  ServerReply take(const ServerRequest& request, std::string_view machine, Writer::Place place);
  Status check_kinds(IncomingBatch& batch);
  ServerReply write(const ServerRequest& request, Writer::Place place, IncomingBatch batch);
  ServerReply enrol_now(const ServerRequest& request, const std::string& token, const PublicKey& key);

  const IntakeOptions options_;
  Writer& writer_;
  StorePool& pool_;
  Metrics& metrics_;
  Clock& clock_;
  const Say say_;
  std::counting_semaphore<> judges_;
  Kinds kinds_;
  Buckets machines_, enrolments_, addresses_, senders_;
  Buckets forgeries_;     ///< as senders_, of names of verified machines
  Buckets repeats_;       ///< batches that brought duplicates alone, by address and machine
  Buckets told_;          ///< refusals in the log
  RecentNames verified_;  ///< machines that proved who they are: a bad neighbour does not shut them out
};

}  // namespace furlong::fleet
