#pragma once
// A folder with a list of commands, its store, and jobs over it: what the tests of this part share. Only for
// tests: it includes gtest.

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/shard/executor/command/command.h"
#include "furlong/shard/executor/command/make_store.h"
#include "furlong/shard/store.h"

namespace furlong::shard::command::testing {

class CommandFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("command-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
  }

  std::string path(const std::string& name) const { return (folder_->path() / name).string(); }
  void write(const std::string& name, std::string_view text) const {
    if (const Status wrote = system_files().write_atomic(path(name), text); !wrote)
      throw std::runtime_error(wrote.error().text());
  }
  std::string read(const std::string& name) const {
    auto text = system_files().read(path(name));
    return text ? *text : "(" + text.error().text() + ")";
  }

  /// A line with "shell".
  static std::string line(const std::string& name, const std::string& shell,
                          const std::vector<std::string>& inputs = {},
                          const std::vector<std::string>& outputs = {}, const Json& more = Json::object()) {
    Json json{{"name", name}, {"shell", shell}, {"inputs", inputs}, {"outputs", outputs}};
    json.update(more);
    return json_line(json) + "\n";
  }

  Result<StoreSummary> try_store(std::string_view list) const {
    write("list.jsonl", list);
    return make_command_store(path("list.jsonl"), path("commands.store"));
  }
  /// Replaces the one before.
  std::shared_ptr<const Store> make_store(std::string_view list) {
    if (const auto summary = try_store(list); !summary) throw std::runtime_error(summary.error().text());
    auto store = Store::open(path("commands.store"));
    if (!store) throw std::runtime_error(store.error().text());
    return store_ = *store;
  }

  std::vector<UnitIndex> all() const {
    std::vector<UnitIndex> indices;
    for (UnitIndex i = 0; i < store_->unit_count(); ++i) indices.push_back(i);
    return indices;
  }
  std::vector<Unit> units(const std::vector<UnitIndex>& indices) const {
    std::vector<Unit> list;
    for (const UnitIndex index : indices) list.push_back(*store_->unit(index));
    return list;
  }

  Result<JobResult> run(const std::vector<UnitIndex>& indices, JobOptions options = {}) const {
    options.signer = &key_;
    auto items = ClaimItems::open(store_, indices);
    if (!items) return items.error();
    return executor_->run(store_->settings(), *make_claim(*store_, indices), units(indices), **items,
                          options);
  }
  Status verify(const std::vector<UnitIndex>& indices, const Receipt& receipt,
                const VerifyOptions& options = {}) const {
    auto items = ClaimItems::open(store_, indices);
    if (!items) return items.error();
    return executor_->verify(store_->settings(), *make_claim(*store_, indices), units(indices), **items,
                             receipt, options);
  }
  /// One unit in a record of its own.
  Result<Cost> check(UnitIndex index, std::uint64_t cap_bytes = 0, std::stop_token stop = {}) const {
    FURLONG_TRY(const auto items, ClaimItems::open(store_, std::vector{index}));
    FURLONG_TRY(const auto record, executor_->begin(store_->settings(), cap_bytes, std::move(stop)));
    FURLONG_CHECK(record->add(*store_->unit(index), *items));
    return record->cost();
  }
  /// Another body under a signature that holds.
  Receipt resigned(Receipt receipt, const std::string& body) const {
    receipt.body.assign(body.begin(), body.end());
    receipt.signature = sign(receipt_message(receipt), key_);
    return receipt;
  }

  std::optional<TemporaryFolder> folder_;
  std::shared_ptr<const Store> store_;
  const std::unique_ptr<Executor> executor_ = make_executor();
  const KeyPair key_ = *KeyPair::from_seed(Bytes(32, 7));
};

}  // namespace furlong::shard::command::testing
