#include "furlong/base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace furlong {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::invalid, "{} is odd", value);
  return value / 2;
}
Result<std::string> quarter(int value) {
  FURLONG_TRY(const int once, half(value));
  FURLONG_TRY(const int twice, half(once));
  return std::to_string(twice);
}
Status must_be_even(int value) {
  FURLONG_CHECK_DOING(half(value), "checking {}", value);
  return {};
}
Status outer(int value) {
  FURLONG_CHECK_DOING(must_be_even(value), "outer");
  return {};
}

TEST(Error, TextHasContextsOutermostFirst) {
  EXPECT_EQ(fail(Code::corrupt, "byte {}", 7).text(), "byte 7");
  const Error error = Error(Code::denied, "no").with("inner").with("outer");
  EXPECT_EQ(error.text(), "outer: inner: no");
  EXPECT_EQ(error.code(), Code::denied);
  EXPECT_EQ(error.message(), "no");
  EXPECT_EQ(error.context(), (std::vector<std::string>{"inner", "outer"}));
}

TEST(Error, EveryCodeHasItsOwnWord) {
  std::set<std::string_view> words;
  for (int code = 0; code <= static_cast<int>(Code::internal); ++code)
    words.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(words.size(), 9u);
  EXPECT_TRUE(words.contains("exhausted"));
}

TEST(Result, TryPassesValuesAndErrors) {
  EXPECT_EQ(*quarter(12), "3");
  const auto odd = quarter(6);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().text(), "3 is odd");
}

TEST(Result, CheckAddsWhatWasBeingDone) {
  EXPECT_TRUE(outer(2));
  const Status failed = outer(5);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "outer: checking 5: 5 is odd");
  EXPECT_EQ(failed.error().code(), Code::invalid);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(4); };
  const auto use = [&]() -> Result<int> {
    FURLONG_TRY(const auto owned, make());
    return *owned;
  };
  EXPECT_EQ(*use(), 4);
}

}  // namespace
}  // namespace furlong
