#include "furlong/base/os/library.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "furlong/base/os/file.h"

namespace furlong {
namespace {

using testing::HasSubstr;

TEST(Library, CallsAFunction) {
  auto library = Library::open("libm.so.6");
  ASSERT_TRUE(library) << library.error().text();
  EXPECT_EQ(library->name(), "libm.so.6");
  auto* const cube_root = library->function<double(double)>("cbrt");
  ASSERT_NE(cube_root, nullptr);
  EXPECT_DOUBLE_EQ(cube_root(27.0), 3.0);
  EXPECT_EQ(library->symbol("no_such_function"), nullptr);
  const Library moved = std::move(*library);
  EXPECT_NE(moved.symbol("cbrt"), nullptr);
}

TEST(Library, WhatIsNotThereIsUnavailable) {
  const auto library = Library::open("libfurlong-none.so.9");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code(), Code::unavailable);
  EXPECT_THAT(library.error().text(), HasSubstr("libfurlong-none.so.9"));
}

TEST(Library, APipeIsRefusedAndNotWaitedFor) {
  const auto folder = TemporaryFolder::make("furlong-library").value();
  const auto pipe = folder.path() / "kernel.so";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto library = Library::open(pipe);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code(), Code::invalid);
  EXPECT_THAT(library.error().text(), HasSubstr(pipe.string()));
}

TEST(Library, OpensTheFirstOfSeveral) {
  const std::vector<std::string> names = {"libfurlong-none.so.9", "libm.so.6", "libc.so.6"};
  const auto library = Library::open_any(names);
  ASSERT_TRUE(library);
  EXPECT_EQ(library->name(), "libm.so.6");
  const std::vector<std::string> none = {"libfurlong-a.so", "libfurlong-b.so"};
  const auto failed = Library::open_any(none);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::unavailable);
  EXPECT_THAT(failed.error().text(), HasSubstr("libfurlong-a.so"));
  EXPECT_THAT(failed.error().text(), HasSubstr("libfurlong-b.so"));
}

}  // namespace
}  // namespace furlong
