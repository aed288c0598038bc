#include "furlong/device/cuda/internal/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace furlong::device::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Level = Finding::Level;

constexpr const char* kUuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";

/// A card with nothing to say about it.
CardState free_card() {
  CardState state;
  state.uuid = kUuid;
  state.compute_mode = ComputeMode::shared;
  state.mig = false;
  state.ecc = true;
  state.persistence = true;
  state.processes = std::vector<CardProcess>();
  state.total_bytes = 140ull << 30;
  state.free_bytes = 139ull << 30;
  state.used_bytes = 1ull << 30;
  state.clock_mhz = 345;
  state.max_clock_mhz = 1980;
  state.memory_clock_mhz = 3201;
  state.max_memory_clock_mhz = 3201;
  state.power_w = 76;
  state.power_limit_w = state.default_power_limit_w = 700;
  state.temperature_c = 31;
  state.throttle = 0;
  state.clocks_are_set = false;
  return state;
}

PlatformSeen whole() {
  PlatformSeen seen;
  seen.driver_file = "libcuda.so.1";
  seen.version = 13000;
  seen.driver_version = "580.95.05";
  seen.cards_on_the_bus = 1;
  seen.cards_of_nvml = 1;
  seen.compilers = {{13, 0, "libnvrtc.so.13", {"sm_75", "sm_90"}}};
  seen.cards = {{"cuda:0", "sm_90", "0000:3b:00.0", free_card()}};
  seen.this_process = 77;
  return seen;
}

/// The findings about `what`.
std::vector<Finding> about(const PlatformSeen& seen, std::string_view what) {
  std::vector<Finding> found = findings_of(seen);
  std::erase_if(found, [&](const Finding& each) { return each.what != what; });
  return found;
}

Finding only(const PlatformSeen& seen, std::string_view what) {
  const auto found = about(seen, what);
  EXPECT_EQ(found.size(), 1u) << what;
  return found.empty() ? Finding{} : found.front();
}

Finding of_card(std::string_view what, void (*change)(CardState&)) {
  PlatformSeen seen = whole();
  change(*seen.cards[0].state);
  return only(seen, "cuda:0 " + std::string(what));
}

TEST(Findings, AWholeMachineHasNothingToMend) {
  const auto found = findings_of(whole());
  ASSERT_EQ(found.size(), 3u);
  for (const Finding& finding : found) {
    EXPECT_EQ(finding.level, Level::ok) << finding.what;
    EXPECT_EQ(finding.mend, "") << finding.what;
  }
  EXPECT_EQ(found[0].finding, "580.95.05 for CUDA 13.0, 1 card");
  EXPECT_EQ(found[1].finding, "NVRTC 13.0 (libnvrtc.so.13) for sm_90");
  EXPECT_EQ(found[2].what, "cuda:0 state");
  EXPECT_EQ(
      found[2].finding,
      "sm_90, clock 345 of at most 1980 MHz, memory 3201 of 3201 MHz, 76 of 700 W, 31 °C, 139 GiB of 140 "
      "GiB free, ECC on");
}

TEST(Findings, ACardThatTellsNothingHasNoFindings) {
  PlatformSeen seen = whole();
  seen.cards[0].state = CardState();
  EXPECT_EQ(findings_of(seen).size(), 3u);
  EXPECT_EQ(only(seen, "cuda:0 state").finding, "sm_90");
}

// What nobody can act on is no finding: only good news goes without a mend.
TEST(Findings, EachButGoodNewsHasOneThingToDo) {
  PlatformSeen seen = whole();
  CardState& state = *seen.cards[0].state;
  state.compute_mode = ComputeMode::exclusive_process;
  state.processes = {{100, 1u << 30}, {77, 5}};
  state.free_bytes = 100u << 20;
  state.mig = true;
  state.throttle = 0x4;
  state.throttle_text = "power cap";
  state.clocks_are_set = true;
  state.persistence = state.ecc = false;
  seen.no_nvml = "why";
  seen.mps_pipe = "/tmp/nvidia-mps/control";
  seen.compilers.clear();
  const auto found = findings_of(seen);
  EXPECT_EQ(found.size(), 11u);
  for (const Finding& finding : found) {
    EXPECT_EQ(finding.level == Level::ok, finding.mend.empty()) << finding.what;
    EXPECT_FALSE(finding.finding.empty());
  }
}

TEST(Findings, NoDriverIsANoteWithoutACardAndAProblemWithOne) {
  PlatformSeen seen;
  seen.no_driver =
      fail(Code::unavailable, "NVIDIA's driver is not here (libcuda.so.1: no such file): install it to use");
  seen.no_nvml = "not here";
  Finding finding = only(seen, "cuda driver");
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_EQ(finding.finding, "NVIDIA's driver is not here (libcuda.so.1: no such file)");
  EXPECT_THAT(finding.mend, HasSubstr("nothing, unless"));
  seen.cards_on_the_bus = 2;
  finding = only(seen, "cuda driver");
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.finding, HasSubstr("2 of its cards on the bus"));
  EXPECT_THAT(finding.mend, HasSubstr("install NVIDIA's driver"));
  seen.no_nvml.reset();
  EXPECT_THAT(only(seen, "cuda driver").mend, HasSubstr("NVIDIA_DRIVER_CAPABILITIES"));
  seen.no_driver = fail(Code::incompatible, "libcuda.so.1 has no cuGraphLaunch");
  EXPECT_EQ(only(seen, "cuda driver").mend, "update NVIDIA's driver");
}

TEST(Findings, ADriverThatAVariableNamesIsTheVariablesMatter) {
  PlatformSeen seen;
  seen.no_driver = fail(Code::unavailable,
                        "NVIDIA's driver is not here (/opt/libcuda.so: no such file): install it to use");
  seen.named_driver = "/opt/libcuda.so";
  seen.named_driver_is_there = false;
  Finding finding = only(seen, "cuda driver");  // NVML is here
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_EQ(finding.finding, "FURLONG_CUDA_DRIVER names /opt/libcuda.so, a file that is not there");
  EXPECT_EQ(finding.mend, "unset FURLONG_CUDA_DRIVER, or let it name a libcuda.so.1");
  seen.named_driver_is_there = true;
  seen.no_driver = fail(Code::incompatible, "/opt/libcuda.so has no cuInit");
  finding = only(seen, "cuda driver");
  EXPECT_EQ(finding.finding,
            "FURLONG_CUDA_DRIVER names /opt/libcuda.so, which does not open: /opt/libcuda.so has no cuInit");
  EXPECT_THAT(finding.mend, HasSubstr("unset FURLONG_CUDA_DRIVER"));
}

TEST(Findings, EachWayNotToStartHasItsMend) {
  const struct {
    Status32 code;
    const char* mend;
  } cases[] = {{kDriverMismatch, "restart the machine"},
               {kSystemNotReady, "nvidia-fabricmanager"},
               {kCompatNotSupported, "LD_LIBRARY_PATH"},
               {kUnknown, "nvidia_uvm"},
               {kInvalidDevice, "CUDA_VISIBLE_DEVICES"},
               {kOutOfMemory, "free memory"},
               {34, "stubs"},
               {12345, "nvidia-smi"}};
  for (const auto& each : cases) {
    PlatformSeen seen = whole();
    seen.started = each.code;
    seen.started_name = "CUDA_ERROR_X (1)";
    const auto found = findings_of(seen);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].level, Level::problem);
    EXPECT_THAT(found[0].finding,
                HasSubstr("NVIDIA's driver (libcuda.so.1) does not start: CUDA_ERROR_X (1)"));
    EXPECT_THAT(found[0].mend, HasSubstr(each.mend)) << each.code;
  }
}

TEST(Findings, NoCardSaysWhetherOneIsHiddenKeptFromTheUserOrNotThere) {
  PlatformSeen seen = whole();
  seen.started = kNoDevice;
  seen.started_name = "CUDA_ERROR_NO_DEVICE (100)";
  seen.visible_devices = "";
  Finding finding = only(seen, "cuda driver");
  EXPECT_THAT(finding.finding, HasSubstr("NVML sees 1, but CUDA_VISIBLE_DEVICES is ''"));
  EXPECT_THAT(finding.mend, HasSubstr("unset CUDA_VISIBLE_DEVICES"));
  seen.visible_devices.reset();
  EXPECT_THAT(only(seen, "cuda driver").mend, HasSubstr("/dev/nvidia*"));
  EXPECT_EQ(only(seen, "cuda driver").level, Level::problem);
  seen.cards_of_nvml = 0;
  seen.cards_on_the_bus = 0;
  EXPECT_EQ(only(seen, "cuda driver").level, Level::note);
}

TEST(Findings, NvrtcThatDoesNotFitSaysWhatToInstall) {
  PlatformSeen seen = whole();
  seen.compilers.clear();
  Finding finding = only(seen, "cuda NVRTC");
  EXPECT_EQ(finding.level, Level::problem);
  seen.version = 12040;
  seen.compilers = {{13, 0, "/c/libnvrtc.so.13", {"sm_75", "sm_90"}}};
  finding = only(seen, "cuda NVRTC");
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_EQ(finding.finding,
            "NVRTC 13.0 (/c/libnvrtc.so.13) makes code that this driver, for CUDA 12.4, cannot run");
  EXPECT_EQ(finding.mend, "install NVRTC 12.4 (NVIDIA's package cuda-nvrtc-12-4)");
  seen.compilers.push_back({12, 6, "/b/libnvrtc.so.12", {"sm_90"}});
  finding = only(seen, "cuda NVRTC");
  EXPECT_EQ(finding.level, Level::ok);
  EXPECT_EQ(finding.finding,
            "NVRTC 12.6 (/b/libnvrtc.so.12) for sm_90; not 13.0, which this driver or card does not take");
  seen.compilers = {{11, 2, "/a/libnvrtc.so.11.2", {"sm_50", "sm_86"}}};
  finding = only(seen, "cuda NVRTC");
  EXPECT_THAT(finding.finding, HasSubstr("does not know this card's sm_90, only sm_50 to sm_86"));
  seen.nvrtc_is_named = true;
  finding = only(seen, "cuda NVRTC");
  EXPECT_EQ(finding.finding,
            "NVRTC 11.2 (/a/libnvrtc.so.11.2) does not know this card's sm_90, only sm_50 to sm_86");
  EXPECT_EQ(
      finding.mend,
      "unset FURLONG_NVRTC, or install NVRTC 12.4 (NVIDIA's package cuda-nvrtc-12-4) and let it name that");
  seen.no_nvrtc = "opening $FURLONG_NVRTC: x";
  EXPECT_THAT(only(seen, "cuda NVRTC").mend, HasSubstr("FURLONG_NVRTC"));
}

TEST(Findings, EachArchitectureHasItsCompiler) {
  PlatformSeen seen = whole();
  seen.cards.push_back({"cuda:1", "sm_90", "", {}});
  seen.cards.push_back({"cuda:2", "sm_70", "", {}});
  const auto found = about(seen, "cuda NVRTC");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].level, Level::ok);
  EXPECT_EQ(found[1].level, Level::problem);
  EXPECT_THAT(found[1].mend, HasSubstr("12.9"));
}

TEST(Findings, WithoutNvmlItSaysWhatIsOff) {
  PlatformSeen seen = whole();
  seen.no_nvml = "libnvidia-ml.so.1 is not here";
  seen.cards[0].state.reset();
  const Finding finding = only(seen, "cuda NVML");
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("libnvidia-ml.so.1 is not here"));
  EXPECT_THAT(finding.finding, HasSubstr("energy"));
}

TEST(Findings, ComputeModesThatKeepARaceOutAreProblems) {
  Finding finding = of_card("compute mode", [](CardState& s) { s.compute_mode = ComputeMode::prohibited; });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_EQ(finding.mend, std::string("nvidia-smi -i ") + kUuid + " -c DEFAULT");
  finding = of_card("compute mode", [](CardState& s) { s.compute_mode = ComputeMode::exclusive_process; });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.finding, HasSubstr("trial process"));
  finding = of_card("compute mode", [](CardState& s) {
    s.compute_mode = ComputeMode::exclusive_process;
    s.processes = {{4711, 3ull << 30}};
  });
  EXPECT_THAT(finding.finding, HasSubstr("held by process 4711 (3 GiB)"));
}

TEST(Findings, OtherProcessesAreNamedAndThisOneIsNot) {
  const Finding finding = of_card(
      "in use", [](CardState& s) { s.processes = {{77, 1u << 30}, {100, 2ull << 30}, {101, std::nullopt}}; });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("by process 100 (2 GiB), 101:"));
  EXPECT_THAT(finding.finding, Not(HasSubstr("77")));
  PlatformSeen seen = whole();
  seen.cards[0].state->processes = {{77, 1u << 30}};
  EXPECT_TRUE(about(seen, "cuda:0 in use").empty());
  seen.cards[0].state->processes = {{100, 1u << 30}};
  EXPECT_EQ(only(seen, "cuda:0 in use").mend, "end process 100, or race when it has ended");
}

TEST(Findings, ProcessesOutsideTheContainerAreSaidToBe) {
  PlatformSeen seen = whole();
  seen.cards[0].state->processes = {{4711, 1u << 30}};
  seen.processes_elsewhere = {4711};
  Finding finding = only(seen, "cuda:0 in use");
  EXPECT_THAT(finding.finding, HasSubstr("4711 (1 GiB, numbered as outside this container)"));
  EXPECT_EQ(finding.mend, "end process 4711, numbered as outside this container, or race when it has ended");
  seen.cards[0].state->processes = {{4711, std::nullopt}, {100, std::nullopt}};
  seen.cards[0].state->free_bytes = 1;
  EXPECT_EQ(only(seen, "cuda:0 memory").mend,
            "end process 4711 (numbered as outside this container), 100, which holds it");
}

TEST(Findings, AMendNamesTheWholeCard) {
  PlatformSeen seen = whole();
  seen.cards[0].state->mig = true;
  seen.cards[0].state->compute_mode = ComputeMode::exclusive_process;
  EXPECT_EQ(only(seen, "cuda:0 compute mode").mend, std::string("nvidia-smi -i ") + kUuid + " -c DEFAULT");
  EXPECT_THAT(only(seen, "cuda:0 MIG").mend, HasSubstr(std::string("nvidia-smi -i ") + kUuid + " -mig 0"));
  seen.cards[0].state->uuid.clear();
  EXPECT_EQ(only(seen, "cuda:0 compute mode").mend, "nvidia-smi -i 0000:3b:00.0 -c DEFAULT");
  seen.cards[0].bus_id.clear();
  EXPECT_EQ(only(seen, "cuda:0 compute mode").mend, "nvidia-smi -c DEFAULT");
}

TEST(Findings, LittleFreeMemoryIsTold) {
  Finding finding = of_card("memory", [](CardState& s) { s.free_bytes = 1ull << 30; });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("1 GiB of 140 GiB free"));
  finding = of_card("memory", [](CardState& s) {
    s.free_bytes = 100u << 20;
    s.processes = {{100, 138ull << 30}};
  });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_THAT(finding.mend, HasSubstr("end process 100 (138 GiB)"));
}

TEST(Findings, WhatSlowsTheCardHasItsMend) {
  Finding finding = of_card("throttled", [](CardState& s) {
    s.throttle = 0x20;
    s.throttle_text = throttle_words(0x20);
    s.temperature_c = 91;
  });
  EXPECT_EQ(finding.level, Level::problem);
  EXPECT_EQ(finding.finding, "slowed now by thermal slowdown, at 91 °C and 76 of 700 W");
  EXPECT_THAT(finding.mend, HasSubstr("cool"));
  finding = of_card("throttled", [](CardState& s) {
    s.throttle = 0x88;
    s.throttle_text = throttle_words(0x88);
  });
  EXPECT_THAT(finding.mend, HasSubstr("power supply"));
  finding = of_card("throttled", [](CardState& s) {
    s.throttle = 0x4;
    s.throttle_text = throttle_words(0x4);
    s.power_limit_w = 300;
  });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.mend, HasSubstr("-pl 700"));
}

TEST(Findings, SettingsThatChangeWhoWinsAreNotes) {
  Finding finding = of_card("power limit", [](CardState& s) { s.power_limit_w = 300; });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("300 W, below the 700 W"));
  finding = of_card("clocks", [](CardState& s) { s.clocks_are_set = true; });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("345 of at most 1980 MHz by a setting"));
  finding = of_card("persistence", [](CardState& s) { s.persistence = false; });
  EXPECT_THAT(finding.mend, HasSubstr("-pm 1"));
  finding = of_card("ECC", [](CardState& s) { s.ecc = false; });
  EXPECT_THAT(finding.mend, HasSubstr("-e 1"));
  finding = of_card("MIG", [](CardState& s) { s.mig = true; });
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.mend, HasSubstr("-mig 0"));
}

TEST(Findings, TheMultiProcessServiceIsANote) {
  PlatformSeen seen = whole();
  seen.mps_pipe = "/tmp/nvidia-mps/control";
  const Finding finding = only(seen, "cuda MPS");
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.finding, HasSubstr("/tmp/nvidia-mps/control"));
  EXPECT_EQ(finding.mend, "echo quit | nvidia-cuda-mps-control");
}

TEST(Findings, LookingAtThisMachineTellsWhatIsHere) {
  const PlatformSeen seen = look_at_platform();
  const auto found = findings_of(seen);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().what, "cuda driver");
  if (seen.no_driver) {
    EXPECT_EQ(found.size(), 1u);
    EXPECT_NE(found.front().mend, "");
  } else if (seen.started == kSuccess) {
    EXPECT_GT(seen.version, 0);
    for (const CardSeen& card : seen.cards) EXPECT_THAT(card.arch, HasSubstr("sm_"));
  }
}

}  // namespace
}  // namespace furlong::device::cuda
