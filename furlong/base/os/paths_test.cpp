#include "furlong/base/os/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace furlong {
namespace {

class Paths : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    if (!before_.contains(name)) {
      const char* old = std::getenv(name);
      before_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
    }
    if (value == nullptr)
      unsetenv(name);
    else
      setenv(name, value, 1);
  }
  Paths() {
    for (const char* name : {"FURLONG_CACHE_DIR", "FURLONG_STATE_DIR", "FURLONG_CONFIG_DIR", "XDG_CACHE_HOME",
                             "XDG_STATE_HOME", "XDG_CONFIG_HOME"})
      set(name, nullptr);
    set("HOME", "/home/ada");
  }
  ~Paths() override {
    for (const auto& [name, value] : before_)
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(Paths, StandInHome) {
  EXPECT_EQ(cache_folder(), "/home/ada/.cache/furlong");
  EXPECT_EQ(state_folder(), "/home/ada/.local/state/furlong");
  EXPECT_EQ(config_folder(), "/home/ada/.config/furlong");
}

TEST_F(Paths, TheVariablesOverride) {
  set("XDG_CACHE_HOME", "/xdg/cache");
  set("XDG_STATE_HOME", "relative/is/ignored");
  set("XDG_CONFIG_HOME", "");
  EXPECT_EQ(cache_folder(), "/xdg/cache/furlong");
  EXPECT_EQ(state_folder(), "/home/ada/.local/state/furlong");
  EXPECT_EQ(config_folder(), "/home/ada/.config/furlong");
  set("FURLONG_CACHE_DIR", "/fast/cache");
  set("FURLONG_STATE_DIR", "here");
  set("FURLONG_CONFIG_DIR", "/etc/furlong");
  EXPECT_EQ(cache_folder(), "/fast/cache");
  EXPECT_EQ(state_folder(), "here");
  EXPECT_EQ(config_folder(), "/etc/furlong");
}

TEST_F(Paths, WithoutHomeThereIsStillAnAbsoluteFolder) {
  set("HOME", nullptr);
  EXPECT_TRUE(cache_folder().is_absolute());
  EXPECT_TRUE(state_folder().is_absolute());
}

}  // namespace
}  // namespace furlong
