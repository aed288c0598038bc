#include <algorithm>
#include <array>
#include <limits>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device {
namespace {

constexpr int schema = 1;
constexpr std::array fault_names{"compile_error", "compile_crash", "hang",        "trap",
                                 "wrong_output",  "out_of_memory", "device_lost", "throttle"};

struct Bound {
  std::string_view member;
  double value, least, most;
};

Status check_bounds(std::initializer_list<Bound> bounds) {
  for (const Bound& bound : bounds)
    if (!(bound.value >= bound.least && bound.value <= bound.most))
      return fail(Code::invalid, "{} is {}: must be from {} to {}", bound.member, bound.value, bound.least,
                  bound.most);
  return {};
}

Status check_trace(const SimTiming& timing) {
  for (const auto& [variant, values] : timing.trace_ms) {
    if (values.empty()) return fail(Code::invalid, "timing.trace_ms.{} is empty", variant);
    for (const double ms : values)
      if (!(ms > 0 && ms <= 1e6))
        return fail(Code::invalid, "timing.trace_ms.{} holds {}: must be over 0 and at most 1e6", variant,
                    ms);
    const auto window = static_cast<std::size_t>(timing.trace_window);
    if (window > 0 && values.size() % window != 0)
      return fail(Code::invalid, "timing.trace_ms.{} has {} values, no multiple of trace_window {}", variant,
                  values.size(), window);
  }
  return {};
}

Status check_timing(const SimTiming& timing) {
  FURLONG_CHECK(check_bounds({{"timing.base_ms", timing.base_ms, 1e-6, 1e6},
                              {"timing.noise", timing.noise, 0, 10},
                              {"timing.window_noise", timing.window_noise, 0, 10},
                              {"timing.autocorrelation", timing.autocorrelation, -0.999999, 0.999999},
                              {"timing.jitter_ms", timing.jitter_ms, 0, 1e6},
                              {"timing.ramp_per_s", timing.ramp_per_s, -10, 10},
                              {"timing.first_launch_slow", timing.first_launch_slow, -0.9, 100},
                              {"timing.cold_slow", timing.cold_slow, -0.9, 100},
                              {"timing.heavy_tail", timing.heavy_tail, 0, 1},
                              {"timing.trace_window", static_cast<double>(timing.trace_window), 0, 1e9}}));
  for (const auto& [variant, gain] : timing.gain)
    FURLONG_CHECK_DOING(check_bounds({{variant, gain, -0.99, 1e4}}), "timing.gain");
  for (const double at_s : timing.step_at_s)
    FURLONG_CHECK(check_bounds({{"timing.step_at_s", at_s, 0, 1e9}}));
  return check_trace(timing);
}

// --- JSON

template <class T, class Read>
void read_map(JsonObject& object, std::string_view key, std::map<std::string, T>& into, Read read_one) {
  const Json* const map = object.object(key);
  if (map == nullptr) return;
  JsonObject members(*map, object.path(key));
  for (const auto& [variant, unused] : map->items()) {
    T value{};
    read_one(members, variant, value);
    into[variant] = std::move(value);
  }
  if (Status ok = members.strict(); !ok) object.keep(ok.error());
}

void read_numbers(JsonObject& object, std::string_view key, std::vector<double>& into) {
  const Json* const array = object.array(key);
  if (array == nullptr) return;
  into.clear();
  for (const Json& item : *array) {
    if (!item.is_number())
      return object.keep(fail(Code::invalid, "{}[{}] must be a number, not {}", object.path(key), into.size(),
                              item.type_name()));
    into.push_back(item.get<double>());
  }
}

Result<SimTiming> read_timing(const Json& json, const std::string& where) {
  SimTiming timing;
  JsonObject object(json, where);
  object.number("base_ms", timing.base_ms);
  read_map(object, "gain", timing.gain,
           [](JsonObject& o, const std::string& key, double& v) { o.number(key, v); });
  object.number("noise", timing.noise);
  object.number("window_noise", timing.window_noise);
  object.number("autocorrelation", timing.autocorrelation);
  object.number("jitter_ms", timing.jitter_ms);
  object.number("ramp_per_s", timing.ramp_per_s);
  object.number("first_launch_slow", timing.first_launch_slow);
  object.number("cold_slow", timing.cold_slow);
  object.number("heavy_tail", timing.heavy_tail);
  read_numbers(object, "step_at_s", timing.step_at_s);
  read_map(object, "trace_ms", timing.trace_ms,
           [](JsonObject& o, const std::string& key, std::vector<double>& v) { read_numbers(o, key, v); });
  object.integer("trace_window", timing.trace_window);
  FURLONG_CHECK(object.strict());
  return timing;
}

Result<SimFaultPlan> read_fault(const Json& json, const std::string& where) {
  SimFaultPlan plan;
  std::string name;
  JsonObject object(json, where);
  object.require({"variant", "fault"});
  object.text("variant", plan.variant);
  object.text("fault", name);
  object.integer("after_launches", plan.after_launches);
  object.integer("for_launches", plan.for_launches);
  object.integer("argument", plan.argument, -1);
  FURLONG_CHECK(object.strict());
  const auto found = std::ranges::find(fault_names, name);
  const std::vector<std::string> known(fault_names.begin(), fault_names.end());
  if (found == fault_names.end())
    return fail(Code::invalid, "{}.fault: '{}' is no fault{}; known are {}", where, name,
                did_you_mean(name, known), join(known, ", "));
  plan.fault = static_cast<SimFault>(found - fault_names.begin());
  return plan;
}

Result<Silicon> read_silicon(const Json& json, const std::string& where) {
  Silicon silicon;
  JsonObject object(json, where);
  object.text("vendor", silicon.vendor);
  object.text("arch", silicon.arch);
  object.integer("multiprocessors", silicon.multiprocessors);
  object.integer("memory_bytes", silicon.memory_bytes);
  object.integer("memory_clock_mhz", silicon.memory_clock_mhz);
  FURLONG_CHECK(object.strict());
  return silicon;
}

// The facts stand beside the other members of a device.
Status read_facts(JsonObject& object, Facts& facts) {
  object.text("label", facts.label);
  if (const Json* const silicon = object.object("silicon")) {
    FURLONG_TRY(facts.silicon, read_silicon(*silicon, object.path("silicon")));
  }
  object.text("driver", facts.driver);
  object.text("compiler", facts.compiler);
  object.text("uuid", facts.uuid);
  std::vector<std::string> languages;
  object.texts("languages", languages);
  for (const std::string& name : languages) {
    FURLONG_TRY(const Language language, parse_language(name));
    facts.languages.push_back(language);
  }
  object.integer("max_threads_per_block", facts.max_threads_per_block, 1);
  if (const Json* const block = object.array("max_block")) {
    std::vector<double> axes;
    read_numbers(object, "max_block", axes);
    if (axes.size() != 3 ||
        std::ranges::any_of(*block, [](const Json& n) { return !n.is_number_unsigned() || n == 0; }))
      return fail(Code::invalid, "{} must be three whole numbers of at least 1", object.path("max_block"));
    for (std::size_t axis = 0; axis < 3; ++axis) facts.max_block[axis] = (*block)[axis].get<std::uint64_t>();
  }
  object.integer("max_shared_bytes", facts.max_shared_bytes);
  object.integer("max_buffer_bytes", facts.max_buffer_bytes);
  object.integer("warp", facts.warp, 1);
  object.boolean("runs_on_host_cpu", facts.runs_on_host_cpu);
  object.boolean("memory_is_host_memory", facts.memory_is_host_memory);
  return {};
}

Result<SimOptions> read_device(const Json& json, const std::string& where) {
  SimOptions options;
  JsonObject object(json, where);
  FURLONG_CHECK(read_facts(object, options.facts));
  if (const Json* const timing = object.object("timing")) {
    FURLONG_TRY(options.timing, read_timing(*timing, object.path("timing")));
  }
  if (const Json* const faults = object.array("faults")) {
    for (const Json& fault : *faults) {
      FURLONG_TRY(SimFaultPlan plan,
                  read_fault(fault, fmt::format("{}[{}]", object.path("faults"), options.faults.size())));
      options.faults.push_back(std::move(plan));
    }
  }
  object.integer("memory_bytes", options.memory_bytes, std::uint64_t{1});
  object.integer("seed", options.seed);
  object.number("compile_ms", options.compile_ms);
  object.integer("compile_threads", options.compile_threads, 1);
  object.number("hang_ms", options.hang_ms);
  object.number("transfer_gb_per_s", options.transfer_gb_per_s);
  read_map(object, "registers", options.registers,
           [](JsonObject& o, const std::string& key, int& v) { o.integer(key, v); });
  read_map(object, "power_w", options.power_w,
           [](JsonObject& o, const std::string& key, double& v) { o.number(key, v); });
  object.number("idle_w", options.idle_w);
  object.number("power_limit_w", options.power_limit_w);
  object.number("clock_mhz", options.clock_mhz);
  FURLONG_CHECK(object.strict());
  FURLONG_CHECK_DOING(check_sim_options(options), "{}", where);
  return options;
}

}  // namespace

std::string_view sim_fault_name(SimFault fault) { return fault_names[static_cast<std::size_t>(fault)]; }

Status check_sim_options(const SimOptions& options) {
  FURLONG_CHECK(check_timing(options.timing));
  FURLONG_CHECK(check_bounds({{"memory_bytes", static_cast<double>(options.memory_bytes), 1, 1e18},
                              {"compile_ms", options.compile_ms, 0, 1e9},
                              {"compile_threads", static_cast<double>(options.compile_threads), 1, 1024},
                              {"hang_ms", options.hang_ms, 0, 1e9},
                              {"transfer_gb_per_s", options.transfer_gb_per_s, 1e-6, 1e9},
                              {"idle_w", options.idle_w, 0, 1e6},
                              {"power_limit_w", options.power_limit_w, 0, 1e6},
                              {"clock_mhz", options.clock_mhz, 1, 1e6}}));
  for (const auto& [variant, watts] : options.power_w)
    FURLONG_CHECK_DOING(check_bounds({{variant, watts, 0, 1e6}}), "power_w");
  for (std::size_t i = 0; i < options.faults.size(); ++i) {
    const SimFaultPlan& plan = options.faults[i];
    if (plan.variant.empty()) return fail(Code::invalid, "faults[{}].variant is empty; '*' means any", i);
    FURLONG_CHECK_DOING(
        check_bounds({{"after_launches", static_cast<double>(plan.after_launches), 0, 2147483647},
                      {"for_launches", static_cast<double>(plan.for_launches), 0, 2147483647},
                      {"argument", static_cast<double>(plan.argument), -1, 1000}}),
        "faults[{}]", i);
  }
  return {};
}

Result<std::vector<SimOptions>> parse_sim_options(std::string_view json, std::string_view name) {
  FURLONG_TRY(const Json document, json_parse(json, name));
  JsonObject object(document, std::string(name));
  int found = schema;
  object.require({"schema"});
  object.integer("schema", found, std::numeric_limits<int>::min());
  FURLONG_CHECK(object.status());
  if (found != schema)
    return fail(Code::incompatible, "{}: schema {} is not known, expected {}", name, found, schema);
  object.require({"devices"});
  const Json* const devices = object.array("devices");
  FURLONG_CHECK(object.strict());
  std::vector<SimOptions> options;
  for (const Json& device : *devices) {
    FURLONG_TRY(SimOptions read, read_device(device, fmt::format("{}: devices[{}]", name, options.size())));
    options.push_back(std::move(read));
  }
  return options;
}

}  // namespace furlong::device
