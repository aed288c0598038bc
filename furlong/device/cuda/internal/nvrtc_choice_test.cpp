#include "furlong/device/cuda/internal/nvrtc_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kOf11{"sm_50", "sm_70", "sm_80", "sm_86"};
const std::vector<std::string> kOf12{"sm_50", "sm_70", "sm_80", "sm_90", "sm_120"};
const std::vector<std::string> kOf13{"sm_75", "sm_80", "sm_90", "sm_120"};

const std::vector<NvrtcCandidate> kThree{{12, 4, "/b/libnvrtc.so.12", kOf12},
                                         {13, 0, "/c/libnvrtc.so.13", kOf13},
                                         {11, 2, "/a/libnvrtc.so.11.2", kOf11}};

std::string failure(std::span<const NvrtcCandidate> found, int driver, const std::string& arch) {
  const auto chosen = choose_among(found, driver, arch);
  EXPECT_FALSE(chosen);
  if (chosen) return "";
  EXPECT_EQ(chosen.error().code(), Code::unavailable);
  return chosen.error().text();
}

TEST(NvrtcChoice, TakesTheNewestThatDriverAndCardAllow) {
  EXPECT_EQ(*choose_among(kThree, 13000, "sm_90"), 1u);
  EXPECT_EQ(*choose_among(kThree, 13010, "sm_90"), 1u);
  EXPECT_EQ(*choose_among(kThree, 12080, "sm_90"), 0u);
  EXPECT_EQ(*choose_among(kThree, 12000, "sm_90"), 0u) << "a newer minor version of the driver's own major";
  EXPECT_EQ(*choose_among(kThree, 11080, "sm_80"), 2u);
  EXPECT_EQ(*choose_among(kThree, 13000, "sm_70"), 0u) << "13 no longer knows it";
  EXPECT_EQ(*choose_among(kThree, 13000, "sm_86"), 2u);
}

TEST(NvrtcChoice, OneThatDoesNotTellItsArchitecturesIsTaken) {
  const std::vector<NvrtcCandidate> quiet{{11, 0, "/a", {}}};
  EXPECT_EQ(*choose_among(quiet, 12000, "sm_90"), 0u);
}

TEST(NvrtcChoice, TwoOfOneVersionKeepTheirOrder) {
  const std::vector<NvrtcCandidate> twice{{12, 4, "/first", kOf12}, {12, 4, "/second", kOf12}};
  EXPECT_EQ(*choose_among(twice, 12040, "sm_90"), 0u);
}

TEST(NvrtcChoice, NoneInstalledNamesThePackage) {
  EXPECT_THAT(failure({}, 13000, "sm_90"), HasSubstr("cuda-nvrtc-13-0"));
  EXPECT_THAT(failure({}, 12040, "sm_90"), HasSubstr("cuda-nvrtc-12-4"));
  EXPECT_THAT(failure({}, 12040, "sm_120"), HasSubstr("cuda-nvrtc-12-8")) << "12.4 does not know it";
  EXPECT_THAT(failure({}, 13010, "sm_70"), HasSubstr("cuda-nvrtc-12-9")) << "13 no longer knows it";
  EXPECT_THAT(failure({}, 14000, "sm_999"), HasSubstr("cuda-nvrtc-14-0"));
}

TEST(NvrtcChoice, ATooNewOneIsNamedWithTheDriversVersion) {
  const std::vector<NvrtcCandidate> newer{{13, 0, "/c/libnvrtc.so.13", kOf13}};
  const std::string text = failure(newer, 12040, "sm_90");
  EXPECT_THAT(text, HasSubstr("NVRTC 13.0 (/c/libnvrtc.so.13)"));
  EXPECT_THAT(text, HasSubstr("for CUDA 12.4, cannot run"));
  EXPECT_THAT(text, HasSubstr("install NVRTC 12.4"));
}

TEST(NvrtcChoice, ATooOldOneIsNamedWithTheCardsArchitecture) {
  const std::vector<NvrtcCandidate> older{{11, 2, "/a/libnvrtc.so.11.2", kOf11}};
  const std::string text = failure(older, 12040, "sm_90");
  EXPECT_THAT(text, HasSubstr("does not know this card's sm_90, only sm_50 to sm_86"));
  EXPECT_THAT(text, HasSubstr("cuda-nvrtc-12-4"));
}

TEST(NvrtcChoice, EachThatDoesNotFitIsTold) {
  const std::vector<NvrtcCandidate> two{{13, 0, "/c", kOf13}, {11, 2, "/a", kOf11}};
  const std::string text = failure(two, 12040, "sm_90");
  EXPECT_THAT(text, HasSubstr("NVRTC 13.0 (/c)"));
  EXPECT_THAT(text, HasSubstr("NVRTC 11.2 (/a)"));
}

TEST(NvrtcChoice, WhereTheVariableNamesOneTheOthersMayBeInstalled) {
  const std::vector<NvrtcCandidate> newer{{13, 0, "/c/libnvrtc.so.13", kOf13}};
  const auto chosen = choose_among(newer, 12040, "sm_90", true);
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().text(), HasSubstr("NVRTC 13.0 (/c/libnvrtc.so.13) makes code"));
  EXPECT_THAT(chosen.error().text(), HasSubstr("unset FURLONG_NVRTC, or install NVRTC 12.4 (NVIDIA's package "
                                               "cuda-nvrtc-12-4) and let it name that"));
  EXPECT_EQ(failure(newer, 12040, "sm_90").find("FURLONG_NVRTC"), std::string::npos);
  setenv("FURLONG_NVRTC", "", 1);
  EXPECT_FALSE(nvrtc_is_named());
  setenv("FURLONG_NVRTC", "/c/libnvrtc.so.13", 1);
  EXPECT_TRUE(nvrtc_is_named());
  unsetenv("FURLONG_NVRTC");
  EXPECT_FALSE(nvrtc_is_named());
}

TEST(NvrtcChoice, OpensAnInstalledOne) {
  const auto all = Nvrtc::all();
  if (!all && all.error().code() == Code::unavailable) GTEST_SKIP() << all.error().text();
  ASSERT_TRUE(all) << all.error().text();
  if (all->empty()) GTEST_SKIP() << "no NVRTC is installed";
  const Nvrtc& newest = *std::max_element(all->begin(), all->end(), [](const Nvrtc& a, const Nvrtc& b) {
    return std::pair(a.major(), a.minor()) < std::pair(b.major(), b.minor());
  });
  const std::string arch = newest.architectures().back();
  const auto chosen = choose_nvrtc(99000, arch);
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_EQ(chosen->version(), newest.version());
  const auto old_driver = choose_nvrtc(9000, arch);
  ASSERT_FALSE(old_driver);
  EXPECT_THAT(old_driver.error().text(), HasSubstr(newest.version()));
}

TEST(NvrtcChoice, TheEnvironmentsIsTheOnlyOneAsked) {
  setenv("FURLONG_NVRTC", "/nowhere/libnvrtc.so", 1);
  const auto chosen = choose_nvrtc(13000, "sm_90");
  unsetenv("FURLONG_NVRTC");
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().text(), HasSubstr("FURLONG_NVRTC"));
}

}  // namespace
}  // namespace furlong::device
