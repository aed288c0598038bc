// The suite must be able to fail: a small device in plain memory passes it, and each planted fault of that
// device is found by the case that is meant to find it.
#include "furlong/device/conformance/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/device/request.h"

namespace furlong::device {
namespace {

enum class Fault {
  none,
  spaces_in_label,
  facts_change,
  opens_any_index,
  opens_once,
  renames_entries,
  takes_absent_entries,
  takes_every_language,
  one_thread,
  takes_empty_folders,
  loses_bytes,
  checks_no_range,
  counts_refused,
  shares_buffers,
  cuts_wide_scalars,
  swaps_axes,
  last_first,
  silent_compile_error,
  log_without_line,
  loses_defines,
  ignores_stop,
  wrong_output,
  ignores_offset,
  takes_any_shape,
  takes_any_arguments,
  keeps_no_limit,
  leaks,
  short_times,
  long_times,
  seconds_for_ms,
  half_a_pipeline,
  mad_telemetry,
  negative_time,
  runs_before_checking,
  same_hash,
};

class MemoryBuffer : public Buffer {
 public:
  MemoryBuffer(std::size_t bytes, std::shared_ptr<std::uint64_t> used, Fault fault)
      : bytes_(bytes), used_(std::move(used)), fault_(fault) {
    *used_ += bytes;
  }
  ~MemoryBuffer() override {
    if (fault_ != Fault::leaks) *used_ -= bytes_.size();
  }
  std::size_t size() const override { return bytes_.size(); }
  Status write(std::size_t offset, ByteView bytes) override {
    FURLONG_CHECK(check(offset, bytes.size()));
    if (fault_ == Fault::loses_bytes && bytes.size() > 1) bytes = bytes.first(bytes.size() - 1);
    std::copy_n(bytes.begin(), room(offset, bytes.size()), bytes_.begin() + start(offset));
    return {};
  }
  Status read(std::size_t offset, std::span<std::uint8_t> into) override {
    FURLONG_CHECK(check(offset, into.size()));
    std::copy_n(bytes_.begin() + start(offset), room(offset, into.size()), into.begin());
    return {};
  }
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override {
    FURLONG_CHECK(check(offset, count));
    std::fill_n(bytes_.begin() + start(offset), room(offset, count), byte);
    return {};
  }
  std::uint8_t* data() { return bytes_.data(); }
  const void* owner() const { return used_.get(); }

 private:
  Status check(std::size_t offset, std::size_t count) const {
    if (offset <= bytes_.size() && count <= bytes_.size() - offset) return {};
    if (fault_ == Fault::checks_no_range) return {};
    return fail(Code::invalid, "past the end of {} bytes", bytes_.size());
  }
  // A device that checks no range still must not ruin the test's own memory.
  std::ptrdiff_t start(std::size_t offset) const {
    return static_cast<std::ptrdiff_t>(std::min(offset, bytes_.size()));
  }
  std::size_t room(std::size_t offset, std::size_t count) const {
    return std::min(count, bytes_.size() - std::min(offset, bytes_.size()));
  }
  Bytes bytes_;
  std::shared_ptr<std::uint64_t> used_;
  Fault fault_;
};

class MemoryModule : public Module {
 public:
  MemoryModule(CompileRequest request, Fault fault)
      : request_(std::move(request)), entries_(request_.entries) {
    if (fault == Fault::renames_entries) entries_.front() += "_";
  }
  const KernelFacts& facts() const override { return facts_; }
  const std::vector<std::string>& entries() const override { return entries_; }
  const CompileRequest& request() const { return request_; }
  KernelFacts facts_;

 private:
  CompileRequest request_;
  std::vector<std::string> entries_;
};

class MemoryDevice : public Device {
 public:
  MemoryDevice(Facts facts, Fault fault) : facts_(std::move(facts)), fault_(fault) {}

  const Facts& facts() const override { return facts_; }
  Result<std::shared_ptr<Module>> compile(const CompileRequest& request, std::stop_token stop) override {
    if (stop.stop_requested() && fault_ != Fault::ignores_stop) return fail(Code::timeout, "stopped");
    if (fault_ == Fault::one_thread && std::this_thread::get_id() != opened_on_) {
      return fail(Code::internal, "compiles on one thread only");
    }
    if (fault_ != Fault::takes_empty_folders) FURLONG_CHECK(check_request(request));
    if (request.language != Language::opencl && fault_ != Fault::takes_every_language) {
      return fail(Code::invalid, "{} text is not for this device", language_name(request.language));
    }
    if (const Status compiled = conformance_compile(request);
        !compiled && fault_ != Fault::silent_compile_error) {
      if (fault_ == Fault::takes_absent_entries &&
          compiled.error().text().find("no kernel") != std::string::npos)
        return std::shared_ptr<Module>(std::make_shared<MemoryModule>(request, fault_));
      if (fault_ == Fault::log_without_line) return fail(Code::invalid, "furlong_undeclared no_such_kernel");
      return Error(compiled.error());
    }
    CompileRequest kept = request;
    if (fault_ == Fault::loses_defines) kept.defines.clear();
    auto module = std::make_shared<MemoryModule>(std::move(kept), fault_);
    module->facts_.code_hash = request.source;
    for (const auto& [name, value] : request.defines) module->facts_.code_hash += name + value;
    if (fault_ == Fault::same_hash) module->facts_.code_hash = "same";
    return std::shared_ptr<Module>(std::move(module));
  }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override {
    if (bytes == 0) return fail(Code::invalid, "0 bytes");
    const std::uint64_t limit =
        limit_ != 0 && fault_ != Fault::keeps_no_limit ? limit_ : facts_.max_buffer_bytes;
    const std::uint64_t left = limit > *used_ ? limit - *used_ : 0;
    if (bytes > left && fault_ == Fault::counts_refused) *used_ += 1;
    if (bytes > left) return fail(Code::exhausted, "asked for {} bytes, {} available", bytes, left);
    return std::unique_ptr<Buffer>(new MemoryBuffer(bytes, used_, fault_));
  }
  Status launch(const Launch& launch) override {
    FURLONG_CHECK(check(launch));
    if (fault_ != Fault::last_first) return run(launch);
    queued_.push_back(launch);
    return {};
  }
  Status finish() override {
    for (; !queued_.empty(); queued_.pop_back()) FURLONG_CHECK(run(queued_.back()));
    return {};
  }
  Result<std::vector<double>> time(const TimeRequest& request) override {
    if (request.pipeline.empty() || request.repeats < 1 || request.batch < 1)
      return fail(Code::invalid, "senseless");
    for (const Launch& launch : request.pipeline) {
      FURLONG_CHECK(check(launch));
      if (fault_ == Fault::runs_before_checking) FURLONG_CHECK(run(launch));
    }
    std::vector<double> times_ms;
    for (int repeat = fault_ == Fault::short_times ? 1 : 0; repeat < request.repeats; ++repeat) {
      const double start_ms = system_clock().now_ms();
      for (int i = 0; i < request.batch; ++i) {
        for (const Launch& launch : request.pipeline) {
          FURLONG_CHECK(run(launch));
          if (fault_ == Fault::half_a_pipeline) break;
        }
      }
      double ms = std::max(1e-9, system_clock().now_ms() - start_ms) / request.batch;
      if (fault_ == Fault::long_times) ms *= 1000;
      if (fault_ == Fault::seconds_for_ms) ms /= 1000;
      times_ms.push_back(fault_ == Fault::negative_time ? -ms : ms);
    }
    return times_ms;
  }
  MemoryInUse memory() const override { return {*used_, limit_}; }
  void set_memory_limit(std::uint64_t bytes) override { limit_ = bytes; }
  Telemetry telemetry() override {
    Telemetry now;
    if (fault_ == Fault::mad_telemetry) now.power_w = -3;
    return now;
  }
  int compile_threads() const override { return 2; }

 private:
  Status check(const Launch& launch) const {
    const auto* module = dynamic_cast<const MemoryModule*>(launch.module);
    if (module == nullptr) return fail(Code::invalid, "no module");
    const auto& entries = module->entries();
    if (std::find(entries.begin(), entries.end(), launch.entry) == entries.end()) {
      return fail(Code::invalid, "no entry {}", launch.entry);
    }
    for (std::size_t axis = 0; axis < 3 && fault_ != Fault::takes_any_shape; ++axis) {
      if (launch.grid[axis] == 0 || launch.block[axis] == 0) return fail(Code::invalid, "empty");
    }
    const std::uint64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > 64 && fault_ != Fault::takes_any_shape) return fail(Code::invalid, "{} threads", threads);
    if (launch.shared_bytes > facts_.max_shared_bytes) return fail(Code::invalid, "shared memory");
    for (const Argument& argument : launch.arguments) {
      const auto* given = std::get_if<BufferArgument>(&argument);
      if (given == nullptr) continue;
      const auto* buffer = dynamic_cast<const MemoryBuffer*>(given->buffer);
      const bool foreign = buffer == nullptr || buffer->owner() != used_.get();
      if (foreign && fault_ != Fault::shares_buffers) return fail(Code::invalid, "foreign buffer");
      if (given->offset % 256 != 0 || given->offset >= buffer->size()) return fail(Code::invalid, "offset");
    }
    return {};
  }
  Status run(const Launch& launch) {
    const CompileRequest& request = static_cast<const MemoryModule*>(launch.module)->request();
    Launch changed = launch;
    if (fault_ == Fault::swaps_axes) std::swap(changed.grid[1], changed.grid[2]);
    for (Argument& argument : changed.arguments) {
      auto* scalar = std::get_if<Bytes>(&argument);
      if (fault_ == Fault::cuts_wide_scalars && scalar != nullptr && scalar->size() == 8) {
        std::fill(scalar->begin() + 4, scalar->end(), std::uint8_t{0});
      }
      auto* given = std::get_if<BufferArgument>(&argument);
      if (given != nullptr && fault_ == Fault::ignores_offset) given->offset = 0;
    }
    const Status ran = conformance_run(
        request, changed, [](Buffer& buffer) { return static_cast<MemoryBuffer&>(buffer).data(); });
    if (!ran && fault_ == Fault::takes_any_arguments) return {};
    if (ran && fault_ == Fault::wrong_output) {
      for (const Argument& argument : launch.arguments) {
        const auto* given = std::get_if<BufferArgument>(&argument);
        if (given != nullptr) static_cast<MemoryBuffer*>(given->buffer)->data()[0] ^= 1;
      }
    }
    return ran;
  }

  Facts facts_;
  Fault fault_;
  std::shared_ptr<std::uint64_t> used_ = std::make_shared<std::uint64_t>(0);
  std::uint64_t limit_ = 0;
  std::vector<Launch> queued_;
  std::thread::id opened_on_ = std::this_thread::get_id();
};

class MemoryDriver : public Driver {
 public:
  explicit MemoryDriver(Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "memory"; }
  Result<std::vector<Facts>> list() override {
    Facts facts;
    facts.backend = "memory";
    facts.label = fault_ == Fault::spaces_in_label ? "Plain memory" : "Plain_memory";
    if (fault_ == Fault::facts_change) facts.label += fmt::format("_{}", ++listed_);
    facts.silicon = {"Furlong", "memory", 1, 1 << 30, 0};
    facts.driver = facts.compiler = "1";
    facts.languages = {Language::opencl};
    facts.max_threads_per_block = 64;
    facts.max_block = {64, 64, 64};
    facts.max_buffer_bytes = 64 << 20;
    facts.max_shared_bytes = 1024;
    return std::vector<Facts>{facts};
  }
  Result<std::unique_ptr<Device>> open(int index) override {
    if (index != 0 && fault_ != Fault::opens_any_index) return fail(Code::unavailable, "only memory:0");
    if (fault_ == Fault::opens_once && opened_++ > 0) return fail(Code::internal, "opens only once");
    FURLONG_TRY(const std::vector<Facts> facts, list());
    return std::unique_ptr<Device>(new MemoryDevice(facts.front(), fault_));
  }

 private:
  Fault fault_;
  int listed_ = 0;
  int opened_ = 0;
};

/// The names of the cases that fail.
std::set<std::string> failing(Fault fault) {
  std::set<std::string> names;
  for (const ConformanceCase& one : conformance_cases()) {
    MemoryDriver driver(fault);
    const Status status = one.run(driver);
    if (!status && status.error().code() != Code::unavailable) {
      if (fault == Fault::none) ADD_FAILURE() << one.name << ": " << status.error().text();
      names.insert(one.name);
    }
  }
  return names;
}

TEST(Conformance, ADeviceInPlainMemoryPasses) { EXPECT_TRUE(failing(Fault::none).empty()); }

TEST(Conformance, EveryPlantedFaultIsFoundByItsCase) {
  const std::map<Fault, std::string> meant{
      {Fault::spaces_in_label, "facts_are_complete"},
      {Fault::facts_change, "facts_are_stable"},
      {Fault::opens_any_index, "an_absent_index_is_unavailable"},
      {Fault::opens_once, "opens_again_after_it_closed"},
      {Fault::renames_entries, "compiles_and_names_its_entries"},
      {Fault::takes_absent_entries, "an_absent_entry_is_invalid"},
      {Fault::takes_every_language, "another_language_is_invalid"},
      {Fault::one_thread, "compiles_on_several_threads"},
      {Fault::takes_empty_folders, "an_empty_include_folder_is_invalid"},
      {Fault::loses_bytes, "buffers_keep_what_is_written"},
      {Fault::checks_no_range, "ranges_past_the_end_are_invalid"},
      {Fault::counts_refused, "more_than_there_is_is_exhausted"},
      {Fault::shares_buffers, "two_devices_are_independent"},
      {Fault::cuts_wide_scalars, "takes_scalars_of_several_sizes"},
      {Fault::swaps_axes, "gives_places_in_three_dimensions"},
      {Fault::last_first, "launches_run_in_order"},
      {Fault::long_times, "times_agree_with_the_wall"},
      {Fault::seconds_for_ms, "times_agree_with_the_wall"},
      {Fault::half_a_pipeline, "a_pipeline_runs_whole_and_in_order"},
      {Fault::mad_telemetry, "telemetry_makes_sense"},
      {Fault::silent_compile_error, "a_compile_error_carries_the_log"},
      {Fault::log_without_line, "a_compile_error_carries_the_log"},
      {Fault::loses_defines, "defines_reach_the_compiler"},
      {Fault::ignores_stop, "a_stopped_compile_is_a_timeout"},
      {Fault::wrong_output, "launches_over_every_element"},
      {Fault::ignores_offset, "buffers_start_at_an_offset"},
      {Fault::takes_any_shape, "a_wrong_shape_is_invalid"},
      {Fault::takes_any_arguments, "wrong_arguments_are_invalid"},
      {Fault::keeps_no_limit, "the_limit_is_kept"},
      {Fault::leaks, "nothing_leaks"},
      {Fault::short_times, "times_every_repeat"},
      {Fault::negative_time, "times_every_repeat"},
      {Fault::runs_before_checking, "a_senseless_timing_is_invalid"},
      {Fault::same_hash, "equal_texts_have_equal_code"},
  };
  for (const auto& [fault, name] : meant) {
    const std::set<std::string> found = failing(fault);
    EXPECT_TRUE(found.contains(name)) << "fault " << static_cast<int>(fault) << " is not found by " << name;
  }
  // A case that no fault is planted for may be one that cannot fail.
  std::set<std::string> proven;
  for (const auto& [fault, name] : meant) proven.insert(name);
  for (const ConformanceCase& one : conformance_cases()) {
    EXPECT_TRUE(proven.contains(one.name)) << "no fault shows that " << one.name << " can fail";
  }
}

TEST(Conformance, AnUnavailableBackEndSkipsEveryCase) {
  class Absent : public Driver {
   public:
    std::string_view name() const override { return "absent"; }
    Result<std::vector<Facts>> list() override { return fail(Code::unavailable, "absent"); }
    Result<std::unique_ptr<Device>> open(int) override { return fail(Code::unavailable, "absent"); }
  };
  for (const ConformanceCase& one : conformance_cases()) {
    Absent driver;
    const Status status = one.run(driver);
    ASSERT_FALSE(status) << one.name;
    EXPECT_EQ(status.error().code(), Code::unavailable) << one.name;
  }
}

TEST(Conformance, CaseNamesAreDistinctAndFitGoogleTest) {
  std::set<std::string> names;
  for (const ConformanceCase& one : conformance_cases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(one.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos)
        << one.name;
  }
  EXPECT_GE(names.size(), 25u);
}

}  // namespace
}  // namespace furlong::device
