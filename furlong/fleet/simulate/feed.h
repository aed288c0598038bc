#pragma once
// Brings a simulation's races where a real fleet's would go: into a store, or to a hub over HTTP, signed by
// the keys of the simulated machines.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/fleet/http.h"
#include "furlong/fleet/simulate/simulate.h"
#include "furlong/fleet/store/store.h"

namespace furlong {
class Clock;
}

namespace furlong::fleet {

/// A batch as a machine signs it (docs/formats/record-batch.md).
struct SimulatedBatch {
  std::size_t machine = 0;  ///< number of the box
  std::string key;          ///< SimulatedMachine::id
  std::string id, body, signature;
  std::int64_t sent_us = 0;  ///< true time of its last race
  std::vector<DecodedRace> races;
};

/// Runs a simulation and gathers its races by machine. The same simulation gives the same batches. For one
/// thread.
class BatchMaker {
 public:
  /// `most_records` of a batch; a machine that has them sends them.
  BatchMaker(Simulation& simulation, std::size_t most_records = 24);
  ~BatchMaker();
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;
  /// nullopt: all races have been given.
  Result<std::optional<SimulatedBatch>> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct FeedCounts {
  std::uint64_t records = 0, batches = 0, accepted = 0, duplicate = 0, refused = 0;
  std::uint64_t retries = 0;   ///< answers that asked to come again
  std::uint64_t machines = 0;  ///< enrolled
  std::string last_refusal;    ///< why the last refused record was
};
using FeedProgress = std::function<void(const FeedCounts&, double share)>;

/// Enrols every machine and files its batches, received when its last race ended. `progress` may be empty. On
/// `stop` it ends after the transaction in hand; what is counted is in the store.
Result<FeedCounts> feed_store(Simulation& simulation, Store& store, const FeedProgress& progress,
                              const std::stop_token& stop);

struct HubFeed {
  std::string url;                  ///< "http://127.0.0.1:8470"
  std::filesystem::path ca_file;    ///< whom to trust; empty: the system's list
  std::vector<std::string> tokens;  ///< one a key; machines that are enrolled already need none
  double records_per_s = 0;         ///< 0: as fast as the hub takes them
  int senders = 4;                  ///< at once; a machine's batches go one after the other
  std::size_t most_records = 24;    ///< of a batch
  double give_up_s = 120;           ///< without any answer but "come again"
};
/// As agents would: enrols with the tokens, sends signed batches, waits as long as a 429 or 503 says.
/// `denied` when the hub knows none of the keys or takes no token; `unavailable` when it does not answer.
/// `client` makes one client for each sender.
Result<FeedCounts> feed_hub(Simulation& simulation, const HubFeed& feed,
                            const std::function<Result<std::unique_ptr<HttpClient>>()>& client, Clock& clock,
                            const FeedProgress& progress, const std::stop_token& stop);

}  // namespace furlong::fleet
