#include "furlong/worker/back_line.h"

#include <gtest/gtest.h>

#include "furlong/base/random.h"

namespace furlong::worker {
namespace {

TEST(BackLine, ComesBackWhateverNamesHold) {
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    std::string name = "n";
    for (std::uint64_t k = random.below(12); k > 0; --k) name += static_cast<char>(1 + random.below(127));
    const record::Pair pair{"066ec2c7cdf6f321", static_cast<std::int64_t>(random.below(1000))};
    const record::JobCommand job{pair, name, random.next(), random.next(), random.next()};
    for (const BackLine& line : {BackLine(BeginLine{job}), BackLine(RefusedLine{job}),
                                 BackLine(AtLine{random.next(), random.next(), random.next()}),
                                 BackLine(TakeLine{pair, 2, 20.5, name}), BackLine(DropLine{}),
                                 BackLine(PreparesLine{random.next()}), BackLine(EndedLine{pair}),
                                 BackLine(FallenLine{pair, name, name})}) {
      const std::string text = print(line);
      EXPECT_TRUE(is_back_line(text));
      EXPECT_EQ(text.find('\n'), std::string::npos);
      EXPECT_EQ(parse_back_line(text).value(), line) << text;
    }
  }
}

TEST(BackLine, BytesThatAreNoTextEndNothing) {
  const auto line =
      parse_back_line(print(BackLine(FallenLine{{"066ec2c7cdf6f321", 0}, "u2", "ran \xff\xfe"})));
  EXPECT_EQ(std::get<FallenLine>(line.value()).variant, "u2");
}

TEST(BackLine, WhatAKernelPrintsIsNone) {
  for (const char* text : {"", "@", "@[]", "@[1]", "@[\"at\"]", "@[\"at\",-1,2,3]", "@[\"at\",1.5,2,3]",
                           "@[\"drop\",1]", "@[\"take\",[1,2],1,1,\"x\"]", "@[\"begin\",\"quit\"]",
                           "@[\"begin\",\"nonsense\"]", "hello", "@{\"at\":1}"})
    EXPECT_FALSE(parse_back_line(text)) << text;
}

}  // namespace
}  // namespace furlong::worker
