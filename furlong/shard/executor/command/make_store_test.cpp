#include "furlong/shard/executor/command/make_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "furlong/base/random.h"
#include "furlong/shard/executor/command/internal/items.h"
#include "furlong/shard/executor/command/internal/testing.h"

namespace furlong::shard::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandStore : public testing::CommandFixture {
 protected:
  Unit unit(const std::string& name) const { return *store_->unit(store_->find_unit(name)->value()); }
  std::variant<Command, InputItem> item(const Key& key) const { return *decode(*store_->raw_item(key)); }
};

TEST_F(CommandStore, AUnitOwnsItsCommandAndWhatItAloneReads) {
  write("shared", "s");
  write("own", "own text");
  make_store(line("a", "true", {"shared", "own"}, {"a.out"}) + line("b", "true", {"shared"}));
  EXPECT_EQ(store_->executor(), kExecutorName);
  ASSERT_EQ(store_->unit_count(), 3u);
  EXPECT_EQ(store_->unit(0)->name, kInputsUnit);
  const Unit inputs = unit("(inputs)"), a = unit("a"), b = unit("b");
  ASSERT_EQ(inputs.items.size(), 1u);
  EXPECT_EQ(std::get<InputItem>(item(inputs.items[0])), (InputItem{path("shared"), blake2b_256("s"), 1}));
  EXPECT_EQ(a.references, inputs.items);
  EXPECT_EQ(b.references, inputs.items);
  ASSERT_EQ(a.items.size(), 2u);
  const auto command = std::get<Command>(item(a.items[0]));
  EXPECT_EQ(command.name, "a");
  EXPECT_THAT(command.outputs, ElementsAre(path("a.out")));
  EXPECT_EQ(std::get<InputItem>(item(a.items[1])), (InputItem{path("own"), blake2b_256("own text"), 8}));
  EXPECT_EQ(b.items.size(), 1u);
}

TEST_F(CommandStore, CountsAreTold) {
  write("shared", "12345");
  write("own", "123");
  const auto summary = try_store(line("a", "true", {"shared", "own"}) + line("b", "true", {"shared"}));
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(summary->commands, 2u);
  EXPECT_EQ(summary->units, 3u);
  EXPECT_EQ(summary->items, 4u);
  EXPECT_EQ(summary->inputs, 2u);
  EXPECT_EQ(summary->input_bytes, 8u);
  EXPECT_EQ(summary->shared, 1u);
  EXPECT_TRUE(summary->without_headers.empty());
}

TEST_F(CommandStore, AChangedFileIsAnotherClaimOfItsReadersAlone) {
  write("x", "1");
  write("y", "1");
  const std::string list = line("a", "true", {"x"}) + line("b", "true", {"y"}) + line("c", "true", {"y"});
  make_store(list);
  const Key a = unit("a").key, b = unit("b").key;
  write("x", "2");
  make_store(list);
  EXPECT_NE(unit("a").key, a);
  EXPECT_EQ(unit("b").key, b);
  write("y", "2");
  make_store(list);
  EXPECT_NE(unit("b").key, b) << "through its reference";
}

TEST_F(CommandStore, EveryFieldIsPartOfTheUnit) {
  const std::set<std::string> lines{
      line("a", "true"),
      line("b", "true"),
      line("a", "false"),
      line("a", "true", {}, {"o"}),
      line("a", "true", {}, {}, {{"folder", "sub"}}),
      line("a", "true", {}, {}, {{"environment", {{"A", "1"}}}}),
      line("a", "true", {}, {}, {{"environment", {{"A", "2"}}}}),
      line("a", "true", {}, {}, {{"timeout_s", 3}}),
      line("a", "true", {}, {}, {{"any_address_space", true}}),
  };
  std::set<Key> keys;
  for (const std::string& text : lines) keys.insert(make_store(text)->unit(0)->key);
  EXPECT_EQ(keys.size(), lines.size());
}

TEST_F(CommandStore, AnInputThatIsNotThereIsNamed) {
  write("x", "1");
  const auto summary = try_store(line("a", "true", {"x"}) + line("b", "true", {"none"}));
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code(), Code::invalid);
  EXPECT_THAT(summary.error().text(),
              HasSubstr("list.jsonl:2: an input of 'b' cannot be read: " + path("none")));
  EXPECT_FALSE(system_files().exists(path("commands.store")));
  const auto folder = try_store(line("a", "true", {"."}));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), Code::invalid);
}

TEST_F(CommandStore, AListWithoutCommandsAndNoListAreErrors) {
  const auto empty = try_store("\n");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code(), Code::invalid);
  EXPECT_EQ(make_command_store(path("none"), path("s")).error().code(), Code::unavailable);
}

TEST_F(CommandStore, AStopLeavesNothing) {
  std::stop_source stop;
  stop.request_stop();
  write("x", "1");
  write("list.jsonl", line("a", "true", {"x"}));
  const auto summary = make_command_store(path("list.jsonl"), path("s.store"), {}, stop.get_token());
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code(), Code::timeout);
  EXPECT_FALSE(system_files().exists(path("s.store")));
}

TEST_F(CommandStore, ProgressIsToldToTheEnd) {
  write("list.jsonl", line("a", "true"));
  ProgressState last;
  ASSERT_TRUE(make_command_store(path("list.jsonl"), path("s.store"),
                                 [&](const ProgressState& state) { last = state; }));
  EXPECT_EQ(last.step, "store");
  EXPECT_EQ(last.done, 1u);
  EXPECT_EQ(last.total, 1u);
}

TEST_F(CommandStore, ItemsAreReadBackAndOthersRefused) {
  Command command;
  command.name = "n";
  command.argv = {"a", "b"};
  command.folder = "/f";
  command.environment = {{"A", "1"}};
  command.outputs = {"/o"};
  command.timeout_s = 2;
  command.any_address_space = true;
  const auto back = std::get<Command>(*decode(encode(command)));
  EXPECT_EQ(encode(back), encode(command));
  for (const char* text :
       {"", "{}", "[]", R"({"format":1})", R"({"format":1,"input":"x"})",
        R"({"format":1,"input":"x","blake2b":"zz","bytes":1})",
        R"({"format":1,"command":"x","argv":[],"folder":"/","outputs":[]})",
        R"({"format":1,"command":"x","argv":["a"],"folder":"/","outputs":[],"more":1})",
        R"({"format":1,"command":"x","argv":["a"],"folder":"/","outputs":[],"environment":{"A":1}})"}) {
    const auto item = decode(as_bytes(text));
    ASSERT_FALSE(item) << text;
    EXPECT_EQ(item.error().code(), Code::mismatch) << text;
  }
  EXPECT_EQ(decode(as_bytes(R"({"format":2,"command":"x"})")).error().code(), Code::incompatible);
}

// The claim of all commands, and of each set of them by name, whatever the order of the lines.
TEST_F(CommandStore, ClaimsDoNotDependOnTheOrderOfLines) {
  for (int i = 0; i < 5; ++i) write(fmt::format("in{}", i), std::to_string(i));
  Random random(11, "orders of lines");
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> lines;
    for (int i = 0; i < 6; ++i) {
      std::vector<std::string> inputs;
      for (int k = 0; k < 5; ++k)
        if (random.below(3) == 0) inputs.push_back(fmt::format("in{}", k));
      lines.push_back(line(fmt::format("u{}", i), "true", inputs, {fmt::format("out{}", i)}));
    }
    std::optional<Claim> whole, some;
    for (int order = 0; order < 4; ++order) {
      random.shuffle(std::span(lines));
      std::string text;
      for (const std::string& one : lines) text += one;
      make_store(text);
      const Claim claim = *make_claim(*store_, all());
      EXPECT_EQ(whole.value_or(claim), claim);
      whole = claim;
      const Claim pair = *make_claim(
          *store_, std::vector{store_->find_unit("u1")->value(), store_->find_unit("u4")->value()});
      EXPECT_EQ(some.value_or(pair), pair);
      some = pair;
    }
  }
}

}  // namespace
}  // namespace furlong::shard::command
