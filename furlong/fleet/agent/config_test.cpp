#include "furlong/fleet/agent/config.h"

#include <gmock/gmock.h>

#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/status.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

const std::string least = "format = 1\ndata = \"d\"\ndevices = \"all\"\n";
const std::string schedule = "[schedule]\nseed = \"s\"\n";

std::string error_of(const std::string& text) {
  const auto config = parse_agent_config(text, "a.toml");
  return config ? "" : config.error().text();
}

TEST(AgentConfig, DefaultsAndAllKeys) {
  const auto config = parse_agent_config(least + schedule, "a.toml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->schedule.epoch_s, 3600);
  EXPECT_EQ(config->schedule.lead, 600);
  EXPECT_FALSE(config->hub);
  const auto short_epoch = parse_agent_config(least + schedule + "epoch_s = 20\n", "a.toml");
  EXPECT_EQ(short_epoch->schedule.lead, 10) << "at most half of it";
}

TEST(AgentConfig, FaultsNameTheirPlace) {
  EXPECT_EQ(error_of(least + schedule), "");
  EXPECT_THAT(error_of("data = \"d\"\n"), HasSubstr("format: missing"));
  EXPECT_THAT(error_of("format = 2\n"), HasSubstr("found format 2, expected 1"));
  EXPECT_THAT(error_of("format = \"1\"\n"),
              HasSubstr("a.toml:1:10: format: an integer is wanted, not a string"));
  EXPECT_THAT(error_of(least), HasSubstr("[schedule] is missing"));
  EXPECT_THAT(error_of(least + "dater = 1\n" + schedule),
              HasSubstr("a.toml:4:1: the configuration has no key 'dater'"));
  EXPECT_THAT(error_of("format = 1\ndata = \"d\"\n" + schedule), HasSubstr("no device"));
  EXPECT_THAT(error_of(least + schedule + "[work]\ntarget = \"12\"\n"),
              HasSubstr("a.toml:7:10: target: 16 hexadecimal"));
  EXPECT_THAT(error_of(least + schedule + "[work]\ntarget = \"0000000000000000\"\n"),
              HasSubstr("under a target of 0"));
  EXPECT_THAT(error_of(least + schedule +
                       "[work]\nnonce_first = \"ffffffffffffffff\"\nnonce_count = \"0000000000000002\"\n"),
              HasSubstr("past 2^64"));
  EXPECT_THAT(error_of(least + "[[device]]\naddress = \"cuda:0\"\n" + schedule), HasSubstr("one of the two"));
  EXPECT_THAT(
      error_of(
          "format = 1\ndata = \"d\"\n[[device]]\naddress = \"cuda:0\"\n[[device]]\naddress = \"cuda:0\"\n" +
          schedule),
      HasSubstr("stands here twice"));
  EXPECT_THAT(error_of(least + "[schedule]\nkind = \"command\"\n"), HasSubstr("needs the command"));
  EXPECT_THAT(error_of(least + schedule + "[finds]\n"), HasSubstr("needs a command"));
  EXPECT_THAT(error_of(least + schedule + "[work]\nrace_budget_s = 541.0\n"),
              HasSubstr("race_budget_s: 541 is not between"));
  EXPECT_THAT(error_of(least + schedule + "lead = 5\n"), HasSubstr("[schedule] has no key 'lead'"));
}

TEST(AgentConfig, TheManifestsTable) {
  const std::string hub = "[hub]\nurl = \"https://hub\"\n";
  const auto config = parse_agent_config(least + schedule + hub + "[manifest]\n", "a.toml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->manifest->root, "root.json");
  EXPECT_EQ(config->manifest->channel, "stable");
  EXPECT_FALSE(config->manifest->canary);
  EXPECT_FALSE(parse_agent_config(least + schedule + hub, "a.toml")->manifest) << "nothing is fetched";
  EXPECT_THAT(error_of(least + schedule + "[manifest]\n"), HasSubstr("needs a [hub]"));
  EXPECT_THAT(error_of(least + schedule + hub + "[manifest]\ncanary = 1\n"), HasSubstr("canary"));
  EXPECT_THAT(error_of(least + schedule + hub + "[manifest]\nroots = \"x\"\n"),
              HasSubstr("[manifest] has no key 'roots'"));
}

TEST(HubUrl, PlainHttpIsForThisMachine) {
  for (const char* good : {"https://hub.example", "https://hub:8443/base", "http://127.0.0.1:80",
                           "http://localhost", "http://[::1]:9"})
    EXPECT_TRUE(check_hub_url(good)) << good;
  for (const char* bad :
       {"", "hub.example", "http://hub.example", "http://127.0.0.1.evil.example", "https://",
        "https://u:p@hub", "https://hub/?x", "ftp://hub", "http://localhost@evil.example"})
    EXPECT_FALSE(check_hub_url(bad)) << bad;
}

TEST(WorkerCommand, HoldsWhatWasConfigured) {
  auto config = *parse_agent_config(
      "format = 1\ndata = \"/d\"\nfurlong = \"/f\"\n[[device]]\naddress = \"cuda:1\"\narguments = "
      "[\"--chunk-ms\", \"9\"]\n" +
          schedule + "[work]\nrace = \"u2,u8\"\nmax_pause_ms = 100\nclassic = true\n",
      "a.toml");
  const DeviceInfo device{.address = "cuda:1", .label = "L", .slot = "s"};
  EXPECT_THAT(worker_command(config, device),
              testing::ElementsAre("/f", "worker", "--device", "cuda:1", "--serve", "--records",
                                   "/d/records-s.jsonl", "--packs", "/d/packs", "--allow-unsigned", "--race",
                                   "u2,u8", "--max-pause-ms", "100", "--classic", "--chunk-ms", "9"));
  EXPECT_EQ(choose_devices(config, {device})->size(), 1u);
  EXPECT_FALSE(choose_devices(config, {}));
  config.devices.clear();
  config.all_devices = true;
  EXPECT_FALSE(
      choose_devices(config, {{.address = "host:0", .label = "", .slot = "h", .is_host_cpu = true}}));
}

TEST(AgentStatus, ThereAndBack) {
  AgentStatus status{.version = "1", .machine = "m", .pid = 5, .started = "a", .written = "b"};
  status.current = record::Pair{.epoch = "e", .day = 3};
  status.next_in_s = 12.5;
  WorkerView view;
  view.device = {.address = "cuda:0", .label = "L", .slot = "s"};
  view.race_gain_pct = -2.5;
  view.mhs = 117.5;
  view.crashes = 3;
  view.culprit = "exit status 7\n\x1b[2J";
  status.devices = {view};
  status.problems = {"p"};
  status.hub.state = "retrying";
  status.hub.enrolled = true;
  const auto again = parse_agent_status(print(status), "status.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(print(*again), print(status));
  EXPECT_EQ(again->devices, status.devices);
  EXPECT_TRUE(again->hub.enrolled);
  EXPECT_THAT(status_text(status), HasSubstr("-2.50%"));
  EXPECT_THAT(status_text(status), testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(parse_agent_status("{\"schema\":2}", "s").error().code(), Code::incompatible);
}

}  // namespace
}  // namespace furlong::fleet
