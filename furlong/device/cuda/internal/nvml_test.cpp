#include "furlong/device/cuda/internal/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/library.h"
#include "furlong/base/os/process.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

// A library with NVML's names for two cards. -D chooses what it lacks; the test sets the variables by name.
constexpr const char* kFakeNvml = R"(
#include <string.h>
unsigned fake_sm = 1200, fake_init = 0, fake_mode = 0, fake_processes = 2, fake_denied = 0;
unsigned long long fake_reasons = 1;
int fake_open = 0;
static int cards[2];
int nvmlInit_v2(void) { if (!fake_init) ++fake_open; return (int)fake_init; }
int nvmlShutdown(void) { --fake_open; return 0; }
const char* nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Some Error"; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** card) {
  if (strcmp(uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef")) return 6;
  *card = &cards[0];
  return 0;
}
int BY_BUS(const char* bus, void** card) {
  if (strcmp(bus, "0000:3b:00.0")) return 6;
  *card = &cards[1];
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) { (void)size; strcpy(text, "580.95.05"); return 0; }
int nvmlDeviceGetCount_v2(unsigned* n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** card) { *card = &cards[i]; return i == 1 ? 15 : 0; }
int nvmlDeviceGetUUID(void* card, char* text, unsigned size) {
  (void)card; (void)size;
  strcpy(text, "GPU-01234567-89ab-cdef-0123-456789abcdef");
  return 0;
}
int nvmlDeviceGetClockInfo(void* card, unsigned which, unsigned* mhz) {
  (void)card;
  if (which == 1) *mhz = fake_sm; else if (which == 2) *mhz = 3201; else return 2;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void* card, unsigned which, unsigned* mhz) {
  (void)card;
  if (which == 1) *mhz = 1980; else if (which == 2) *mhz = 3202; else return 2;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* card, unsigned* mw) { *mw = card == cards ? 123456 : 1000; return (int)fake_denied; }
int nvmlDeviceGetEnforcedPowerLimit(void* card, unsigned* mw) { (void)card; *mw = 700000; return 0; }
int nvmlDeviceGetTemperature(void* card, unsigned sensor, unsigned* c) { (void)card; *c = 41; return sensor ? 2 : 0; }
int REASONS(void* card, unsigned long long* bits) { (void)card; *bits = fake_reasons; return 0; }
#ifndef NO_ENERGY
int nvmlDeviceGetTotalEnergyConsumption(void* card, unsigned long long* mj) { (void)card; *mj = 5000250; return 0; }
#endif
int nvmlDeviceGetComputeMode(void* card, unsigned* mode) { (void)card; *mode = fake_mode; return 0; }
int nvmlDeviceGetMigMode(void* card, unsigned* now, unsigned* later) { (void)card; *now = 0; *later = 1; return 0; }
int nvmlDeviceGetEccMode(void* card, unsigned* now, unsigned* later) { (void)card; *now = 1; *later = 0; return 0; }
int nvmlDeviceGetPersistenceMode(void* card, unsigned* on) { (void)card; *on = 1; return 0; }
int nvmlDeviceGetMemoryInfo(void* card, unsigned long long* m) { (void)card; m[0] = 1000; m[1] = 600; m[2] = 400; return 0; }
int LIST(void* card, unsigned* count, void* list) {
  const unsigned room = *count;
  (void)card;
  *count = fake_processes;
  if (room < fake_processes) return 7;
  for (unsigned i = 0; i < fake_processes; ++i) {
    char* entry = (char*)list + i * ENTRY;
    const unsigned pid = 100 + i;
    const unsigned long long bytes = i == 1 ? ~0ull : 7ull << 30;
    memset(entry, 0, ENTRY);
    memcpy(entry, &pid, 4);
    memcpy(entry + 8, &bytes, 8);
  }
  return 0;
}
)";

/// The fake, compiled by the system's C compiler with these definitions; skipped, by name, where there is
/// none.
class NvmlTest : public ::testing::Test {
 protected:
  void build(std::vector<std::string> defines) {
    auto made = TemporaryFolder::make("furlong-nvml-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
    ASSERT_TRUE(system_files().write_atomic(folder_->path() / "fake.c", kFakeNvml));
    ProcessRequest request{
        .argv = {"cc", "-shared", "-fPIC", "-o", library().string(), (folder_->path() / "fake.c").string()}};
    // A later definition of the same name wins.
    for (const char* define : {"-DBY_BUS=nvmlDeviceGetHandleByPciBusId_v2", "-DENTRY=24",
                               "-DREASONS=nvmlDeviceGetCurrentClocksEventReasons",
                               "-DLIST=nvmlDeviceGetComputeRunningProcesses_v3"})
      request.argv.emplace_back(define);
    for (std::string& define : defines) request.argv.push_back("-D" + std::move(define));
    const auto end = system_processes().run(request, 60);
    if (!end && end.error().code() == Code::unavailable) GTEST_SKIP() << end.error().text();
    ASSERT_TRUE(end) << end.error().text();
    ASSERT_EQ(end->exit_code, 0) << end->standard_error;
    auto opened = Library::open(library());  // the same one that Nvml opens: its variables can be set
    ASSERT_TRUE(opened) << opened.error().text();
    fake_.emplace(std::move(*opened));
  }
  std::filesystem::path library() const { return folder_->path() / "libfake-nvml.so"; }
  template <class T>
  T& variable(const char* name) {
    return *static_cast<T*>(fake_->symbol(name));
  }
  Nvml opened() {
    auto nvml = Nvml::open(library());
    EXPECT_TRUE(nvml) << nvml.error().text();
    return std::move(*nvml);
  }
  NvmlCard card() {
    auto found = opened().card(kUuid, "");
    EXPECT_TRUE(found) << found.error().text();
    return std::move(*found);
  }
  static std::vector<CardProcess> processes(const NvmlCard& card) {
    const CardState state = card.state();
    EXPECT_TRUE(state.processes);
    return state.processes.value_or(std::vector<CardProcess>{});
  }
  static constexpr const char* kUuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  std::optional<TemporaryFolder> folder_;
  std::optional<Library> fake_;
};

#define BUILD(...)      \
  build({__VA_ARGS__}); \
  if (IsSkipped() || HasFatalFailure()) return

TEST_F(NvmlTest, TelemetryIsInTheUnitsOfTheInterface) {
  BUILD();
  const Telemetry now = card().telemetry();
  EXPECT_EQ(now.clock_mhz, 1200);
  EXPECT_EQ(now.memory_clock_mhz, 3201);
  EXPECT_EQ(now.power_w, 123.456);
  EXPECT_EQ(now.power_limit_w, 700);
  EXPECT_EQ(now.energy_j, 5000.25);
  EXPECT_EQ(now.temperature_c, 41);
  EXPECT_EQ(now.throttle, 0u) << "an idle card is not throttled";
  EXPECT_EQ(now.throttle_text, "");
}

TEST_F(NvmlTest, TelemetryIsReadAnewEachTime) {
  BUILD();
  const NvmlCard held = card();
  variable<unsigned>("fake_sm") = 900;
  variable<unsigned long long>("fake_reasons") = 0x4 | 0x1 | 0x100;
  const Telemetry now = held.telemetry();
  EXPECT_EQ(now.clock_mhz, 900);
  EXPECT_EQ(now.throttle, 4u);
  EXPECT_EQ(now.throttle_text, "power cap");
  variable<unsigned>("fake_denied") = 4;
  EXPECT_EQ(held.telemetry().power_w, std::nullopt);
}

TEST_F(NvmlTest, StateTellsHowTheCardIsSetUpAndUsed) {
  BUILD();
  variable<unsigned>("fake_mode") = 3;
  const NvmlCard held = card();
  const CardState state = held.state();
  EXPECT_EQ(state.compute_mode, ComputeMode::exclusive_process);
  EXPECT_EQ(state.mig, false);
  EXPECT_EQ(state.ecc, true);
  EXPECT_EQ(state.persistence, true);
  EXPECT_EQ(state.total_bytes, 1000u);
  EXPECT_EQ(state.free_bytes, 600u);
  EXPECT_EQ(state.used_bytes, 400u);
  EXPECT_EQ(state.clock_mhz, 1200);
  EXPECT_EQ(state.max_clock_mhz, 1980);
  EXPECT_EQ(state.max_memory_clock_mhz, 3202);
  EXPECT_EQ(state.power_limit_w, 700);
  EXPECT_EQ(state.default_power_limit_w, std::nullopt);  // the fake lacks it
  EXPECT_EQ(state.temperature_c, 41);
  EXPECT_EQ(state.power_w, 123.456);
  EXPECT_EQ(state.clocks_are_set, false);
  variable<unsigned long long>("fake_reasons") = 0x2 | 0x20;
  EXPECT_EQ(held.state().clocks_are_set, true);
  EXPECT_EQ(held.state().throttle, 0x20u);
  EXPECT_EQ(held.state().throttle_text, "thermal slowdown");
  variable<unsigned>("fake_mode") = 17;
  EXPECT_EQ(held.state().compute_mode, std::nullopt);
}

// One symbol, three layouts: drivers of the 535 line wrote 32 bytes an entry, the oldest name writes 16.
TEST_F(NvmlTest, ProcessesAreReadInEveryLayout) {
  for (const auto& defines :
       std::vector<std::vector<std::string>>{{},
                                             {"ENTRY=32"},
                                             {"LIST=nvmlDeviceGetComputeRunningProcesses_v2"},
                                             {"LIST=nvmlDeviceGetComputeRunningProcesses", "ENTRY=16"}}) {
    fake_.reset();
    build(defines);
    if (IsSkipped() || HasFatalFailure()) return;
    const NvmlCard held = card();
    const std::vector<CardProcess> two = processes(held);
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[0].pid, 100u);
    EXPECT_EQ(two[0].bytes, 7ull << 30);
    EXPECT_EQ(two[1].pid, 101u);
    EXPECT_EQ(two[1].bytes, std::nullopt);
    variable<unsigned>("fake_processes") = 1;
    ASSERT_EQ(processes(held).size(), 1u);
    EXPECT_EQ(processes(held)[0].pid, 100u);
    variable<unsigned>("fake_processes") = 0;
    EXPECT_TRUE(processes(held).empty());
    variable<unsigned>("fake_processes") = 300;  // more than there is room for at first
    const std::vector<CardProcess> many = processes(held);
    ASSERT_EQ(many.size(), 300u);
    EXPECT_EQ(many.back().pid, 399u);
  }
}

TEST_F(NvmlTest, AMissingOptionalFunctionOnlyMakesItsValueUnknown) {
  BUILD("NO_ENERGY", "REASONS=unknown_name", "LIST=another_name");
  const NvmlCard held = card();
  EXPECT_EQ(held.telemetry().energy_j, std::nullopt);
  EXPECT_EQ(held.telemetry().throttle, std::nullopt);
  EXPECT_EQ(held.telemetry().clock_mhz, 1200);
  EXPECT_FALSE(held.state().processes);
  EXPECT_TRUE(held.state().free_bytes);
}

TEST_F(NvmlTest, OlderNamesAreTried) {
  BUILD("REASONS=nvmlDeviceGetCurrentClocksThrottleReasons", "BY_BUS=nvmlDeviceGetHandleByPciBusId");
  variable<unsigned long long>("fake_reasons") = 0x40;
  EXPECT_EQ(card().telemetry().throttle_text, "hardware thermal slowdown");
  EXPECT_TRUE(opened().card("", "0000:3b:00.0"));
}

TEST_F(NvmlTest, AMissingRequiredFunctionIsNamed) {
  BUILD("BY_BUS=other");
  const auto nvml = Nvml::open(library());
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code(), Code::incompatible);
  EXPECT_THAT(nvml.error().text(), HasSubstr("nvmlDeviceGetHandleByPciBusId_v2"));
}

TEST_F(NvmlTest, CardsAreFoundByUuidThenByBus) {
  BUILD();
  const Nvml nvml = opened();
  const auto by_bus = nvml.card("GPU-ffffffff-0000-0000-0000-000000000000", "0000:3b:00.0");
  ASSERT_TRUE(by_bus) << by_bus.error().text();
  EXPECT_EQ(by_bus->telemetry().power_w, 1);
  EXPECT_EQ(nvml.card(kUuid, "0000:3b:00.0")->telemetry().power_w, 123.456);
  const auto none = nvml.card("GPU-ffffffff", "0000:00:00.0");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  EXPECT_THAT(none.error().text(), HasSubstr("GPU-ffffffff at 0000:00:00.0: Not Found"));
  EXPECT_FALSE(nvml.card("", ""));
  EXPECT_EQ(nvml.uuids(), std::vector<std::string>{kUuid}) << "a lost card is left out";
  EXPECT_EQ(nvml.driver_version(), "580.95.05");
  EXPECT_EQ(nvml.name(), library().string());
}

TEST_F(NvmlTest, TheLibraryIsShutDownWithTheLastThatUsesIt) {
  BUILD();
  {
    std::optional<NvmlCard> held;
    {
      const Nvml nvml = opened();
      held = *nvml.card(kUuid, "");
      EXPECT_EQ(variable<int>("fake_open"), 1);
    }
    EXPECT_EQ(variable<int>("fake_open"), 1);
    EXPECT_EQ(held->telemetry().clock_mhz, 1200);
  }
  EXPECT_EQ(variable<int>("fake_open"), 0);
}

TEST_F(NvmlTest, EachWayNotToStartHasItsMend) {
  BUILD();
  const struct {
    unsigned code;
    Code result;
    const char* words;
  } cases[] = {{9, Code::unavailable, "modprobe nvidia"},
               {18, Code::incompatible, "restart the machine"},
               {4, Code::denied, "/dev/nvidia"},
               {999, Code::unavailable, "NVML error 999"}};
  for (const auto& each : cases) {
    variable<unsigned>("fake_init") = each.code;
    const auto nvml = Nvml::open(library());
    ASSERT_FALSE(nvml);
    EXPECT_EQ(nvml.error().code(), each.result) << nvml.error().text();
    EXPECT_THAT(nvml.error().text(), HasSubstr(each.words));
  }
  EXPECT_EQ(variable<int>("fake_open"), 0);
}

TEST_F(NvmlTest, TheEnvironmentChoosesTheFile) {
  BUILD();
  setenv("FURLONG_NVML", library().c_str(), 1);
  const auto nvml = Nvml::open();
  setenv("FURLONG_NVML", "/nowhere/libnvidia-ml.so", 1);
  const auto absent = Nvml::open();
  unsetenv("FURLONG_NVML");
  ASSERT_TRUE(nvml) << nvml.error().text();
  EXPECT_EQ(nvml->name(), library().string());
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::unavailable);
  EXPECT_THAT(absent.error().text(), HasSubstr("FURLONG_NVML"));
}

TEST(Nvml, ReasonsThatSlowACardAreToldFromThoseThatDoNot) {
  EXPECT_EQ(slowing_reasons(0x1 | 0x2 | 0x100), 0u);
  for (const std::uint64_t bit : {0x4, 0x8, 0x10, 0x20, 0x40, 0x80}) {
    EXPECT_EQ(slowing_reasons(bit | 0x1), bit);
    EXPECT_NE(throttle_words(bit), "");
    EXPECT_THAT(throttle_words(bit), ::testing::Not(HasSubstr("unknown")));
  }
  EXPECT_EQ(slowing_reasons(0x4000), 0x4000u) << "a bit that a newer library adds counts";
  EXPECT_EQ(throttle_words(0x4020), "thermal slowdown, unknown reason 0x4000");
  EXPECT_EQ(throttle_words(0x3), "");
}

// On a machine with a card: every value that a data-centre card tells, and what a reading costs.
TEST(NvmlOnACard, TelemetryIsThereAndCheap) {
  auto nvml = Nvml::open();
  if (!nvml) GTEST_SKIP() << nvml.error().text();
  const std::vector<std::string> uuids = nvml->uuids();
  if (uuids.empty()) GTEST_SKIP() << "no card";
  EXPECT_NE(nvml->driver_version(), "");
  const auto card = nvml->card(uuids.front(), "");
  ASSERT_TRUE(card) << card.error().text();
  const Telemetry now = card->telemetry();
  EXPECT_TRUE(now.clock_mhz && now.power_w && now.temperature_c && now.throttle);
  constexpr int kRounds = 50;
  double start_ms = system_clock().now_ms();
  for (int i = 0; i < kRounds; ++i) (void)card->telemetry();
  const double telemetry_ms = (system_clock().now_ms() - start_ms) / kRounds;
  start_ms = system_clock().now_ms();
  const CardState state = card->state();
  const double state_ms = system_clock().now_ms() - start_ms;
  EXPECT_EQ(state.uuid, uuids.front());
  EXPECT_TRUE(state.compute_mode && state.free_bytes && state.processes);
  RecordProperty("telemetry_ms", std::to_string(telemetry_ms));
  RecordProperty("state_ms", std::to_string(state_ms));
  EXPECT_LT(telemetry_ms, 20) << "it is read twice per heat";
}

}  // namespace
}  // namespace furlong::device
