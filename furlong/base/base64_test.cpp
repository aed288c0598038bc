#include "furlong/base/base64.h"

#include <gtest/gtest.h>

#include <set>

namespace furlong {
namespace {

TEST(Base64, TheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(as_bytes(bytes)), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(*back, bytes);
  }
}

TEST(Base64, OneTextForTheSameBytes) {
  for (const char* bad :
       {"Zg", "Zg=", "Zg===", "Zh==", "Zm9v\n", " Zm9v", "Zm 9v", "Zm9v=", "Zm9-", "====", "Z"})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

TEST(SecretText, IsOfItsAlphabetAndNeverTheSame) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    const std::string text = make_secret_text();
    EXPECT_EQ(text.size(), 43u);
    EXPECT_EQ(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    all.insert(text);
  }
  EXPECT_EQ(all.size(), 100u);
}

}  // namespace
}  // namespace furlong
