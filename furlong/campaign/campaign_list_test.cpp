// The list: what it says, and every way in which it is wrong, by line.
#include "furlong/campaign/campaign_list.h"

#include <gmock/gmock.h>

#include "furlong/campaign/internal/items.h"

namespace furlong::campaign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::vector<ListedProgram>> parse(std::string_view text) {
  return parse_campaign(text, "/lists", "races.toml");
}

std::vector<std::string> texts(const std::vector<Problem>& problems) {
  std::vector<std::string> list;
  for (const Problem& problem : problems) list.push_back(problem_text(problem));
  return list;
}

TEST(CampaignList, CrossesTheValuesOfParameters) {
  const auto list = parse(R"(format = 1
devices = ["host", "opencl:1"]
[race]
budget_s = 5
seed = 3
[[program]]
file = "a.toml"
problems = { n = [1, 2], m = 7, mode = ["fast", "slow"] }
[[program]]
file = "/packs/b"
allow_unsigned = true
devices = ["silicon:0123456789abcdef"]
race = { budget_s = 9.5, variants = "all", allow_lossy = ["B", "A", "B"] }
cases = [ { n = 1 }, { n = 2, flag = true }, {} ]
)");
  ASSERT_TRUE(list) << list.error().text();
  ASSERT_EQ(list->size(), 2u);
  const ListedProgram& a = list->at(0);
  EXPECT_EQ(a.file, "/lists/a.toml");
  EXPECT_EQ(a.where, "races.toml:7:8");
  EXPECT_THAT(a.devices, ElementsAre("host:0", "opencl:1"));
  EXPECT_THAT(texts(a.problems), ElementsAre("n=1,m=7,mode=fast", "n=1,m=7,mode=slow", "n=2,m=7,mode=fast",
                                             "n=2,m=7,mode=slow"));
  EXPECT_EQ(a.rules.budget_s, 5);
  EXPECT_EQ(a.rules.seed, 3u);
  EXPECT_EQ(a.rules.variants, "catalogue");
  EXPECT_FALSE(a.allow_unsigned);
  const ListedProgram& b = list->at(1);
  EXPECT_EQ(b.file, "/packs/b");
  EXPECT_TRUE(b.allow_unsigned);
  EXPECT_THAT(b.devices, ElementsAre("silicon:0123456789abcdef"));
  EXPECT_THAT(texts(b.problems), ElementsAre("n=1", "n=2,flag=true", ""));
  EXPECT_EQ(b.rules.budget_s, 9.5);
  EXPECT_EQ(b.rules.seed, 3u);
  EXPECT_THAT(b.rules.allow_lossy, ElementsAre("A", "B"));
}

TEST(CampaignList, WithoutProblemsThereIsTheProgramsOwn) {
  const auto list = parse("format = 1\n[[program]]\nfile = \"a.toml\"\ndevices = [\"host\"]\n");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_THAT(texts(list->at(0).problems), ElementsAre(""));
}

TEST(CampaignList, ReadsJsonLinesAsTheSame) {
  const auto list = parse(
      "{\"file\":\"a.toml\",\"devices\":[\"sim:0\"],\"problems\":{\"n\":[1,2.5],\"s\":\"x\"}}\n\n"
      "{\"format\":1,\"file\":\"b.toml\",\"devices\":[\"sim\"],\"cases\":[{\"f\":false}],\"race\":{\"window_"
      "ms\":1}}\n");
  ASSERT_TRUE(list) << list.error().text();
  ASSERT_EQ(list->size(), 2u);
  EXPECT_THAT(texts(list->at(0).problems), ElementsAre("n=1,s=x", "n=2.5,s=x"));
  EXPECT_EQ(list->at(1).where, "races.toml:3:1");
  EXPECT_EQ(list->at(1).rules.window_ms, 1);
  EXPECT_THAT(list->at(1).devices, ElementsAre("sim:0"));
}

struct Wrong {
  std::string text, message;
};

TEST(CampaignList, NamesTheLineOfWhatIsWrong) {
  const std::string head = "format = 1\ndevices = [\"host\"]\n";
  const std::string program = head + "[[program]]\nfile = \"a.toml\"\n";
  const std::vector<Wrong> cases{
      {"", "races.toml: the key 'format' is missing: format = 1"},
      {"format = \"1\"", "races.toml:1:10: 'format' is a number, not a string"},
      {head, "races.toml: there is no [[program]]"},
      {head + "program = 3", "races.toml: there is no [[program]]"},
      {head + "budget_s = 3", "races.toml:3:1: unknown key 'budget_s'"},
      {head + "[race]\nbudgets_s = 3", "races.toml:4:1: unknown key 'budgets_s', did you mean 'budget_s'?"},
      {head + "[race]\nbudget_s = 541", "races.toml:4:12: 'budget_s' is 0.1 to 540, not 541"},
      {head + "[race]\nbudget_s = \"5\"", "races.toml:4:12: 'budget_s' is a number, not a string"},
      {head + "[race]\nseed = -1", "races.toml:4:8: 'seed' is a number from 0 on"},
      {head + "[race]\nvariants = [\"u2\"]", "races.toml:4:12: 'variants' is a string"},
      {head + "[race]\nallow_lossy = [1]", "races.toml:4:16: 'allow_lossy' is a list of strings"},
      {head + "[[program]]\nproblems = {}", "races.toml:3:1: the key 'file' is missing"},
      {head + "[[program]]\nfile = 3", "races.toml:4:8: 'file' is the path"},
      {head + "[[program]]\nfile = \"\"", "races.toml:4:8: 'file' is the path"},
      {"format = 1\n[[program]]\nfile = \"a\"", "races.toml:2:1: no device to race on"},
      {"format = 1\ndevices = []\n", "races.toml:2:11: 'devices' is empty"},
      {"format = 1\ndevices = \"host\"\n", "races.toml:2:11: 'devices' is a list of strings"},
      {"format = 1\ndevices = [\"auto\"]\n", "races.toml:2:11: 'auto' names no device: write \"opencl:0\""},
      {program + "problems = [1]", "races.toml:5:12: 'problems' is a table of lists"},
      {program + "problems = { n = [] }", "races.toml:5:18: 'n' has no value"},
      {program + "problems = { n = [[1]] }", "races.toml:5:19: 'n' is a number, a string or true or false"},
      {program + "cases = []", "races.toml:5:9: 'cases' is a list of tables"},
      {program + "cases = [3]", "races.toml:5:10: 'cases' is a list of tables"},
      {program + "problems = { n = 1 }\ncases = [ { n = 1 } ]", "races.toml:6:9: give 'problems'"},
      {program + "allow_unsigned = 1", "races.toml:5:18: 'allow_unsigned' is true or false"},
      {"{\"file\":\"a\",\"devices\":[\"host\"]}\n{\"fil\":1}", "races.toml:2:1: unknown key 'fil'"},
      {"{\"file\":\"a\",\"devices\":[\"host\"]}\n{\"file\":", "line 2 of races.toml"},
      {"{\"file\":\"a\",\"devices\":null}", "line 1 of races.toml: null stands for nothing here"},
      {"{\"file\":\"a\",\"devices\":[\"h\"],\"cases\":[{\"n\":18446744073709551615}]}",
       "is beyond 64-bit integers"},
      {"{\"file\":\"a\"}", "races.toml:1:1: no device to race on: devices = [\"host:0\"] here"}};
  for (const Wrong& wrong : cases) {
    const auto list = parse(wrong.text);
    ASSERT_FALSE(list) << wrong.text;
    EXPECT_EQ(list.error().code(), Code::invalid) << wrong.text;
    EXPECT_THAT(list.error().text(), HasSubstr(wrong.message)) << wrong.text;
  }
}

TEST(CampaignList, AnotherFormatIsIncompatible) {
  for (const std::string text : {"format = 2\n", "{\"format\":2,\"file\":\"a\",\"devices\":[\"host\"]}"}) {
    const auto list = parse(text);
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().code(), Code::incompatible);
    EXPECT_THAT(list.error().text(), HasSubstr("found format 2 of a campaign, expected 1"));
  }
}

TEST(CampaignList, TooManyProblemsAreASlip) {
  std::string values = "0";
  for (int i = 1; i < 1001; ++i) values += fmt::format(", {}", i);
  const auto list = parse(fmt::format(
      "format = 1\ndevices = [\"host\"]\n[[program]]\nfile = \"a\"\nproblems = {{ n = [{}], m = [{}] }}\n",
      values, values));
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().text(), HasSubstr("more than 1000000 problems of one program"));
}

TEST(CampaignList, DevicesAreNamedInOneWay) {
  EXPECT_EQ(device_name("host").value_or(""), "host:0");
  EXPECT_EQ(device_name("opencl:03").value_or(""), "opencl:3");
  EXPECT_EQ(device_name("silicon:0123456789abcdef").value_or(""), "silicon:0123456789abcdef");
  EXPECT_EQ(silicon_of("silicon:0123456789abcdef"), "0123456789abcdef");
  EXPECT_EQ(silicon_of("host:0"), "");
  for (const char* wrong : {"", "auto", ":0", "host:", "host:x", "Host", "silicon:12", "silicon", "silicon:0",
                            "silicon:0123456789ABCDEF", "opencl:-1", "opencl:99999999"})
    EXPECT_FALSE(device_name(wrong)) << wrong;
}

}  // namespace
}  // namespace furlong::campaign
