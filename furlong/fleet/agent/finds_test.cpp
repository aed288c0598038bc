#include "furlong/fleet/agent/finds.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"
#include "furlong/fleet/agent/internal/testing.h"

namespace furlong::fleet {
namespace {

using testing::ElementsAre;

class FindsTest : public testing::Test {
 protected:
  FindsTest() {
    spool = std::move(*Spool::open(folder.path() / "spool.sqlite"));
    processes.answer = [this](const ProcessRequest& request) {
      const auto nonce = static_cast<int>(request.input.at(request.input.find("nonce") + 23) - '0');
      given.push_back(nonce);
      return nonce == bad ? 1 : 0;
    };
  }
  void find(std::uint64_t nonce) {
    EXPECT_TRUE(*spool->add_find(
        {.pair = {.epoch = "e", .day = 1}, .slot = "s", .nonce = nonce, .device = "d", .at = "now"}));
  }
  FindsGiver giver() {
    return {{"take"},
            processes,
            *spool,
            clock,
            problems,
            [this](const std::string& what, const std::string& how) {
              told.push_back(what + ": " + how); }};
  }
  TemporaryFolder folder = std::move(*TemporaryFolder::make("finds"));
  FakeClock clock;
  Problems problems{clock};
  std::unique_ptr<Spool> spool;
  testing_support::AnsweringProcesses processes;
  std::vector<int> given;
  std::vector<std::string> told;
  int bad = -1;
};

TEST_F(FindsTest, OneThatIsRefusedHoldsUpNoOther) {
  bad = 1;
  for (const std::uint64_t nonce : {1, 2, 3}) find(nonce);
  FindsGiver one = giver();
  for (int i = 0; i < 20; ++i) {
    one.step({});
    clock.advance_ns(1'000'000'000);
  }
  EXPECT_EQ(spool->counts()->finds_waiting, 1);
  for (int i = 0; i < 3600; ++i) {
    one.step({});
    clock.advance_ns(1'000'000'000);
  }
  given.clear();
  find(4);
  one.step({});
  EXPECT_EQ(given.front(), 4) << "whatever the other waits for";
}

TEST_F(FindsTest, ParkedAtLastUntilTheNextStart) {
  bad = 1;
  find(1);
  FindsGiver one = giver();
  for (int i = 0; i < 24 * 120; ++i) {
    one.step({});
    clock.advance_ns(30'000'000'000);
  }
  EXPECT_EQ(given.size(), static_cast<std::size_t>(FindsGiver::most_tries));
  EXPECT_THAT(told.back(), testing::HasSubstr("waits for the agent's next start: {"));
  bad = -1;
  FindsGiver again = giver();
  again.step({});
  EXPECT_EQ(spool->counts()->finds_waiting, 0);
}

}  // namespace
}  // namespace furlong::fleet
