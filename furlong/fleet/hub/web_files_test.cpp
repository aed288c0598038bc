#include "furlong/fleet/hub/web_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/fleet/hub/internal/testing.h"

namespace furlong::fleet {
namespace {

namespace fs = std::filesystem;
using hub_testing::get;
using hub_testing::header;
using ::testing::HasSubstr;

class Web : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(system_files().write_atomic(folder.path() / name, text));
  }
  WebFiles read() {
    auto web = WebFiles::read(folder.path() / "dist", system_files());
    EXPECT_TRUE(web) << web.error().text();
    return web ? *std::move(web) : WebFiles();
  }
  TemporaryFolder folder = *TemporaryFolder::make("furlong-web-");
};

TEST_F(Web, FilesAndTheirKinds) {
  write("dist/index.html", "<html>");
  write("dist/assets/index-3f9a_c-b.js", "js");
  write("dist/theme.js", "theme");
  write("dist/furlong.svg", "<svg>");
  const WebFiles web = read();
  const ServerReply page = web.reply(get("/"));
  EXPECT_EQ(page.body, "<html>");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header(page, "Cache-Control"), "no-cache");
  EXPECT_EQ(web.reply(get("/index.html")).body, "<html>");
  const ServerReply script = web.reply(get("/assets/index-3f9a_c-b.js"));
  EXPECT_EQ(script.content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(header(script, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header(web.reply(get("/theme.js")), "Cache-Control"), "no-cache");
  EXPECT_EQ(web.reply(get("/furlong.svg")).content_type, "image/svg+xml");
  EXPECT_EQ(web.reply(get("/assets")).status, 404);
}

TEST_F(Web, NoWayOut) {
  write("secret.txt", "secret");
  write("dist/index.html", "<html>");
  write("dist/.git/config", "hidden");
  fs::create_symlink(folder.path() / "secret.txt", folder.path() / "dist/link.txt");
  fs::create_directory_symlink(folder.path(), folder.path() / "dist/out");
  fs::create_symlink("index.html", folder.path() / "dist/inside.html");
  const WebFiles web = read();
  for (const std::string& path : std::vector<std::string>{
           "/../secret.txt", "/link.txt", "/out/secret.txt", "/assets/../../secret.txt", "//etc/passwd",
           "/etc/passwd", "/.git/config", "/./index.html", std::string("/index.html\0.txt", 16), "",
           "secret.txt", (folder.path() / "secret.txt").string()})
    EXPECT_EQ(web.reply(get(path)).status, 404) << path;
  EXPECT_EQ(web.reply(get("/inside.html")).body, "<html>") << "a link within the folder is its file";
}

TEST_F(Web, WhatIsNoDashboard) {
  const auto none = WebFiles::read(folder.path() / "dist", system_files());
  EXPECT_EQ(none.error().code(), Code::unavailable);
  write("dist/other.html", "x");
  const auto empty = WebFiles::read(folder.path() / "dist", system_files());
  EXPECT_THAT(empty.error().text(), HasSubstr("there is no index.html in it"));
  FakeFiles many;
  for (int i = 0; i < 2001; ++i) ASSERT_TRUE(many.write_atomic(fmt::format("/w/{}.txt", i), "x"));
  EXPECT_EQ(WebFiles::read("/w", many).error().code(), Code::exhausted);
  FakeFiles deep;
  std::string path = "/w";
  for (int i = 0; i < 20; ++i) path += "/d";
  ASSERT_TRUE(deep.write_atomic(path + "/x", "x"));
  EXPECT_EQ(WebFiles::read("/w", deep).error().code(), Code::exhausted);
}

TEST_F(Web, APageThatHelpsWhereThereIsNone) {
  const WebFiles none;
  const ServerReply page = none.reply(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("--web FOLDER"));
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
}

}  // namespace
}  // namespace furlong::fleet
