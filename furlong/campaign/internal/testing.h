#pragma once
// A folder with programs and a list of races, its store, and a simulated card that runs them as told: what
// the tests of this part share. Only for tests: it includes gtest.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/campaign/campaign.h"
#include "furlong/campaign/make_store.h"
#include "furlong/device/sim/sim.h"
#include "furlong/race/internal/testing.h"
#include "furlong/shard/store.h"

namespace furlong::campaign::testing {

/// What the simulated card does; shared with every Devices that is made.
struct Lab {
  device::SimOptions sim;
  bool present = true;
  std::set<std::string> wrong;      ///< variants whose output is wrong
  std::function<void()> on_launch;  ///< may be empty
  int opened = 0;
};

/// Its one device is sim:0, whose launches compute what race::testing::mix_text says.
class LabDevices : public Devices {
 public:
  explicit LabDevices(std::shared_ptr<Lab> lab) : lab_(std::move(lab)) {
    device::SimOptions sim = lab_->sim;
    sim.behaviour = [this](const device::CompileRequest& module, const device::Launch& launch) {
      return run(module, launch);
    };
    driver_ = device::make_sim_driver({sim}, clock_);
  }
  std::vector<device::Facts> list() override {
    return lab_->present ? driver_->list().value_or(std::vector<device::Facts>())
                         : std::vector<device::Facts>();
  }
  Result<std::unique_ptr<device::Device>> open(const std::string& address) override {
    if (!lab_->present || address != "sim:0") return fail(Code::unavailable, "there is no {} here", address);
    ++lab_->opened;
    return driver_->open(0);
  }
  Clock& clock(const device::Facts&) override { return *clock_; }

 private:
  Status run(const device::CompileRequest& module, const device::Launch& launch) {
    if (lab_->on_launch) lab_->on_launch();
    const auto data = [&](std::size_t i) {
      return reinterpret_cast<std::uint32_t*>(race::testing::data_of(launch.arguments[i]));
    };
    const auto n = load_le<std::uint32_t>(std::get<Bytes>(launch.arguments[2]).data());
    for (std::uint32_t i = 0; i < n; ++i) data(1)[i] = 3 * data(0)[i] + i;
    if (lab_->wrong.contains(module.name)) ++data(1)[n / 2];
    return {};
  }

  const std::shared_ptr<Lab> lab_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::unique_ptr<device::Driver> driver_;
};

class CampaignFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("campaign-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
    // Packs of stores, and compiled kernels.
    ASSERT_EQ(setenv("FURLONG_CACHE_DIR", path("cache").c_str(), 1), 0);
    ASSERT_EQ(setenv("FURLONG_CONFIG_DIR", path("config").c_str(), 1), 0);
    lab_->sim.timing.noise = 0.002;
    write_mix("mix.toml", "mix");
  }

  std::string path(const std::string& name) const { return (folder_->path() / name).string(); }
  void write(const std::string& name, std::string_view text) const {
    if (const Status wrote = system_files().write_atomic(path(name), text); !wrote)
      throw std::runtime_error(wrote.error().text());
  }
  /// The program mix under another name.
  void write_mix(const std::string& file, const std::string& name) const {
    write(file, replace_all(race::testing::mix_text, "name = \"mix\"", "name = \"" + name + "\""));
  }

  Result<StoreSummary> try_store(std::string_view list, const std::string& name = "races.store") const {
    write("races.toml", list);
    return make_campaign_store(path("races.toml"), path(name));
  }
  /// Replaces the one before.
  std::shared_ptr<const shard::Store> make_store(std::string_view list) {
    if (const auto summary = try_store(list); !summary) throw std::runtime_error(summary.error().text());
    auto store = shard::Store::open(path("races.store"));
    if (!store) throw std::runtime_error(store.error().text());
    return store_ = *store;
  }

  std::vector<shard::UnitIndex> all() const {
    std::vector<shard::UnitIndex> indices;
    for (shard::UnitIndex i = 0; i < store_->unit_count(); ++i) indices.push_back(i);
    return indices;
  }
  std::vector<shard::Unit> units(const std::vector<shard::UnitIndex>& indices) const {
    std::vector<shard::Unit> list;
    for (const shard::UnitIndex index : indices) list.push_back(*store_->unit(index));
    return list;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const shard::Unit& unit : units(all())) list.push_back(unit.name);
    return list;
  }
  /// By its name.
  shard::UnitIndex unit(const std::string& name) const {
    const auto found = store_->find_unit(name);
    if (!found || !*found) throw std::runtime_error("no unit " + name);
    return **found;
  }

  Result<shard::JobResult> run(const std::vector<shard::UnitIndex>& indices,
                               shard::JobOptions options = {}) const {
    options.signer = &key_;
    FURLONG_TRY(const auto items, shard::ClaimItems::open(store_, indices));
    return executor_->run(store_->settings(), *shard::make_claim(*store_, indices), units(indices), *items,
                          options);
  }
  Status verify(const std::vector<shard::UnitIndex>& indices, const shard::Receipt& receipt,
                const shard::VerifyOptions& options = {}) const {
    FURLONG_TRY(const auto items, shard::ClaimItems::open(store_, indices));
    return executor_->verify(store_->settings(), *shard::make_claim(*store_, indices), units(indices), *items,
                             receipt, options);
  }
  /// One unit in a record of its own.
  Result<shard::Cost> check(shard::UnitIndex index, std::uint64_t cap_bytes = 0,
                            std::stop_token stop = {}) const {
    FURLONG_TRY(const auto items, shard::ClaimItems::open(store_, std::vector{index}));
    FURLONG_TRY(const auto record, executor_->begin(store_->settings(), cap_bytes, std::move(stop)));
    FURLONG_CHECK(record->add(*store_->unit(index), *items));
    return record->cost();
  }
  /// Another body under a signature that holds.
  shard::Receipt resigned(shard::Receipt receipt, const std::string& body) const {
    receipt.body.assign(body.begin(), body.end());
    receipt.signature = sign(shard::receipt_message(receipt), key_);
    return receipt;
  }
  /// The body's lines as JSON; the first is the head.
  static std::vector<Json> lines_of(const shard::Receipt& receipt) {
    std::vector<Json> lines;
    for (const std::string& line : split(as_text(receipt.body), '\n'))
      if (!line.empty()) lines.push_back(*json_parse(line, "a line"));
    return lines;
  }
  shard::Receipt with_lines(const shard::Receipt& receipt, const std::vector<Json>& lines) const {
    std::string body;
    for (const Json& line : lines) body += json_line(line) + "\n";
    return resigned(receipt, body);
  }

  std::optional<TemporaryFolder> folder_;
  std::shared_ptr<Lab> lab_ = std::make_shared<Lab>();
  std::shared_ptr<const shard::Store> store_;
  const std::unique_ptr<shard::Executor> executor_ =
      make_executor([lab = lab_] { return std::make_unique<LabDevices>(lab); });
  const KeyPair key_ = *KeyPair::from_seed(Bytes(32, 7));
};

/// Three sizes of mix on the simulated card, two variants each.
inline constexpr std::string_view kThree = R"toml(format = 1
devices = ["sim:0"]
[race]
budget_s = 10
variants = "u2"
[[program]]
file = "mix.toml"
problems = { n = [4096, 1024, 2048] }
)toml";

}  // namespace furlong::campaign::testing
