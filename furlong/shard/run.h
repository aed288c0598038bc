#pragma once
// Carrying a plan out: the coverage gate, jobs by an engine, receipts that are verified and bound before they
// count, and one verdict. What is in the receipt cache is not done again.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/shard/engine.h"
#include "furlong/shard/executor.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/receipt_cache.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

/// What the jobs of a plan are carried out with.
struct RunContext {
  std::shared_ptr<const Store> store;
  const Executor& executor;
  const Plan& plan;
  const ReceiptCache& cache;
  double sample = 1;       ///< share of a receipt's rows that verifying looks at
  std::uint64_t seed = 1;  ///< of the sample
  std::stop_token stop;
};

/// The gate before anything runs: the plan is of this store and executor, the store's units are those of its
/// digest, each unit is in exactly one shard, all that a unit refers to is owned by a unit, and where the
/// executor rests on earlier units by an earlier one. With `only` that shard's units are looked at alone, and
/// not the digest. `invalid`, `mismatch`, `incompatible`, `corrupt` name what is wrong; `timeout` when
/// stopped.
Status check_gate(const RunContext& context, const PlanShard* only = nullptr);

/// The claim that a shard's job carries out, rebuilt from the store.
Result<Digest> claim_digest(const RunContext& context, const PlanShard& shard);

/// The entry of a shard whose receipt is there, verifies, and is of the claim rebuilt from the store; nothing
/// where the job must run, with why in `why` when something was there that did not hold.
Result<std::optional<ReceiptEntry>> settled(const RunContext& context, const PlanShard& shard,
                                            std::string* why = nullptr);

/// The job of one shard, here: executed, verified, bound to the claim, and only then recorded. What `furlong
/// run --shard K` does.
Result<ReceiptEntry> run_shard(const RunContext& context, const PlanShard& shard, const KeyPair& signer);

/// The prefix alone, cold, with its measured cost: what `furlong shard check` does.
Result<Cost> check_shard(const RunContext& context, const PlanShard& shard);

enum class ShardState { kept, done, failed, pending };
std::string_view shard_state_name(ShardState state);  ///< "kept": its receipt was there

struct ShardOutcome {
  ShardId shard = 0;
  ShardState state = ShardState::pending;
  Digest claim;
  std::optional<ReceiptEntry> entry;  ///< when kept or done
  std::string why;     ///< when failed, why; else why a receipt that was there did not hold, if one was
  double seconds = 0;  ///< of its job in this run
  std::uint64_t peak_bytes = 0;  ///< of its job in this run, where measured
};

struct RunRequest {
  EngineOptions engine;
  std::optional<ShardId> only;  ///< this shard alone
  bool fail_fast = true;        ///< begin nothing more after a job that failed
  bool dry_run = false;         ///< say what is settled and what is pending, and run nothing
};

struct RunReport {
  std::vector<ShardOutcome> shards;  ///< in the plan's order
  std::size_t kept = 0, done = 0, failed = 0, pending = 0;
  double seconds = 0;
  double sample = 1;     ///< RunContext::sample: share of the rows that was verified
  bool stopped = false;  ///< all that was finished is in the cache
  /// Every shard of the plan is settled: the cover is disjoint, every receipt verified and bound.
  bool complete() const { return failed == 0 && pending == 0; }
};

/// What is settled is kept, the rest goes to the engine. An Error of the engine itself loses nothing that was
/// finished: it is in the cache.
Result<RunReport> run_plan(const RunContext& context, Engine& engine, const RunRequest& request);

/// One receipt over a whole plan, for whoever has store and receipts: its root is that of the plan's
/// aggregation tree over the addresses of the shards' receipts. docs/formats/receipt.md.
struct CombinedReceipt {
  Digest store, plan;  ///< Store::digest; BLAKE2b-256 of the plan's file
  std::string executor;
  int executor_version = 0;
  struct Leaf {
    ShardId shard = 0;
    Digest claim, receipt;
  };
  std::vector<Leaf> leaves;  ///< in the order of the tree
  double sample = 1;         ///< share of the receipts' rows that was verified, where the executor can
  Digest root;
  PublicKey signer;
  Signature signature{};
};
/// `invalid` where a shard is not settled.
Result<CombinedReceipt> combine(const Plan& plan, const RunReport& report, const KeyPair& signer);
std::string print_combined(const CombinedReceipt& receipt);
Result<CombinedReceipt> parse_combined(std::string_view text, const std::string& name);
/// Plan, executor, root, signature, and every leaf's claim against the store; `mismatch`, `denied`. Whether
/// the leaves' receipts hold is another question: settled().
Status check_combined(const CombinedReceipt& receipt, const Plan& plan, const Store& store);

}  // namespace furlong::shard
