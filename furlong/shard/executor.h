#pragma once
// The one interface of those who execute units (executor/metamath, executor/command, executor/replay, and
// races in furlong/campaign). An executor is one folder and one line of tools/layers.txt.

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/sign.h"
#include "furlong/shard/meter.h"
#include "furlong/shard/types.h"

namespace furlong::shard {

/// The items that a claim may look at. Bytes are valid as long as the source. `corrupt` for an item whose
/// bytes are not those of its key (nothing is handed out), `invalid` for a key that is not in the claim, with
/// the key and the channel ("owned", "frontier") in the message.
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  virtual Result<ByteView> item(const Key& key) = 0;
};

/// The check: units executed one after another into a running record. One thread at a time.
class Record {
 public:
  virtual ~Record() = default;
  /// Executes one more unit; its owned items and its references are in `items`. On any Error the record is as
  /// it was before: `exhausted` when the cap tripped, `mismatch` when the executor rejects the unit (with
  /// why), `timeout` when stopped. `items` may go after the call.
  virtual Status add(const Unit& unit, ItemSource& items) = 0;
  /// Of all units added so far.
  virtual Cost cost() const = 0;
  /// Items that the last added unit really consulted (the touch graph); sorted.
  virtual std::vector<Key> last_touched() const = 0;
};

/// The evidence that a claim was carried out.
struct Receipt {
  std::string executor;
  int version = 0;
  Digest claim;  ///< Claim::digest
  Bytes body;    ///< the executor's own, binding the claim
  PublicKey signer;
  Signature signature{};  ///< over everything above, as receipt_message() writes it
};
Bytes receipt_message(const Receipt& receipt);

struct JobOptions {
  std::uint64_t record_cap_bytes = 0;  ///< 0: none
  std::uint64_t memory_bytes = 0;      ///< what the job was admitted with; 0: unknown
  const KeyPair* signer = nullptr;     ///< must not be null
  std::stop_token stop;
};
struct JobResult {
  Receipt receipt;
  Cost check;  ///< of the prefix, as a Record would tell
  Cost job;    ///< of the whole; peak_bytes where the executor knows better than its process (a child's)
};

struct VerifyOptions {
  double sample = 1;  ///< share of the receipt's rows that is looked at, where an executor can; 1: all
  std::uint64_t seed = 1;
  std::stop_token stop;
};

/// The cost of a record with one more unit where units run one after another and each gives back what it
/// took: what the largest takes is what all take, all else adds up.
Cost join_in_turn(const Cost& record, const Cost& unit);

class Executor;
/// What every job asks for first: a key to sign with, and that `made`, the claim of its units, is the claim.
Status check_job(const Claim& claim, const Result<Claim>& made, const JobOptions& options);
/// The signed receipt of a claim.
Receipt seal_receipt(const Executor& executor, const Claim& claim, Bytes body, const KeyPair& signer);
/// All that is to be verified but the body: executor and version, that `made`, the claim of the units, is the
/// claim, that the receipt is of it, and the signature. `mismatch`, `incompatible`, `denied`, or the Error of
/// `made`.
Status check_receipt_head(const Executor& executor, const Claim& claim, const Result<Claim>& made,
                          const Receipt& receipt);

/// Stateless; thread safe.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  /// Raised when the meaning of receipts or costs changes: receipts of another version are not taken.
  virtual int version() const = 0;
  /// Of its shards' costs: which figure of a Cost a plan lists (W, unless seconds).
  virtual CostKind cost_kind() const { return CostKind::work; }
  /// Whether what a unit promises rests on the units that it refers to having come before it (a proof on
  /// proofs): a plan of a store where one refers to a later one is then refused.
  virtual bool rests_on_earlier() const { return false; }
  /// Whether a unit costs the same whoever ran before it in its record (a command, a race; not a proof with
  /// tables that it shares). Such a unit is executed once, and join() does the rest.
  virtual bool independent() const { return false; }
  /// Whether its receipts attest files that a later job could write over: then all are looked at once more
  /// before a verdict.
  virtual bool attests_files() const { return false; }
  /// Whether its job takes memory in the process that holds the claim (not in a child's, on a card): the
  /// claim's own lists then count as filled memory of the record.
  virtual bool holds_claim() const { return false; }
  /// Of an independent executor: the cost of a record of cost `record` with a unit of cost `unit` added.
  /// Filled bytes add up, unless overridden.
  virtual Cost join(const Cost& record, const Cost& unit) const;
  /// An empty record under a cap (0: none). `settings`: the store's (Store::settings), JSON.
  virtual Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                                std::stop_token stop) const = 0;
  /// The expensive job of a claim, of which the check is the first part. Units in the plan's order.
  virtual Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                                ItemSource& items, const JobOptions& options) const = 0;
  /// Whether the receipt is that claim's and true; `mismatch` with why not. Shares no code with run() but
  /// that which makes a claim of units.
  virtual Status verify(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const Receipt& receipt, const VerifyOptions& options) const = 0;
};

}  // namespace furlong::shard
