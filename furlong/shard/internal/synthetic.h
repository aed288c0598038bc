#pragma once
// For tests: an executor whose units say what they cost, and the small stores that they stand in.
//
// An item's text is a list of words:
//   work=W      adds W
//   bytes=B     charges B bytes of the record; charges=N: in N equal parts
//   load=B      B bytes, and loadwork=W of work, the first time that a record consults the item
//   rows=A-B    rows of a memo table: those that the record lacks cost kRowBytes each, and all h rows of the
//               record together h*log2(max(h, 2)) of work
//   f.NAME=X    counts X of a feature
//   seconds=S   of wall time, as told, not spent
//   reject=WHY  the executor rejects the unit, after all charges
//   skip=N      the unit does not consult the first N of its references

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor.h"
#include "furlong/shard/store.h"

namespace furlong::shard::synthetic {

inline constexpr std::uint64_t kRowBytes = 16;

struct Hooks {
  /// Before a unit is executed; may come from several threads.
  std::function<void(const Unit&)> before_add;
  /// What a process over that record is said to have taken at its peak; 0: not measured.
  std::function<std::uint64_t(const Cost&)> peak_bytes;
};

class SyntheticRecord : public Record {
 public:
  SyntheticRecord(const Hooks& hooks, std::uint64_t cap_bytes, std::stop_token stop)
      : hooks_(hooks), meter_(cap_bytes), stop_(std::move(stop)) {}

  Status add(const Unit& unit, ItemSource& items) override {
    if (hooks_.before_add) hooks_.before_add(unit);
    if (stop_.stop_requested()) return fail(Code::timeout, "stopped");
    meter_.begin_unit();
    const State before = state_;
    Status status = execute(unit, items);
    if (!status) {
      meter_.rollback();
      state_ = before;
      return status;
    }
    meter_.commit();
    return {};
  }

  Cost cost() const override {
    Cost cost;
    const double h = static_cast<double>(state_.rows.size());
    cost.work = state_.work + h * std::log2(std::max(h, 2.0));
    cost.record_bytes = meter_.bytes();
    cost.seconds = state_.seconds;
    cost.features = meter_.features();
    cost.features["rows"] = h;
    if (hooks_.peak_bytes) cost.peak_bytes = hooks_.peak_bytes(cost);
    return cost;
  }
  std::vector<Key> last_touched() const override { return meter_.last_touched(); }

 private:
  struct State {
    double work = 0, seconds = 0;
    std::set<std::int64_t> rows;
    std::set<Key> loaded;
  };

  Status execute(const Unit& unit, ItemSource& items) {
    std::size_t skip = 0;
    std::string rejected;
    for (const Key& key : unit.items) FURLONG_CHECK(consult(key, items, true, skip, rejected));
    for (std::size_t i = skip; i < unit.references.size(); ++i)
      FURLONG_CHECK(consult(unit.references[i], items, false, skip, rejected));
    if (!rejected.empty()) return fail(Code::mismatch, "{}", rejected);
    return {};
  }

  Status consult(const Key& key, ItemSource& items, bool own, std::size_t& skip, std::string& rejected) {
    FURLONG_TRY(const ByteView bytes, items.item(key));
    meter_.touch(key);
    const bool first = state_.loaded.insert(key).second;
    std::map<std::string, std::string> words;
    for (const std::string& word : split(as_text(bytes), ' ')) {
      const auto equals = word.find('=');
      if (equals != word.npos) words[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const auto number = [&](const char* name) { return words.contains(name) ? std::stod(words[name]) : 0.0; };
    if (first) {
      FURLONG_CHECK(meter_.charge(static_cast<std::uint64_t>(number("load"))));
      state_.work += number("loadwork");
    }
    if (!own) return {};
    state_.work += number("work");
    state_.seconds += number("seconds");
    skip = static_cast<std::size_t>(number("skip"));
    const int charges = words.contains("charges") ? std::stoi(words["charges"]) : 1;
    for (int i = 0; i < charges; ++i)
      FURLONG_CHECK(meter_.charge(static_cast<std::uint64_t>(number("bytes") / charges)));
    for (const auto& [name, value] : words)
      if (name.starts_with("f.")) meter_.count(name.substr(2), std::stod(value));
    if (words.contains("rows")) {
      const std::string& range = words["rows"];
      const auto dash = range.find('-');
      for (long row = std::stol(range.substr(0, dash)), last = std::stol(range.substr(dash + 1)); row <= last;
           ++row)
        if (state_.rows.insert(row).second) FURLONG_CHECK(meter_.charge(kRowBytes));
    }
    if (words.contains("reject")) rejected = words["reject"];
    return {};
  }

  Hooks hooks_;
  Meter meter_;
  State state_;
  std::stop_token stop_;
};

class SyntheticExecutor : public Executor {
 public:
  Hooks hooks;
  int the_version = 1;

  std::string_view name() const override { return "synthetic"; }
  int version() const override { return the_version; }
  Result<std::unique_ptr<Record>> begin(const std::string&, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    ++begun;
    return std::unique_ptr<Record>(std::make_unique<SyntheticRecord>(hooks, cap_bytes, std::move(stop)));
  }
  Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const JobOptions& options) const override {
    FURLONG_TRY(const auto record, begin(settings, options.record_cap_bytes, options.stop));
    for (const Unit& unit : units) FURLONG_CHECK(record->add(unit, items));
    JobResult result;
    result.check = result.job = record->cost();
    const std::string body = fmt::format("work {}", record->cost().work);
    result.receipt = seal_receipt(*this, claim, {body.begin(), body.end()}, *options.signer);
    return result;
  }
  Status verify(const std::string&, const Claim& claim, std::span<const Unit>, ItemSource&,
                const Receipt& receipt, const VerifyOptions&) const override {
    if (receipt.executor != "synthetic" || receipt.version != version())
      return fail(Code::mismatch, "a receipt of {} {}", receipt.executor, receipt.version);
    if (receipt.claim != claim.digest("synthetic", version()))
      return fail(Code::mismatch, "the receipt is another claim's");
    return furlong::verify(receipt_message(receipt), receipt.signature, receipt.signer);
  }

  mutable std::atomic<int> begun{0};
};

/// One unit of a store under test.
struct Script {
  std::string name;
  std::string text;                     ///< of its first item
  std::vector<std::string> references;  ///< names of units: to their first item
  std::vector<std::string> more_items;
};

/// Writes the scripts as a store; names make items distinct. References to units that come later are fine.
inline Result<std::shared_ptr<const Store>> make_store(const std::filesystem::path& file,
                                                       const std::vector<Script>& scripts,
                                                       const std::string& settings = "{}") {
  FURLONG_TRY(StoreWriter writer, StoreWriter::create(file, "synthetic", 1, settings));
  std::map<std::string, Key> first;
  std::vector<std::vector<Key>> items;
  for (const Script& script : scripts) {
    std::vector<Key> own;
    FURLONG_TRY(const Key key, writer.add_item(as_bytes(script.name + " " + script.text)));
    first[script.name] = key;
    own.push_back(key);
    for (const std::string& text : script.more_items) {
      FURLONG_TRY(const Key more, writer.add_item(as_bytes(text)));
      own.push_back(more);
    }
    items.push_back(std::move(own));
  }
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    std::vector<Key> references;
    for (const std::string& name : scripts[i].references) {
      if (!first.contains(name)) return fail(Code::invalid, "no unit '{}'", name);
      references.push_back(first[name]);
    }
    FURLONG_CHECK(writer.add_unit(scripts[i].name, items[i], references));
  }
  FURLONG_CHECK(writer.finish());
  return Store::open(file);
}

}  // namespace furlong::shard::synthetic
