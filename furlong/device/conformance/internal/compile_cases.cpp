#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device::conformance {
namespace {

Status facts_are_complete(Driver& driver) {
  FURLONG_TRY(const std::vector<Facts> devices, driver.list());
  if (devices.empty()) return fail(Code::unavailable, "{} has no device here", driver.name());
  std::set<int> indices;
  for (const Facts& facts : devices) {
    const std::string at = facts.address();
    FURLONG_CHECK(expect(facts.backend == driver.name(), "{}: the back end is '{}'", at, facts.backend));
    FURLONG_CHECK(expect(indices.insert(facts.index).second, "{} is listed twice", at));
    FURLONG_CHECK(expect(!facts.label.empty() && facts.label.find_first_of(" \t\n") == std::string::npos,
                         "{}: the label '{}' is empty or has spaces", at, facts.label));
    FURLONG_CHECK(expect(!facts.languages.empty(), "{} compiles no language", at));
    FURLONG_CHECK(expect(!facts.silicon.vendor.empty() && !facts.silicon.arch.empty(),
                         "{}: vendor '{}' or architecture '{}' is unknown", at, facts.silicon.vendor,
                         facts.silicon.arch));
    FURLONG_CHECK(expect(!facts.driver.empty() && !facts.compiler.empty(),
                         "{}: driver '{}' or compiler '{}' is unknown", at, facts.driver, facts.compiler));
    FURLONG_CHECK(
        expect(facts.silicon.hash().size() == 16, "{}: silicon hash '{}'", at, facts.silicon.hash()));
    FURLONG_CHECK(expect(facts.max_threads_per_block >= 1 && facts.max_buffer_bytes > 0 && facts.warp >= 1,
                         "{}: a limit is zero", at));
  }
  return {};
}

// Records are kept by silicon and label: they must not move from call to call.
Status facts_are_stable(Driver& driver) {
  FURLONG_TRY(const std::vector<Facts> first, driver.list());
  FURLONG_TRY(const std::vector<Facts> second, driver.list());
  FURLONG_CHECK(expect(first.size() == second.size(), "{} devices, then {}", first.size(), second.size()));
  if (first.empty()) return fail(Code::unavailable, "{} has no device here", driver.name());
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  for (const Facts& facts : {second.front(), rig.device->facts()}) {
    FURLONG_CHECK(
        expect(facts.silicon.hash() == first.front().silicon.hash() && facts.label == first.front().label,
               "{} is {} and then {}", facts.address(), first.front().label, facts.label));
  }
  return {};
}

Status an_absent_index_is_unavailable(Driver& driver) {
  FURLONG_CHECK(Rig::open(driver));
  FURLONG_TRY(const std::vector<Facts> devices, driver.list());
  int beyond = 0;
  for (const Facts& facts : devices) beyond = std::max(beyond, facts.index + 1);
  for (const int index : {beyond, beyond + 1000, -1}) {
    FURLONG_CHECK(
        expect_error(driver.open(index), Code::unavailable, fmt::format("opening index {}", index)));
  }
  return {};
}

Status compiles_and_names_its_entries(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(const CompileRequest request, conformance_request(rig.device->facts().languages));
  FURLONG_CHECK(expect(rig.module->entries() == request.entries, "the module has {} entries, asked for {}",
                       rig.module->entries().size(), request.entries.size()));
  return expect(rig.module->facts().compile_ms >= 0, "it compiled in {} ms", rig.module->facts().compile_ms);
}

Status a_compile_error_carries_the_log(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_TRY(const CompileRequest bad, conformance_bad_request(rig.device->facts().languages));
  const auto failed = rig.device->compile(bad);
  FURLONG_CHECK(expect_error(failed, Code::invalid, "a text with an undeclared name", "furlong_undeclared"));
  // "bad.src:3:10" or, as NVIDIA writes it, "bad.src(3)".
  const std::string text = failed.error().text();
  FURLONG_CHECK(expect(text.find(bad.source_name + ":3") != std::string::npos ||
                           text.find(bad.source_name + "(3)") != std::string::npos,
                       "the message lacks line 3 of {}: {}", bad.source_name, text));
  // And the device still compiles.
  FURLONG_TRY(const CompileRequest good, conformance_request(rig.device->facts().languages));
  FURLONG_CHECK(rig.device->compile(good));
  return {};
}

Status an_absent_entry_is_invalid(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_TRY(CompileRequest request, conformance_request(rig.device->facts().languages));
  request.entries = {"saxpy", "no_such_kernel"};
  return expect_error(rig.device->compile(request), Code::invalid, "an entry that is not in the text",
                      "no_such_kernel");
}

Status another_language_is_invalid(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  const auto& languages = rig.device->facts().languages;
  if (std::find(languages.begin(), languages.end(), Language::metal) != languages.end()) {
    return fail(Code::unavailable, "the device compiles every language of the suite");
  }
  FURLONG_TRY(CompileRequest request, conformance_request(languages));
  request.language = Language::metal;
  return expect_error(rig.device->compile(request), Code::invalid, "metal text", "metal");
}

Status a_stopped_compile_is_a_timeout(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_TRY(const CompileRequest request, conformance_request(rig.device->facts().languages));
  std::stop_source stop;
  stop.request_stop();
  return expect_error(rig.device->compile(request, stop.get_token()), Code::timeout, "a stopped compile");
}

// Runs shift with a define of its own and says whether the output is right.
Status shifts_by(Device& device, int shift) {
  FURLONG_TRY(CompileRequest request, conformance_request(device.facts().languages));
  request.defines = {{"SHIFT", std::to_string(shift)}};
  request.entries = {"shift"};
  FURLONG_TRY(const auto module, device.compile(request));
  const std::vector<std::uint32_t> in{5, 6, 7, 8};
  FURLONG_TRY(const auto from, buffer_of(device, in));
  FURLONG_TRY(const auto to, buffer_of(device, std::vector<std::uint32_t>(4, 0)));
  Launch launch;
  launch.module = module.get();
  launch.entry = "shift";
  launch.grid = {4, 1, 1};
  launch.arguments = {BufferArgument{from.get()}, BufferArgument{to.get()}, scalar(std::uint32_t{4})};
  FURLONG_CHECK(device.launch(launch));
  FURLONG_CHECK(device.finish());
  FURLONG_TRY(const auto out, values_of<std::uint32_t>(*to));
  const auto added = static_cast<std::uint32_t>(shift);
  return expect_equal(out, {5 + added, 6 + added, 7 + added, 8 + added}, "shifted values");
}

Status defines_reach_the_compiler(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_CHECK(shifts_by(*rig.device, 100));
  return shifts_by(*rig.device, 7);
}

// It would become a bare -I, which swallows the next option: the define would be lost in silence.
Status an_empty_include_folder_is_invalid(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_TRY(CompileRequest request, conformance_request(rig.device->facts().languages));
  request.include_folders = {"", "."};
  FURLONG_CHECK(
      expect_error(rig.device->compile(request), Code::invalid, "an empty include folder", "include"));
  request.include_folders = {"."};
  FURLONG_CHECK(rig.device->compile(request));
  return {};
}

Status equal_texts_have_equal_code(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(CompileRequest request, conformance_request(rig.device->facts().languages));
  FURLONG_TRY(const auto again, rig.device->compile(request));
  const std::string first = rig.module->facts().code_hash;
  FURLONG_CHECK(expect(first == again->facts().code_hash, "one text gave code {} and {}", first,
                       again->facts().code_hash));
  if (first.empty()) return {};  // allowed: the platform does not show its code
  request.defines = {{"SHIFT", "12345"}};
  FURLONG_TRY(const auto other, rig.device->compile(request));
  return expect(other->facts().code_hash != first, "two different kernels share the code hash {}", first);
}

Status compiles_on_several_threads(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(const CompileRequest request, conformance_request(rig.device->facts().languages));
  FURLONG_CHECK(
      expect(rig.device->compile_threads() >= 1, "{} compile threads", rig.device->compile_threads()));
  const int threads = std::min(3, rig.device->compile_threads() + 1);  // more than one, whatever is best
  std::vector<Status> compiled(static_cast<std::size_t>(threads));
  std::atomic<int> left{threads};
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  std::uint32_t launches = 0;
  Status launched;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&, i] {
        CompileRequest mine = request;
        mine.defines = {{"SHIFT", std::to_string(1000 + i)}};
        const auto module = rig.device->compile(mine);
        if (!module) compiled[static_cast<std::size_t>(i)] = module.error();
        --left;
      });
    }
    // One thread may launch beside the compiles.
    do {
      const Launch launch = rig.launch("count", {BufferArgument{out.get()}}, 2);
      launched = rig.device->launch(launch);
      if (launched) launched = rig.device->finish();
      ++launches;
    } while (launched && left > 0 && launches < 1000);
  }
  for (const Status& status : compiled) FURLONG_CHECK(status);
  FURLONG_CHECK(launched);
  FURLONG_TRY(const auto count, values_of<std::uint32_t>(*out));
  return expect_equal(count, {2 * launches}, "threads counted beside compiles");
}

}  // namespace

std::vector<ConformanceCase> compile_cases() {
  return {{"facts_are_complete", facts_are_complete},
          {"facts_are_stable", facts_are_stable},
          {"an_absent_index_is_unavailable", an_absent_index_is_unavailable},
          {"compiles_and_names_its_entries", compiles_and_names_its_entries},
          {"a_compile_error_carries_the_log", a_compile_error_carries_the_log},
          {"an_absent_entry_is_invalid", an_absent_entry_is_invalid},
          {"another_language_is_invalid", another_language_is_invalid},
          {"a_stopped_compile_is_a_timeout", a_stopped_compile_is_a_timeout},
          {"defines_reach_the_compiler", defines_reach_the_compiler},
          {"an_empty_include_folder_is_invalid", an_empty_include_folder_is_invalid},
          {"equal_texts_have_equal_code", equal_texts_have_equal_code},
          {"compiles_on_several_threads", compiles_on_several_threads}};
}

}  // namespace furlong::device::conformance
