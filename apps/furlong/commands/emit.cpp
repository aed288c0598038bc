#include <algorithm>
#include <optional>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/outputs.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/program/emitter.h"
#include "furlong/program/linear/chips.h"
#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/cuda/nvrtc.h"
#include "furlong/race/compile_request.h"
#endif

namespace furlong::app {
namespace {

/// One variant bound to a problem and to the card that it is made for.
struct Subject {
  std::shared_ptr<const program::Program> program;
  std::optional<program::Instance> instance;
  lattice::Point point;
  program::VariantPlan plan;
  std::vector<program::LaunchPlan> launches;
  device::Facts facts;  ///< of the card
  std::string chip;     ///< its name in the table; empty for --device
};

device::Facts facts_of(const program::linear::Chip& chip) {
  device::Facts facts;
  facts.backend = "cuda";
  facts.label = chip.label;
  facts.silicon.vendor = "NVIDIA";
  facts.silicon.arch = chip.arch;
  facts.silicon.multiprocessors = chip.multiprocessors;
  facts.silicon.memory_bytes = chip.memory_bytes;
  facts.warp = 32;
  facts.max_threads_per_block = 1024;
  facts.max_shared_bytes = chip.shared_optin_bytes;
  return facts;
}

/// --language, else what the card runs, else the only one.
Result<std::string> language_of(const Arguments& arguments, const program::Program& program) {
  if (arguments.given("--language")) return arguments.value("--language");
  if (program.editions.size() == 1) return program.editions[0].language;
  if (arguments.given("--chip") || arguments.given("--cubin")) return std::string("cuda");
  std::vector<std::string> languages;
  for (const auto& edition : program.editions) languages.push_back(edition.language);
  return fail(Code::invalid, "program '{}' has texts in {}: choose one with --language", program.name,
              join(languages, ", "));
}

/// The card whose facts the emitter reads, and what the program's `chip` becomes where it has one.
Status choose_card(const Arguments& arguments, std::string_view language,
                   std::vector<std::pair<std::string, lattice::Value>>& problem, Subject& subject) {
  if (arguments.given("--device")) {
    if (arguments.given("--chip")) return fail(Code::invalid, "give --chip or --device, not both");
    device::Registry registry;
    add_backends(registry);
    FURLONG_TRY(const auto device, open_device(registry, arguments.value("--device")));
    subject.facts = device->facts();
    return {};
  }
  if (language != "cuda") {
    if (arguments.given("--chip"))
      return fail(Code::invalid, "--chip names a CUDA card, and the text is in {}: give --device", language);
    return {};
  }
  subject.chip = arguments.value("--chip");
  const auto& parameters = subject.program->problem;
  const bool has_chip = std::ranges::any_of(parameters, [](const auto& one) { return one.first == "chip"; });
  const auto given = std::ranges::find_if(problem, [](const auto& one) { return one.first == "chip"; });
  if (has_chip && !subject.chip.empty() && given != problem.end())
    return fail(Code::invalid, "give --chip {} or --problem chip={}, not both", subject.chip,
                given->second.text());
  if (has_chip && subject.chip.empty() && given != problem.end() && given->second.text() != "present")
    subject.chip = given->second.text();
  if (has_chip && !subject.chip.empty()) problem.emplace_back("chip", lattice::Value(subject.chip));
  if (subject.chip.empty()) subject.chip = program::linear::default_chip;
  FURLONG_TRY(const auto* chip, program::linear::find_chip(subject.chip));
  subject.facts = facts_of(*chip);
  return {};
}

Result<Subject> open_subject(const Arguments& arguments) {
  Subject subject;
  FURLONG_TRY(auto request, program_request(arguments));
  if (request.geometry.empty()) request.geometry = "small";
  FURLONG_TRY(subject.program, as_input(program::open_program(request)));
  FURLONG_TRY(const std::string language, language_of(arguments, *subject.program));
  FURLONG_TRY(auto problem, problem_values(arguments.values("--problem")));
  FURLONG_CHECK(choose_card(arguments, language, problem, subject));
  const bool known = !subject.facts.backend.empty();  // else the facts that a language assumes
  FURLONG_TRY(subject.instance,
              program::Instance::make(subject.program, language, problem,
                                      known ? device_facts(subject.facts) : lattice::Environment{}));
  const program::Instance& instance = *subject.instance;
  FURLONG_TRY(subject.point,
              lattice::parse_variant(instance.lattice(), arguments.value("--variant", "base")));
  FURLONG_TRY(const std::string why, instance.lattice().why_invalid(subject.point, instance.facts()));
  if (!why.empty())
    return fail(Code::invalid, "variant '{}' is not valid for this problem and card: {}",
                arguments.value("--variant", "base"), why);
  FURLONG_TRY(subject.plan, instance.plan(subject.point));
  program::RunInputs inputs;  // launches need its problem only
  inputs.name = "the timed problem";
  inputs.problem = instance.problem();
  FURLONG_TRY(subject.launches, instance.launches(subject.point, inputs));
  return subject;
}

/// The text that is compiled: what the compiler is told with -D stands at its head.
std::string text_of(const program::VariantPlan& plan) {
  std::string text;
  for (const auto& [name, value] : plan.defines) text += fmt::format("#define {} {}\n", name, value);
  return text + plan.source;
}

/// A number; the bytes in hexadecimal where JSON has none for the type.
Json scalar_json(program::ElementType type, const Bytes& bytes) {
  if (type == program::ElementType::f32) return load_le<float>(bytes.data());
  if (type == program::ElementType::f64) return load_le<double>(bytes.data());
  if (program::is_floating(type)) return to_hex(bytes);
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  if (program::element_name(type).starts_with('u')) return value;
  const auto unused_bits = 64 - 8 * static_cast<int>(bytes.size());
  return static_cast<std::int64_t>(value << unused_bits) >> unused_bits;
}

Json scalars_json(const Subject& subject, const program::LaunchPlan& launch) {
  Json scalars = Json::object();
  for (const auto& [index, bytes] : launch.scalars) {
    const program::ArgumentSpec& argument = subject.program->arguments[index];
    scalars[argument.name] = scalar_json(argument.type, bytes);
  }
  return scalars;
}

Json launches_json(const Subject& subject) {
  Json list = Json::array();
  for (const auto& launch : subject.launches) {
    Json arguments = Json::array();
    for (const std::size_t index : launch.arguments)
      arguments.push_back(subject.program->arguments[index].name);
    list.push_back({{"entry", launch.entry},
                    {"grid", launch.grid},
                    {"block", launch.block},
                    {"shared_bytes", launch.shared_bytes},
                    {"arguments", std::move(arguments)},
                    {"scalars", scalars_json(subject, launch)},
                    {"once", launch.once}});
  }
  return list;
}

Json document(const Subject& subject, const std::string& text) {
  Json defines = Json::object(), problem = Json::object();
  for (const auto& [name, value] : subject.plan.defines) defines[name] = value;
  for (const auto& [name, unused] : subject.program->problem)
    problem[name] = subject.instance->problem().at(name).text();
  const auto& emitter = subject.instance->edition().emitter;
  return {{"schema", 1},
          {"program", subject.program->name},
          {"language", subject.instance->edition().language},
          {"emitter", emitter ? Json(std::string(emitter->name())) : Json()},
          {"variant", subject.plan.name},
          {"problem", std::move(problem)},
          {"chip", subject.chip.empty() ? Json() : Json(subject.chip)},
          {"arch", subject.facts.silicon.arch},
          {"text", text},
          {"options", subject.plan.options},
          {"defines", std::move(defines)},
          {"launches", launches_json(subject)},
          {"notes", subject.plan.notes},
          {"fallback", subject.plan.fallback}};
}

#ifdef FURLONG_WITHOUT_DEVICE_CUDA
Result<Json> write_cubin(const Subject&, const std::string&) {
  return fail(Code::unavailable, "this furlong was built without CUDA");
}
#else
Result<device::Cubin> compile(const Subject& subject, std::string& compiler) {
  if (subject.instance->edition().language != "cuda")
    return fail(Code::invalid, "--cubin compiles CUDA, and the text is in {}",
                subject.instance->edition().language);
  FURLONG_TRY(const auto nvrtc, device::Nvrtc::open());
  compiler = nvrtc.version();
  std::uint64_t shared_bytes = 0;
  for (const auto& launch : subject.launches) shared_bytes = std::max(shared_bytes, launch.shared_bytes);
  return nvrtc.compile(race::compile_request(*subject.instance, subject.plan, shared_bytes),
                       subject.facts.silicon.arch);
}

/// What the compiler said, as JSON.
Result<Json> write_cubin(const Subject& subject, const std::string& file) {
  std::string compiler;
  FURLONG_TRY(const device::Cubin cubin, compile(subject, compiler));
  FURLONG_CHECK(system_files().write_atomic(file, as_text(cubin.image)));
  const auto known = [](const auto& value) { return value ? Json(*value) : Json(); };
  return Json{{"file", file},
              {"bytes", cubin.image.size()},
              {"entries", cubin.lowered},
              {"registers", known(cubin.registers)},
              {"spill_bytes", known(cubin.spill_bytes)},
              {"shared_bytes", known(cubin.shared_bytes)},
              {"code_hash", cubin.code_hash},
              {"compiler", compiler}};
}
#endif

std::string words_of(const Json& cubin, const std::string& arch) {
  const auto known = [&](const char* key) {
    return cubin[key].is_null() ? std::string("?") : cubin[key].dump();
  };
  return fmt::format(
      "{}: {} bytes for {} by {}: {} registers, {} bytes spilled, {} bytes of static shared memory\n",
      cubin["file"].get<std::string>(), known("bytes"), arch, cubin["compiler"].get<std::string>(),
      known("registers"), known("spill_bytes"), known("shared_bytes"));
}

Result<int> run(const Arguments& arguments) {
  FURLONG_CHECK(can_write_outputs(arguments, {"--out", "--cubin"}));
  FURLONG_TRY(const Subject subject, open_subject(arguments));
  const program::VariantPlan& plan = subject.plan;
  const bool json = arguments.flag("--json");
  if (!json)
    for (const std::string& note : plan.notes)
      print_err(fmt::format("furlong emit: {}: {}\n", plan.name, note));
  if (arguments.flag("--strict") && plan.fallback)
    return fail(Code::mismatch, "emit: {} is not made as asked (--strict): {}", plan.name,
                join(plan.notes, "; "));
  const std::string text = text_of(plan);
  Json out = document(subject, text);
  const std::string file = arguments.value("--out", "-");
  if (file != "-") FURLONG_CHECK(system_files().write_atomic(file, text));
  if (arguments.given("--cubin")) {
    FURLONG_TRY(out["cubin"], write_cubin(subject, arguments.value("--cubin")));
    if (!json) print_out(words_of(out["cubin"], subject.facts.silicon.arch));
  }
  if (json)
    print_out(json_pretty(out));
  else if (file == "-" && (!arguments.given("--cubin") || arguments.given("--out")))
    print_out(text);
  return exit_ok;
}

std::vector<std::string> chip_names() {
  std::vector<std::string> names;
  for (const auto& chip : program::linear::chips()) names.push_back(chip.name);
  return names;
}

}  // namespace

CommandSpec emit_command() {
  std::vector<OptionSpec> options = {
      {.name = "--variant", .value_name = "V", .help = "The variant's name. Default: base."},
      {.name = "--chip",
       .value_name = "NAME",
       .help = fmt::format("Make CUDA text for this card, present or not. Default: {}.",
                           program::linear::default_chip),
       .choices = chip_names()},
      {.name = "--device",
       .value_name = "D",
       .help = "Make the text for this device in place of a card by name.",
       .complete = "device"},
      {.name = "--out",
       .value_name = "FILE",
       .help = "Write the text there; - for standard output.",
       .complete = "file"},
      {.name = "--cubin",
       .value_name = "FILE",
       .help = "Compile the CUDA text by NVRTC and write the machine code there; says registers, spills and "
               "shared memory. The text is then printed with --out only.",
       .complete = "file"},
      {.name = "--strict",
       .value_name = "",
       .help =
           "Fail when something was not made as asked: a shape or a card that the variant falls back on."},
      {.name = "--json", .value_name = "", .help = "Text, launches and notes as JSON."}};
  for (auto& option : program_options())
    if (option.name != "--allow-unsigned") options.push_back(option);
  return {
      .name = "emit",
      .summary = "Print the kernel text of one variant, or compile it, for a card that need not be present.",
      .description =
          "The text is what a race compiles: made by the program's emitter, or its source after rewrites, "
          "with the defines at its head. What an emitter resolved is told on standard error.\n"
          "Nothing runs on a device, and no card is needed. --cubin needs NVIDIA's compiler library.\n"
          "Exit 0; 2: bad usage or input, such as a text that does not compile; 3: with --strict, not made "
          "as "
          "asked; 4: no compiler.",
      .positionals = {{.name = "PROGRAM",
                       .help = "A program file (.toml), a pack's folder, or a shipped program's name (gemv).",
                       .choices = shipped_names()}},
      .options = options,
      .examples = {{"furlong emit gemv --variant r2-u2 --problem n=28672,k=8192 --chip h200", ""},
                   {"furlong emit gemm --variant imma --chip a100 --cubin gemm.cubin", ""},
                   {"furlong emit my_kernel.toml --variant u4 --out my_kernel_u4.cu", ""}},
      .run = run};
}

}  // namespace furlong::app
