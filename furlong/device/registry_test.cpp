#include "furlong/device/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

// Opens nothing: the error's text says what would have been opened.
class FakeDriver : public Driver {
 public:
  /// The first `on_cpu` of the devices are the host's CPU; the first `kept_away` list, and do not open.
  FakeDriver(std::string name, int devices, int on_cpu = 0, int kept_away = 0)
      : name_(std::move(name)), devices_(devices), on_cpu_(on_cpu), kept_away_(kept_away) {}
  std::string_view name() const override { return name_; }
  Result<std::vector<Facts>> list() override {
    if (devices_ < 0) return fail(Code::unavailable, "no loader for {}", name_);
    std::vector<Facts> facts;
    for (int i = 0; i < devices_; ++i) {
      facts.emplace_back();
      facts.back().backend = name_;
      facts.back().index = i;
      facts.back().label = fmt::format("Card_{}", i);
      facts.back().runs_on_host_cpu = i < on_cpu_;
    }
    return facts;
  }
  Result<std::unique_ptr<Device>> open(int index) override {
    if (index < kept_away_) return fail(Code::unavailable, "{}:{} is in use", name_, index);
    return fail(Code::internal, "opened {}:{}", name_, index);
  }

 private:
  std::string name_;
  int devices_;
  int on_cpu_;
  int kept_away_;
};

std::string open(const Registry& registry, std::string_view address, Code code) {
  const auto device = registry.open(address);
  EXPECT_FALSE(device);
  EXPECT_EQ(device.error().code(), code) << device.error().text();
  return device.error().text();
}

Registry with(std::vector<std::pair<std::string, int>> drivers) {
  Registry registry;
  for (auto& [name, devices] : drivers) registry.add(std::make_unique<FakeDriver>(name, devices));
  return registry;
}

TEST(Registry, OpensByAddress) {
  const Registry registry = with({{"host", 1}, {"opencl", 2}});
  EXPECT_EQ(open(registry, "opencl:1", Code::internal), "opened opencl:1");
  EXPECT_EQ(open(registry, "opencl", Code::internal), "opened opencl:0");
  EXPECT_EQ(open(registry, "host:0", Code::internal), "opened host:0");
}

TEST(Registry, PrefersCardsAndNeverTakesSimOrNullByItself) {
  EXPECT_EQ(open(with({{"host", 1}, {"opencl", 2}, {"cuda", 1}}), "auto", Code::internal), "opened cuda:0");
  EXPECT_EQ(open(with({{"host", 1}, {"opencl", 2}, {"cuda", -1}}), "", Code::internal), "opened opencl:0");
  EXPECT_EQ(open(with({{"host", 1}, {"opencl", 0}, {"cuda", -1}}), "", Code::internal), "opened host:0");
  const std::string none = open(with({{"sim", 1}, {"null", -1}, {"host", -1}}), "auto", Code::unavailable);
  EXPECT_THAT(none, HasSubstr("no loader for host"));
  EXPECT_THAT(none, HasSubstr("sim:0 (Card_0)"));
  EXPECT_EQ(open(with({{"sim", 1}}), "sim", Code::internal), "opened sim:0");
}

// A card without a compiler, or in somebody else's exclusive use, must not hide the next device.
TEST(Registry, PassesOverWhatListsAndDoesNotOpen) {
  Registry registry;
  registry.add(std::make_unique<FakeDriver>("cuda", 2, 0, 2));
  registry.add(std::make_unique<FakeDriver>("opencl", 2, 1, 1));
  registry.add(std::make_unique<FakeDriver>("host", 1, 1));
  EXPECT_EQ(open(registry, "auto", Code::internal), "opened opencl:1");
  EXPECT_EQ(open(registry, "cuda:0", Code::unavailable), "cuda:0 is in use");
  Registry none;
  none.add(std::make_unique<FakeDriver>("cuda", 2, 0, 2));
  none.add(std::make_unique<FakeDriver>("host", 1, 1, 1));
  const std::string text = open(none, "auto", Code::unavailable);
  for (const char* each : {"cuda:0 is in use", "cuda:1 is in use", "host:0 is in use"})
    EXPECT_THAT(text, HasSubstr(each));
}

TEST(Registry, TakesACardThatIsListedBehindTheCpu) {
  Registry registry;
  registry.add(std::make_unique<FakeDriver>("host", 1, 1));
  registry.add(std::make_unique<FakeDriver>("opencl", 3, 2));
  EXPECT_EQ(open(registry, "auto", Code::internal), "opened opencl:2");
  Registry cpus;
  cpus.add(std::make_unique<FakeDriver>("host", 1, 1));
  cpus.add(std::make_unique<FakeDriver>("opencl", 2, 2));
  EXPECT_EQ(open(cpus, "auto", Code::internal), "opened opencl:0");
  EXPECT_EQ(open(cpus, "opencl", Code::internal), "opened opencl:0");
}

TEST(Registry, SaysWhatIsThereWhenADeviceIsNot) {
  const Registry registry = with({{"opencl", 2}, {"cuda", -1}});
  EXPECT_THAT(open(registry, "opencl:2", Code::unavailable),
              HasSubstr("opencl:0 (Card_0), opencl:1 (Card_1)"));
  EXPECT_THAT(open(registry, "opnecl", Code::unavailable), HasSubstr("did you mean 'opencl'"));
  EXPECT_THAT(open(registry, "cuda:0", Code::unavailable), HasSubstr("no loader for cuda"));
}

TEST(Registry, SaysWhichBackEndServesTheCardsOfAnotherName) {
  const Registry registry = with({{"host", 1}, {"opencl", 2}, {"cuda", -1}});
  for (const char* address :
       {"hip:0", "hip", "HIP:1", "rocm", "ROCm:0", "amd:0", "metal", "metal:0", "vulkan:0", "level-zero:0",
        "level_zero", "Level Zero", "ze:0", "oneapi", "sycl:0", "intel"}) {
    const std::string text = open(registry, address, Code::unavailable);
    EXPECT_THAT(text, HasSubstr("served by opencl, as opencl:N")) << address;
    EXPECT_THAT(text, HasSubstr("opencl:0 (Card_0), opencl:1 (Card_1)")) << address;
  }
  EXPECT_THAT(open(registry, "cpu", Code::unavailable), HasSubstr("host:N (here: host:0 (Card_0))"));
  EXPECT_THAT(open(registry, "nvidia:0", Code::unavailable),
              HasSubstr("cuda:N (here: cuda: no loader for cuda)"));
  EXPECT_THAT(open(with({{"opencl", -1}}), "hip:0", Code::unavailable), HasSubstr("no loader for opencl"));
  // A back end of that name comes first, and one that this program lacks is not promised.
  EXPECT_EQ(open(with({{"metal", 1}, {"opencl", 1}}), "metal:0", Code::internal), "opened metal:0");
  EXPECT_THAT(open(with({{"host", 1}}), "hip:0", Code::unavailable), HasSubstr("there are: host"));
}

TEST(Registry, RefusesMalformedAddresses) {
  const Registry registry = with({{"opencl", 2}});
  for (const char* address : {":", ":0", "opencl:", "opencl:-1", "opencl:+1", "opencl:1x", "opencl:0:0",
                              "OpenCL:0", "opencl 0", "opencl:99999999999", "opencl: 0"}) {
    EXPECT_THAT(open(registry, address, Code::invalid), HasSubstr("opencl:0")) << address;
  }
}

TEST(Registry, ListsEveryBackEndWithItsError) {
  const auto listed = with({{"opencl", 2}, {"cuda", -1}}).list();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].backend, "opencl");
  EXPECT_EQ(listed[0].devices->size(), 2u);
  EXPECT_EQ(listed[1].devices.error().code(), Code::unavailable);
}

TEST(Languages, NamesRoundTrip) {
  for (Language language : {Language::host, Language::opencl, Language::cuda, Language::metal}) {
    const auto parsed = parse_language(language_name(language));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, language);
  }
  const auto unknown = parse_language("opncl");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::invalid);
  EXPECT_THAT(unknown.error().text(), HasSubstr("did you mean 'opencl'"));
}

TEST(Silicon, TheHashKnowsEveryFieldAndNoOther) {
  const Silicon card{"NVIDIA", "sm_90", 132, 1000, 2619};
  EXPECT_EQ(card.hash().size(), 16u);
  EXPECT_EQ(card.hash(), Silicon(card).hash());
  for (int field = 0; field < 5; ++field) {
    Silicon other = card;
    if (field == 0) other.vendor = "AMD";
    if (field == 1) other.arch = "sm_90a";
    if (field == 2) other.multiprocessors = 114;
    if (field == 3) other.memory_bytes = 1001;
    if (field == 4) other.memory_clock_mhz = 0;
    EXPECT_NE(card.hash(), other.hash()) << field;
  }
  // Published: keys of tunings. A change of the hash would lose them all.
  EXPECT_EQ(card.hash(), "39873875fb0e2b20");
}

TEST(Facts, TheAddressNamesBackEndAndIndex) {
  Facts facts;
  facts.backend = "opencl";
  facts.index = 3;
  EXPECT_EQ(facts.address(), "opencl:3");
}

}  // namespace
}  // namespace furlong::device
