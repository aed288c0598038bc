#include "furlong/kernel/internal/choice.h"

#include <gtest/gtest.h>

#include "furlong/base/text.h"

namespace furlong::kernel {
namespace {

Choice example() {
  Choice choice{.key = {{"furlong", "0.1.0"}, {"problem", "n=4096,k=4096"}},
                .variant = "imma-w4",
                .text = "00ff",
                .why = "imma-w4 beats base by \"12%\"\n",
                .decided = false,
                .budget_s = 12.5,
                .race = {}};
  choice.race.ts = "2026-03-01T12:00:00Z";
  choice.race.card = "NVIDIA_H200";
  choice.race.backend = "cuda";
  choice.race.program = "gemv";
  choice.race.variants = {{.name = "base", .rate = 1.5, .detail = {}}};
  choice.race.verdict = record::Verdict::out_of_budget;
  return choice;
}

TEST(KernelChoice, IsReadAsItWasWritten) {
  const auto read = parse_choice(print_choice(example()), "it");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, example());
}

TEST(KernelChoice, EveryTornFileIsCorrupt) {
  const std::string text = print_choice(example());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    const auto read = parse_choice(text.substr(0, size), "torn.json");
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), Code::corrupt);
    EXPECT_NE(read.error().text().find("torn.json"), std::string::npos) << read.error().text();
  }
}

TEST(KernelChoice, AnotherSchemaIsIncompatible) {
  const std::string text =
      replace_all(print_choice(example()), "\"schema\": 1,\n  \"kind\"", "\"schema\": 9,\n  \"kind\"");
  const auto read = parse_choice(text, "new.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::incompatible);
  EXPECT_NE(read.error().text().find("of schema 9, expected 'raced kernel' of 1"), std::string::npos)
      << read.error().text();
}

TEST(KernelChoice, KeysAreTheSameOnlyAsAWhole) {
  const ChoiceKey key = {{"a", "bc"}, {"d", "e"}};
  EXPECT_EQ(difference(key, key), "");
  EXPECT_EQ(difference(key, {{"a", "bc"}, {"d", "f"}}), "d is e and was f");
  EXPECT_EQ(difference(key, {{"a", "bc"}}), "it has no d");
  EXPECT_EQ(difference({{"a", "bc"}}, key), "d is not known");
  EXPECT_EQ(digest_of(key), digest_of(ChoiceKey(key)));
  EXPECT_NE(digest_of(key), digest_of({{"ab", "c"}, {"d", "e"}}));
  EXPECT_NE(digest_of(key), digest_of({{"a", "bcd"}, {"", "e"}}));
}

}  // namespace
}  // namespace furlong::kernel
