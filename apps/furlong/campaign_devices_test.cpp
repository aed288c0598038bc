// A campaign of the lottery on the simulated card of the command line: its classes share a dataset.
#include "apps/furlong/campaign_devices.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "furlong/base/os/file.h"
#include "furlong/campaign/make_store.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/race/internal/testing.h"
#include "furlong/shard/store.h"

namespace furlong::app {
namespace {

constexpr std::size_t kDataset = std::size_t{16} << 20;  // of the small geometry

/// Counts the allocations that could hold a dataset.
class CountingDevice : public race::testing::Wrapped {
 public:
  CountingDevice(std::unique_ptr<device::Device> inner, int& datasets)
      : Wrapped(*inner), held_(std::move(inner)), datasets_(datasets) {}
  Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override {
    datasets_ += bytes >= kDataset;
    return Wrapped::allocate(bytes);
  }

 private:
  std::unique_ptr<device::Device> held_;
  int& datasets_;
};

class CountingDevices : public campaign::Devices {
 public:
  explicit CountingDevices(int& datasets) : datasets_(datasets) {}
  std::vector<device::Facts> list() override { return inner_->list(); }
  Result<std::unique_ptr<device::Device>> open(const std::string& address) override {
    FURLONG_TRY(auto device, inner_->open(address));
    return std::make_unique<CountingDevice>(std::move(device), datasets_);
  }
  Clock& clock(const device::Facts& facts) override { return inner_->clock(facts); }
  void attach(const program::Instance& instance) override { inner_->attach(instance); }

 private:
  const std::unique_ptr<campaign::Devices> inner_ = campaign_devices();
  int& datasets_;
};

TEST(CampaignDevices, RacesOfAJobShareTheDatasetOnTheDevice) {
  auto folder = TemporaryFolder::make("campaign-devices");
  ASSERT_TRUE(folder) << folder.error().text();
  ASSERT_EQ(setenv("FURLONG_CACHE_DIR", (folder->path() / "cache").c_str(), 1), 0);
  std::string list = "format = 1\ndevices = [\"sim\"]\n[race]\nbudget_s = 5\nvariants = \"base\"\n";
  for (const std::int64_t loads : {32, 64}) {
    program::lottery::Parameters parameters;
    parameters.epoch_seed = program::lottery::demonstration_seed();
    parameters.loads = loads;
    const auto pack = program::lottery::make_pack(parameters);
    ASSERT_TRUE(pack) << pack.error().text();
    const std::string name = fmt::format("loads-{}", loads);
    ASSERT_TRUE(program::write_pack(*pack, folder->path() / name));
    list += fmt::format("[[program]]\nfile = \"{}\"\nallow_unsigned = true\n", name);
  }
  ASSERT_TRUE(system_files().write_atomic(folder->path() / "races.toml", list));
  const auto summary =
      campaign::make_campaign_store(folder->path() / "races.toml", folder->path() / "races.store");
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(summary->datasets, 1u);
  EXPECT_EQ(summary->races, 2u);

  const auto store = shard::Store::open(folder->path() / "races.store");
  ASSERT_TRUE(store) << store.error().text();
  std::vector<shard::UnitIndex> indices;
  std::vector<shard::Unit> units;
  for (shard::UnitIndex i = 0; i < (*store)->unit_count(); ++i) {
    indices.push_back(i);
    units.push_back(*(*store)->unit(i));
  }
  const auto claim = shard::make_claim(**store, indices);
  const auto items = shard::ClaimItems::open(*store, indices);
  ASSERT_TRUE(claim && items);
  int datasets = 0;
  const auto executor = campaign::make_executor([&] { return std::make_unique<CountingDevices>(datasets); });
  const KeyPair key = *KeyPair::from_seed(Bytes(32, 7));
  shard::JobOptions options;
  options.signer = &key;
  const auto job = executor->run((*store)->settings(), *claim, units, **items, options);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(datasets, 1);
  EXPECT_GE(job->job.record_bytes, kDataset);
  EXPECT_EQ(job->job.features.at("races"), 2);
  const Status verified = executor->verify((*store)->settings(), *claim, units, **items, job->receipt, {});
  EXPECT_TRUE(verified) << verified.error().text();
}

}  // namespace
}  // namespace furlong::app
