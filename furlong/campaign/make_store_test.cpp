// Stores: what they hold, and that the list's order is no part of it.
#include "furlong/campaign/make_store.h"

#include <gmock/gmock.h>

#include "furlong/campaign/internal/items.h"
#include "furlong/campaign/internal/testing.h"
#include "furlong/program/lottery/lottery.h"

namespace furlong::campaign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kThree;
using ::testing::StartsWith;

class CampaignStore : public testing::CampaignFixture {
 protected:
  Item item(const shard::Key& key) const {
    const auto bytes = store_->raw_item(key);
    if (!bytes) throw std::runtime_error(bytes.error().text());
    auto decoded = decode(*bytes);
    if (!decoded) throw std::runtime_error(decoded.error().text());
    return *std::move(decoded);
  }
  Error refused(std::string_view list) const {
    const auto summary = try_store(list);
    EXPECT_FALSE(summary);
    EXPECT_FALSE(system_files().exists(path("races.store")));
    return summary ? Error(Code::internal, "") : summary.error();
  }
  void write_lottery(const std::string& name, std::int64_t loads) const {
    program::lottery::Parameters parameters;
    parameters.epoch_seed = program::lottery::demonstration_seed();
    parameters.loads = loads;
    const auto pack = program::lottery::make_pack(parameters);
    ASSERT_TRUE(pack) << pack.error().text();
    ASSERT_TRUE(program::write_pack(*pack, path(name)));
  }
};

TEST_F(CampaignStore, AUnitIsAProgramAProblemAndADevice) {
  make_store(kThree);
  const auto list = units(all());
  ASSERT_EQ(list.size(), 4u);
  EXPECT_THAT(list[0].name, StartsWith("(program mix "));
  EXPECT_EQ(list[1].name, "mix n=1024 @ sim:0");
  EXPECT_EQ(list[2].name, "mix n=2048 @ sim:0");
  EXPECT_EQ(list[3].name, "mix n=4096 @ sim:0");
  ASSERT_EQ(list[0].items.size(), 1u);
  const Item pack = item(list[0].items[0]);
  ASSERT_TRUE(std::holds_alternative<PackItem>(pack));
  EXPECT_TRUE(std::get<PackItem>(pack).contents.files.contains("mix.toml"));
  for (std::size_t i = 1; i < 4; ++i) {
    ASSERT_EQ(list[i].items.size(), 1u);
    EXPECT_THAT(list[i].references, ElementsAre(list[0].items[0]));
    const Item race = item(list[i].items[0]);
    ASSERT_TRUE(std::holds_alternative<RaceItem>(race));
    EXPECT_EQ(std::get<RaceItem>(race).content, std::get<PackItem>(pack).content);
    EXPECT_EQ(std::get<RaceItem>(race).rules.budget_s, 10);
  }
}

TEST_F(CampaignStore, TheListsOrderIsNoPartOfIt) {
  write_mix("other.toml", "other");
  const std::string head = "format = 1\ndevices = [\"sim:0\", \"host:0\"]\n";
  const std::string mix = "[[program]]\nfile = \"mix.toml\"\nproblems = { n = [512, 4096, 64] }\n";
  const std::string other = "[[program]]\nfile = \"other.toml\"\n";
  make_store(head + mix + other);
  const Digest digest = store_->digest();
  const auto before = names();
  EXPECT_EQ(before.size(), 2 + 2 * 3 + 2u);
  make_store("format = 1\ndevices = [\"host\", \"sim\"]\n" + other +
             "[[program]]\nfile = \"mix.toml\"\ncases = [ { n = 64 }, { n = 4096 }, { n = 512 } ]\n");
  EXPECT_EQ(store_->digest(), digest);
  EXPECT_EQ(names(), before);
}

TEST_F(CampaignStore, ADefaultThatIsNamedIsTheSameRace) {
  const std::string head = "format = 1\ndevices = [\"sim:0\"]\n";
  make_store(head + "[[program]]\nfile = \"mix.toml\"\n");
  const Digest digest = store_->digest();
  const auto summary = try_store(head + "[[program]]\nfile = \"mix.toml\"\ncases = [ { n = 4096 }, {} ]\n");
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(summary->races, 1u);
  EXPECT_EQ(summary->repeated, 1u);
  EXPECT_EQ((*shard::Store::open(path("races.store")))->digest(), digest);
}

TEST_F(CampaignStore, OtherRulesMakeOtherRaces) {
  make_store(
      "format = 1\ndevices = [\"sim:0\"]\n[[program]]\nfile = \"mix.toml\"\n"
      "[[program]]\nfile = \"mix.toml\"\nrace = { seed = 2 }\n");
  EXPECT_THAT(names(),
              ElementsAre(StartsWith("(program mix "), "mix n=4096 @ sim:0", "mix n=4096 @ sim:0 #2"));
}

TEST_F(CampaignStore, LotteryClassesShareADataset) {
  write_lottery("wide", 32);
  write_lottery("deep", 64);
  make_store(
      "format = 1\ndevices = [\"sim:0\"]\n"
      "[[program]]\nfile = \"wide\"\nallow_unsigned = true\n"
      "[[program]]\nfile = \"deep\"\nallow_unsigned = true\n");
  const auto list = units(all());
  ASSERT_EQ(list.size(), 5u);
  EXPECT_THAT(list[0].name, StartsWith("(dataset "));
  const Item dataset = item(list[0].items[0]);
  ASSERT_TRUE(std::holds_alternative<DatasetItem>(dataset));
  EXPECT_GT(std::get<DatasetItem>(dataset).bytes, 0u);
  for (std::size_t i = 3; i < 5; ++i) {
    EXPECT_EQ(list[i].references.size(), 2u);
    EXPECT_THAT(list[i].references, ::testing::Contains(list[0].items[0]));
  }
}

TEST_F(CampaignStore, APackWithoutASignatureIsRefusedUnlessAllowed) {
  write_lottery("pack", 32);
  const Error error = refused("format = 1\ndevices = [\"sim:0\"]\n[[program]]\nfile = \"pack\"\n");
  EXPECT_EQ(error.code(), Code::denied);
  EXPECT_THAT(error.text(), HasSubstr("races.toml:4:8: the pack"));
  EXPECT_THAT(error.text(), HasSubstr("allow_unsigned = true"));
}

TEST_F(CampaignStore, ASignatureIsNoPartOfTheProgram) {
  write_lottery("pack", 32);
  const std::string list =
      "format = 1\ndevices = [\"sim:0\"]\n[[program]]\nfile = \"pack\"\nallow_unsigned = true\n";
  make_store(list);
  const Digest digest = store_->digest();
  ASSERT_TRUE(program::sign_pack(path("pack"), key_));
  make_store(list);
  EXPECT_EQ(store_->digest(), digest);
}

TEST_F(CampaignStore, ErrorsNameTheListsLine) {
  const std::string head = "format = 1\ndevices = [\"sim:0\"]\n[[program]]\n";
  const Error absent = refused(head + "file = \"none.toml\"\n");
  EXPECT_EQ(absent.code(), Code::invalid);
  EXPECT_THAT(absent.text(), HasSubstr("races.toml:4:8: "));
  EXPECT_THAT(absent.text(), HasSubstr("none.toml"));
  const Error slip = refused(head + "file = \"mix.toml\"\nproblems = { m = 3 }\n");
  EXPECT_EQ(slip.code(), Code::invalid);
  EXPECT_THAT(slip.text(), HasSubstr("races.toml:4:8: "));
  EXPECT_THAT(slip.text(), HasSubstr("'m'"));
  write("bad.toml", "format = 1\n[program]\nnam = \"x\"\n");
  const Error bad = refused(head + "file = \"bad.toml\"\n");
  EXPECT_EQ(bad.code(), Code::invalid);
  EXPECT_THAT(bad.text(), HasSubstr("races.toml:4:8: "));
  EXPECT_THAT(bad.text(), HasSubstr("bad.toml:3"));
  std::filesystem::create_directory(path("folder"));
  const Error folder = refused(head + "file = \"folder\"\n");
  EXPECT_THAT(folder.text(), HasSubstr("this folder is no pack"));
}

TEST_F(CampaignStore, StoppedItLeavesNothing) {
  write("races.toml", kThree);
  std::stop_source stop;
  stop.request_stop();
  const auto summary = make_campaign_store(path("races.toml"), path("races.store"), {}, stop.get_token());
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code(), Code::timeout);
  EXPECT_FALSE(system_files().exists(path("races.store")));
}

TEST(CampaignItems, AreReadAsTheyWereWritten) {
  RaceItem race{"mix",
                blake2b_256(std::string_view("a")),
                blake2b_256(std::string_view("b")),
                {{"n", lattice::Value(3)},
                 {"x", lattice::Value(2.5)},
                 {"f", lattice::Value(true)},
                 {"w", lattice::Value("word")}},
                "host:0",
                {"base,u2", {"HALF"}, 3, 1, 0.25, 9}};
  const auto again = decode(encode(race));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(std::get<RaceItem>(*again), race);
  PackItem pack;
  pack.contents.files = {{"a", std::string("\0\n{", 3)}, {"b/c", ""}, {"d", "text"}};
  const auto unpacked = decode(encode(pack));
  ASSERT_TRUE(unpacked) << unpacked.error().text();
  EXPECT_EQ(std::get<PackItem>(*unpacked).contents.files, pack.contents.files);
}

TEST(CampaignItems, EveryTruncationIsRefused) {
  PackItem pack;
  pack.contents.files = {{"a", "some"}, {"b", "text"}};
  for (const Bytes& whole : {encode(pack), encode(DatasetItem{"lottery", {}, 12}), encode(RaceItem{})})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto item = decode(ByteView(whole).first(size));
      ASSERT_FALSE(item) << size;
      EXPECT_EQ(item.error().code(), Code::mismatch) << size;
    }
  Bytes longer = encode(pack);
  longer.push_back('x');
  EXPECT_EQ(decode(longer).error().code(), Code::mismatch);
}

TEST(CampaignItems, AnotherFormatIsIncompatible) {
  const auto item = decode(as_bytes(R"({"format":2,"race":"x"})"));
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().code(), Code::incompatible);
  EXPECT_THAT(item.error().text(), HasSubstr("of format 2, this program reads 1"));
}

}  // namespace
}  // namespace furlong::campaign
