#pragma once
// What one executor's folder offers to applications: itself, and how stores for it are made. The list of all
// kinds is generated from tools/layers.txt (apps/furlong/executors.h).

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

struct StoreRequest {
  std::filesystem::path input;
  std::filesystem::path out;  ///< the store's file; nothing is left there on failure
  std::stop_token stop;
  Progress progress;
};

struct StoreReport {
  std::uint64_t units = 0, items = 0, item_bytes = 0;
  /// What else is worth telling, in order: {"axioms", "1324"}.
  std::vector<std::pair<std::string, std::string>> notes;
};

struct ExecutorKind {
  std::string name;                    ///< Executor::name
  std::string input;                   ///< what a store is made of, for help: "a Metamath database (.mm)"
  std::shared_ptr<Executor> executor;  ///< never null
  /// Empty: stores for it are made elsewhere.
  std::function<Result<StoreReport>(const StoreRequest&)> make_store;
};

}  // namespace furlong::shard
