// A campaign of real kernels on this machine's processor.
#ifndef FURLONG_WITHOUT_DEVICE_HOST
#include <gmock/gmock.h>

#include "furlong/campaign/internal/testing.h"
#include "furlong/device/host/host.h"
#include "furlong/device/registry.h"

namespace furlong::campaign {
namespace {

using ::testing::HasSubstr;

class HostDevices : public Devices {
 public:
  HostDevices() { registry_.add(device::make_host_driver()); }
  std::vector<device::Facts> list() override {
    return registry_.drivers()[0]->list().value_or(std::vector<device::Facts>());
  }
  Result<std::unique_ptr<device::Device>> open(const std::string& address) override {
    return registry_.open(address);
  }
  Clock& clock(const device::Facts&) override { return system_clock(); }

 private:
  device::Registry registry_;
};

class HostCampaign : public testing::CampaignFixture {
 protected:
  void SetUp() override {
    CampaignFixture::SetUp();
    if (const auto device = HostDevices().open("host:0"); !device) GTEST_SKIP() << device.error().text();
  }
  const std::unique_ptr<shard::Executor> host_ =
      make_executor([] { return std::make_unique<HostDevices>(); });
};

TEST_F(HostCampaign, RacesFromTheStoreAlone) {
  // A source in a file of its own, a header that it includes, and a reference: the store has them all.
  const std::string mix(race::testing::mix_text);
  const std::size_t begin = mix.find("text = \"\"\"\n"), end = mix.find("\"\"\"\n[problem]");
  ASSERT_NE(begin, mix.npos);
  ASSERT_NE(end, mix.npos);
  const std::string kernel = mix.substr(begin + 11, end - begin - 11);
  write("kernel.cpp", "#include \"three.h\"\n" + replace_all(kernel, "= 3 * x[i]", "= THREE * x[i]"));
  write("mix.toml", replace_all(mix.substr(0, begin) + "file = \"kernel.cpp\"\n" + mix.substr(end + 4),
                                "reference = \"base\"", "reference = \"host:reference.cpp:mix\""));
  write("three.h", "#define THREE 3\n");
  write("reference.cpp",
        "#include \"three.h\"\n#include <cstdint>\n"
        "extern \"C\" void mix(const furlong_block&, const uint32_t* x, uint32_t* y, uint32_t n) {\n"
        "  for (uint32_t i = 0; i < n; ++i) y[i] = THREE * x[i] + i;\n}\n");
  make_store(
      "format = 1\ndevices = [\"host\"]\n[race]\nbudget_s = 20\nwindow_ms = 0.2\nvariants = \"base\"\n"
      "[[program]]\nfile = \"mix.toml\"\nproblems = { n = 4096 }\n");
  for (const char* gone : {"mix.toml", "kernel.cpp", "three.h", "reference.cpp"})
    ASSERT_TRUE(system_files().remove(path(gone))) << gone;

  const auto claim = shard::make_claim(*store_, all());
  ASSERT_TRUE(claim);
  const auto items = shard::ClaimItems::open(store_, all());
  ASSERT_TRUE(items);
  shard::JobOptions options;
  options.signer = &key_;
  const auto job = host_->run(store_->settings(), *claim, units(all()), **items, options);
  ASSERT_TRUE(job) << job.error().text();
  const auto lines = lines_of(job->receipt);
  EXPECT_EQ(lines[2]["record"]["backend"], "host");
  EXPECT_EQ(lines[2]["record"]["winner"], "base");
  EXPECT_THAT(lines[2]["reference"].get<std::string>(), HasSubstr("reference.cpp"));
  const Status verified = host_->verify(store_->settings(), *claim, units(all()), **items, job->receipt, {});
  EXPECT_TRUE(verified) << verified.error().text();
}

TEST_F(HostCampaign, BaseThatFailsItsGateIsNamed) {
  std::string text(race::testing::mix_text);
  text = replace_all(text, "reference = \"base\"", "reference = \"host:reference.cpp:mix\"");
  write("mix.toml", text);
  write("reference.cpp",
        "extern \"C\" void mix(const furlong_block&, const unsigned* x, unsigned* y, unsigned n) {\n"
        "  for (unsigned i = 0; i < n; ++i) y[i] = x[i];\n}\n");
  make_store("format = 1\ndevices = [\"host\"]\n[[program]]\nfile = \"mix.toml\"\n");
  const auto items = shard::ClaimItems::open(store_, all());
  ASSERT_TRUE(items);
  const auto record = host_->begin(store_->settings(), 0, {});
  ASSERT_TRUE(record);
  const Status added = (*record)->add(*store_->unit(1), **items);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), Code::mismatch);
  EXPECT_THAT(added.error().text(), HasSubstr("base"));
  EXPECT_THAT(added.error().text(), HasSubstr("element"));
}

}  // namespace
}  // namespace furlong::campaign
#endif
