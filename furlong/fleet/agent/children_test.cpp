#include "furlong/fleet/agent/children.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"
#include "furlong/fleet/agent/internal/testing.h"
#include "furlong/fleet/agent/planner.h"

namespace furlong::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceInfo device(const std::string& address, const std::string& uuid, const std::string& silicon = "s") {
  return {.address = address, .label = "L", .slot = address, .uuid = uuid, .silicon = silicon};
}

std::vector<std::string> chosen(const std::vector<DeviceInfo>& there) {
  AgentConfig config;
  config.all_devices = true;
  std::vector<std::string> addresses;
  const auto devices = choose_devices(config, there);
  for (const DeviceInfo& each : *devices) addresses.push_back(each.address);
  return addresses;
}

TEST(ChooseDevices, OneWorkerACard) {
  EXPECT_THAT(chosen({device("opencl:0", "00112233445566778899aabbccddeeff"),
                      device("cuda:0", "GPU-00112233-4455-6677-8899-AABBCCDDEEFF"),
                      device("opencl:1", "ffffffffffffffffffffffffffffffff")}),
              ElementsAre("cuda:0", "opencl:1"))
      << "by UUID";
  EXPECT_THAT(chosen({device("cuda:0", "GPU-1"), device("cuda:1", "GPU-2"), device("opencl:0", ""),
                      device("opencl:1", ""), device("opencl:2", "")}),
              ElementsAre("cuda:0", "cuda:1", "opencl:2"))
      << "by label and silicon, in order";
  EXPECT_THAT(chosen({device("opencl:0", ""), device("opencl:1", "")}), ElementsAre("opencl:0", "opencl:1"))
      << "alike, but two";
  EXPECT_THAT(chosen({device("cuda:0", "", ""), device("opencl:0", "", "")}),
              ElementsAre("cuda:0", "opencl:0"))
      << "nothing is known of them";
}

TEST(ChooseDevices, TwoAddressesOfOneCardAreRefused) {
  AgentConfig config;
  config.devices = {{.address = "cuda:0"}, {.address = "opencl:0"}};
  const auto both = choose_devices(config, {device("cuda:0", "GPU-0a-0b"), device("opencl:0", "0a0b")});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().text(), HasSubstr("'cuda:0' and 'opencl:0' are one card"));
}

class PacksTest : public testing::Test {
 protected:
  PacksTest() {
    config.data = "/data";
    config.furlong = "furlong";
    config.folder = "/etc";
    turn.pack = "pack";
    EXPECT_TRUE(files.write_atomic("/etc/pack/pack.toml", "one"));
    EXPECT_TRUE(files.write_atomic("/etc/pack/texts/base", "text"));
    processes.answer = [this](const ProcessRequest& request) {
      if (request.argv.at(2) != "verify") return status;
      verified.push_back(*files.read(request.argv.at(3) + "/pack.toml"));
      EXPECT_EQ(request.argv.at(4), "--signature");
      return status;
    };
  }
  AgentConfig config;
  FakeFiles files;
  testing_support::AnsweringProcesses processes;
  Packs packs{config, processes, files};
  Turn turn{.seed = std::string(64, 'a'), .day = 3, .pack = {}};
  int status = 0;
  std::vector<std::string> verified;
};

TEST_F(PacksTest, AForeignPackIsVerifiedAndUsedAsItWasCopied) {
  const auto first = packs.ensure(turn, {});
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(*first, "/data/packs/aaaaaaaaaaaaaaaa-3");
  EXPECT_EQ(*files.read(*first / "texts/base"), "text");
  EXPECT_TRUE(files.write_atomic("/etc/pack/pack.toml", "two"));  // after the check
  ASSERT_TRUE(packs.ensure(turn, {}));
  EXPECT_EQ(*files.read(*first / "pack.toml"), "one");
  Turn later = turn;
  later.day = 4;  // the same path again, for another program
  ASSERT_TRUE(packs.ensure(later, {}));
  EXPECT_THAT(verified, ElementsAre("one", "two"));
  status = 1;
  later.day = 5;
  EXPECT_EQ(packs.ensure(later, {}).error().code(), Code::denied);
  EXPECT_FALSE(files.exists("/data/packs/aaaaaaaaaaaaaaaa-5")) << "nothing of it is left";
}

TEST_F(PacksTest, OnlyPacksOfPairsAreRemoved) {
  for (const char* name : {"aaaaaaaaaaaaaaaa-3", "aaaaaaaaaaaaaaaa-4", "notes", "aaaaaaaaaaaaaaaa-x"})
    EXPECT_TRUE(files.write_atomic(std::filesystem::path("/data/packs") / name / "f", "x"));
  EXPECT_TRUE(packs.keep_only({{.epoch = std::string(16, 'a'), .day = 4}}));
  EXPECT_THAT(*files.list("/data/packs"),
              ElementsAre("aaaaaaaaaaaaaaaa-4/", "aaaaaaaaaaaaaaaa-x/", "notes/"));
}

TEST_F(PacksTest, ThePlanKeepsItsNextProgramAndEachPackItsOwnBackOff) {
  FakeClock clock;
  Problems problems(clock);
  std::vector<std::string> told;
  Planner planner(packs, clock, problems,
                  [&](const std::string& what, const std::string&) { told.push_back(what); });
  Due due{.current = turn, .next = turn};
  due.current->pack = due.next->pack = "";
  due.next->day = 4;
  std::vector<WorkerPlan> plans;
  const auto look = [&] {
    plans.clear();
    planner.turn(due, [&](const WorkerPlan& plan) { plans.push_back(plan); }, {});
  };
  look();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_TRUE(plans[0].current && !plans[0].next && plans[1].next) << "the current one does not wait";
  for (const char* name : {"3", "4"})
    EXPECT_TRUE(files.write_atomic("/data/packs/aaaaaaaaaaaaaaaa-" + std::string(name) + "/f", "x"));
  look();
  EXPECT_EQ(plans[0], plans[1]) << "at no moment without it";
  due.next->day = 5;
  look();
  EXPECT_FALSE(plans[0].next) << "another one";
  EXPECT_TRUE(planner.complete());

  const auto makes = [&](const std::string& day) {
    return std::count_if(processes.requests.begin(), processes.requests.end(),
                         [&](const ProcessRequest& each) { return each.argv.at(7) == day; });
  };
  status = 1;
  due.next->day = 6;
  for (int i = 0; i < 5; ++i) look();
  EXPECT_EQ(makes("6"), 1) << "it waits";
  EXPECT_FALSE(planner.complete());
  status = 0;
  due.current->day = 7;
  look();
  EXPECT_TRUE(plans[0].current) << "which is no reason for the other to wait";
  clock.advance_ns(3'000'000'000);
  look();
  EXPECT_TRUE(planner.complete());
  EXPECT_THAT(told, ElementsAre("no pack for the next program"));
  EXPECT_TRUE(problems.texts().empty());
}

}  // namespace
}  // namespace furlong::fleet
