#pragma once
// What the commands of sharding share: executors by name, stores and plans by file, sizings, progress.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/furlong/command.h"
#include "furlong/base/json_fwd.h"
#include "furlong/base/sign.h"
#include "furlong/shard/executor_kind.h"
#include "furlong/shard/model.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/progress.h"
#include "furlong/shard/store.h"

namespace furlong::app {

/// A store with the executor that it is for.
struct OpenStore {
  std::filesystem::path file;
  std::shared_ptr<const shard::Store> store;
  std::shared_ptr<const shard::Executor> executor;
};
/// `incompatible` for a store of an executor, or of a version of it, that this build does not have.
Result<OpenStore> open_store(const std::filesystem::path& file);

Result<shard::Plan> open_plan(const std::filesystem::path& file);

/// "--max-ram 4", "--record-cap 512M": bytes; 0 when not given. `invalid` names the option.
Result<std::uint64_t> bytes_option(const Arguments& arguments, std::string_view name, std::uint64_t bare_unit,
                                   std::uint64_t otherwise = 0);
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// --model's model, applied to the budgets of `sizing` (apply_model); nothing when it is not given.
Result<std::optional<shard::Model>> model_option(const Arguments& arguments, shard::Sizing& sizing,
                                                 shard::WorkSource source);

/// --fail-fast and --no-fail-fast, the same in plan, check and run. Both: `invalid`.
std::vector<OptionSpec> fail_fast_options();
Result<bool> fail_fast(const Arguments& arguments);

/// The shard that --shard names; nothing when it is not given. `invalid` for one that the plan does not have.
Result<std::optional<shard::ShardId>> shard_option(const Arguments& arguments, const shard::Plan& plan);

/// --key's key, else that of the configuration folder, which is made when there is none. `file` is where it
/// is.
struct SigningKey {
  KeyPair key;
  std::filesystem::path file;
};
Result<SigningKey> signing_key(const Arguments& arguments);

/// --cache's folder, else receipts/ in the cache folder.
std::filesystem::path receipts_folder(const Arguments& arguments);

/// "9.1 s", "3:42", "2:03:11".
std::string duration_text(double seconds);

/// Writes JSON to a file, or for "-" to standard output.
Status write_json(const std::string& file, const Json& json);

/// How far a long step is: one line that is redrawn on a terminal; elsewhere a line a step, and every 30 s.
/// Told by one thread at a time.
class StepLine {
 public:
  explicit StepLine(bool enabled);
  ~StepLine();
  StepLine(const StepLine&) = delete;
  StepLine& operator=(const StepLine&) = delete;
  void show(const shard::ProgressState& state);
  void clear();
  /// That shows here; it must not outlive this.
  shard::Progress progress();

 private:
  const bool enabled_, terminal_;
  bool drawn_ = false;
  std::string step_;
  std::int64_t told_ns_ = 0;
};

}  // namespace furlong::app
