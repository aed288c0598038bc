// A suite that lets a fault pass proves nothing: here are stores with one each.
#include "furlong/fleet/store/conformance/conformance.h"

#include <gtest/gtest.h>

#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet {
namespace {

/// Hands everything on.
class Wrapper : public Store {
 public:
  explicit Wrapper(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  Status add_token(const Token& token) override { return store_->add_token(token); }
  Result<std::vector<Token>> tokens() override { return store_->tokens(); }
  Result<Machine> enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) override {
    return store_->enrol(token, key, now_us);
  }
  Result<std::optional<Machine>> machine(std::string_view id) override { return store_->machine(id); }
  Result<std::vector<Machine>> machines() override { return store_->machines(); }
  Status retire(std::string_view id) override { return store_->retire(id); }
  Status set_canary(std::string_view id, bool canary) override { return store_->set_canary(id, canary); }
  Status add_importer(std::string_view name, std::int64_t now_us) override {
    return store_->add_importer(name, now_us);
  }
  Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) override {
    return store_->add(batches);
  }
  Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) override {
    return store_->prune(before_us, stop);
  }
  Result<std::vector<SubjectRow>> subjects() override { return store_->subjects(); }
  Result<std::vector<std::string>> words() override { return store_->words(); }
  Result<std::vector<std::string>> machine_names() override { return store_->machine_names(); }
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override {
    return store_->scan(subject, window, visit);
  }
  Result<std::optional<std::int64_t>> newest_ts() override { return store_->newest_ts(); }
  Result<RacePage> page(const RaceFilter& filter) override { return store_->page(filter); }
  Result<std::optional<RaceText>> race(std::string_view id) override { return store_->race(id); }
  Result<StoreTotals> totals() override { return store_->totals(); }
  Status batches(std::uint64_t after, const std::function<Result<bool>(const StoredBatch&)>& visit) override {
    return store_->batches(after, visit);
  }
  Status put_machine(const Machine& machine) override { return store_->put_machine(machine); }
  Status put_token(const Token& token) override { return store_->put_token(token); }
  Result<std::vector<bool>> have(std::span<const RecordId> ids) override { return store_->have(ids); }
  Result<bool> has_batch(const StoredBatch& batch) override { return store_->has_batch(batch); }
  Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) override {
    return store_->put_batches(batches);
  }
  Result<bool> snapshot(const std::filesystem::path& file) override { return store_->snapshot(file); }

 protected:
  std::unique_ptr<Store> store_;
};

/// Forgets to look at the end of a window.
struct OpenWindow : Wrapper {
  using Wrapper::Wrapper;
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override {
    if (window.to_us != INT64_MAX) ++window.to_us;
    return store_->scan(subject, window, visit);
  }
};
/// Does not end when the visitor has enough.
struct NoEnd : Wrapper {
  using Wrapper::Wrapper;
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override {
    return store_->scan(subject, window, [&](const RaceRow& row) {
      visit(row);
      return true;
    });
  }
};
/// Gives the batches of a delivery to the store one by one: not all or nothing.
struct ManyTransactions : Wrapper {
  using Wrapper::Wrapper;
  Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) override {
    std::vector<BatchOutcome> all;
    for (const IncomingBatch& batch : batches) {
      FURLONG_TRY(std::vector<BatchOutcome> one, store_->add({&batch, 1}));
      all.push_back(std::move(one.front()));
    }
    return all;
  }
};
/// Loses what was refused.
struct NoRefusals : Wrapper {
  using Wrapper::Wrapper;
  Result<std::optional<RaceText>> race(std::string_view id) override {
    FURLONG_TRY(std::optional<RaceText> text, store_->race(id));
    if (text) text->batch.refused.clear();
    return text;
  }
};
/// Lets races of a page's border be seen twice.
struct PageOverlaps : Wrapper {
  using Wrapper::Wrapper;
  Result<RacePage> page(const RaceFilter& filter) override {
    RaceFilter other = filter;
    if (!other.before.empty())
      other.before.back() = other.before.back() == 'f' ? 'f' : other.before.back() + 1;
    return store_->page(other);
  }
};
/// Counts what was copied as if it had been sent.
struct CountsCopies : Wrapper {
  using Wrapper::Wrapper;
  Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) override {
    FURLONG_CHECK(store_->add(batches));
    return store_->put_batches(batches);
  }
};
/// Keeps one race less than it should.
struct PrunesTooMuch : Wrapper {
  using Wrapper::Wrapper;
  Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) override {
    return store_->prune(before_us == INT64_MAX ? before_us : before_us + 1, stop);
  }
};
/// Answers a used token again, to whoever asks.
struct SharedTokens : Wrapper {
  using Wrapper::Wrapper;
  Result<Machine> enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) override {
    FURLONG_TRY(const std::vector<Token> tokens, store_->tokens());
    for (const Token& one : tokens) {
      if (one.digest != token || one.machine.empty() || one.machine == key.id()) continue;
      FURLONG_CHECK(store_->put_machine({.id = key.id(), .key = key}));
      return Machine{.id = key.id(), .key = key};
    }
    return store_->enrol(token, key, now_us);
  }
};
/// Says that nothing has changed.
struct NoChange : Wrapper {
  using Wrapper::Wrapper;
  Result<StoreTotals> totals() override {
    FURLONG_TRY(StoreTotals totals, store_->totals());
    totals.change = 1;
    return totals;
  }
};

template <class Fault>
MakePlace places() {
  return []() -> Result<OpenPlace> {
    return [data = make_memory_data()](const StoreKind::Options&) -> Result<std::unique_ptr<Store>> {
      return std::make_unique<Fault>(open_memory_store(data));
    };
  };
}

/// Names of the cases that fail, of those that a store in memory can pass.
std::string failing(const MakePlace& make) {
  std::string names;
  for (const StoreCase& one : store_conformance_cases()) {
    if (one.name == "a_reader_sees_one_moment" || one.name.starts_with("one_that_is_")) continue;
    if (!one.run(make)) names += one.name + " ";
  }
  return names;
}

TEST(StoreConformance, PassesAStoreWithoutAFault) { EXPECT_EQ(failing(places<Wrapper>()), ""); }

TEST(StoreConformance, CatchesEveryPlantedFault) {
  EXPECT_NE(failing(places<OpenWindow>()), "");
  EXPECT_NE(failing(places<NoEnd>()), "");
  EXPECT_NE(failing(places<ManyTransactions>()), "");
  EXPECT_NE(failing(places<NoRefusals>()), "");
  EXPECT_NE(failing(places<PageOverlaps>()), "");
  EXPECT_NE(failing(places<CountsCopies>()), "");
  EXPECT_NE(failing(places<PrunesTooMuch>()), "");
  EXPECT_NE(failing(places<SharedTokens>()), "");
  EXPECT_NE(failing(places<NoChange>()), "");
}

TEST(StoreConformance, TwoAnswersThatDifferAreTold) {
  const auto store = open_memory_store();
  const auto content = store_content(*store);
  ASSERT_TRUE(content);
  EXPECT_EQ(content_difference(*content, *content), "");
  EXPECT_EQ(content_difference({"a", "b"}, {"a", "c"}), "- b\n+ c\n");
}

}  // namespace
}  // namespace furlong::fleet
