#pragma once
// What becomes of batches on their way into a store of SQL: set by set, not record by record, so that a
// server is asked a few times for a whole delivery.

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "furlong/fleet/store/sql/connection.h"
#include "furlong/fleet/store/sql/names.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet::sql {

/// Of machine, id and bytes: batches that agree in it are one.
Digest batch_digest(std::string_view machine, std::string_view id, std::string_view body);

class Intake {
 public:
  enum class Mode { add, copy };  ///< Store::add, Store::put_batches
  Intake(Connection& connection, Names& names, std::span<const IncomingBatch> batches, Mode mode)
      : connection_(&connection), names_(&names), batches_(batches), mode_(mode) {}

  /// What needs no transaction: compresses the bodies.
  Status prepare();
  /// Within a transaction that writes.
  Result<std::vector<BatchOutcome>> run();

 private:
  struct Sender {
    MachineNumber number = 0;
    std::int64_t seen_us = 0;
    std::string agent, manifest, header, last_refusal;
    bool says_canary = false;
    std::int64_t accepted = 0, duplicate = 0, refused = 0;
  };
  struct Body {
    Digest digest;
    std::string packed;
    std::uint64_t number = 0;  ///< 0: not in the store
    bool known = false;        ///< it was in the store before
    bool keep = false;         ///< it has brought something
  };
  /// A record that is not refused.
  struct Candidate {
    std::size_t batch = 0, line = 0;
    const DecodedRace* race = nullptr;
    const Sender* sender = nullptr;
    std::string epoch;
    SubjectNumber subject = 0;
    WordNumber slot = 0, source = 0;
    bool there = false;  ///< its id is, in the store
    bool kept = false;
  };
  using Key = std::tuple<MachineNumber, SubjectNumber, WordNumber, WordNumber, std::string>;
  /// The race that is kept of a key: of this delivery, or in the store before it.
  struct Latest {
    std::int64_t ts_us = 0;
    RecordId id{};
    Candidate* candidate = nullptr;
    std::uint64_t batch = 0;  ///< of one in the store
  };

  Status find_senders();
  Status find_bodies();
  Status find_ids();
  Status find_keys();
  static Key key_of(const Candidate& candidate);
  void collect();
  void decide();
  Fate fate_of(Candidate& candidate);
  Status put_bodies();
  Status put_races();
  Result<std::string> row_of(const DecodedRace& race) const;
  Status count_batches();
  Status put_senders();
  Status put_totals();

  Connection* connection_;
  Names* names_;
  std::span<const IncomingBatch> batches_;
  Mode mode_;
  std::map<std::string, Sender> senders_;
  std::vector<Body> bodies_;                ///< one a batch
  std::map<Digest, std::size_t> first_of_;  ///< of equal ones, the first
  std::vector<Candidate> candidates_;
  std::map<Key, Latest> latest_;
  std::map<RecordId, bool> taken_;                ///< ids of this delivery that are kept now
  std::vector<std::pair<Key, Latest>> replaced_;  ///< races that were in the store
  std::vector<BatchOutcome> outcomes_;
  std::int64_t next_batch_ = 0, new_batches_ = 0, races_before_ = 0, newest_us_ = 0;
};

}  // namespace furlong::fleet::sql
