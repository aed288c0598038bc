// Writes a first program file from what kernel_text reads.
#include "furlong/program/init.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "furlong/base/text.h"
#include "furlong/program/internal/init_plan.h"
#include "furlong/program/internal/kernel_text.h"
#include "furlong/program/internal/reader.h"
#include "furlong/program/program.h"

namespace furlong::program {
namespace {

using internal::expression_name;
using internal::is_size;
using internal::KernelText;
using KnobText = internal::InitPlan::Knob;
using internal::Parameter;

std::string_view language_of(std::string_view file_name) {
  const std::string extension = std::filesystem::path(file_name).extension().string();
  if (extension == ".cu") return "cuda";
  if (extension == ".cl") return "opencl";
  if (extension == ".cpp" || extension == ".cc" || extension == ".cxx") return "host";
  return {};
}

std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

class Writer {
 public:
  Writer(std::string_view source, std::string_view file_name, std::string_view language,
         const std::vector<KernelText>& kernels, const KernelText& kernel)
      : source_(source), file_name_(file_name), language_(language), kernels_(kernels), kernel_(kernel) {}

  Result<FirstProgram> write() {
    FURLONG_CHECK(check_parameters());
    name_ = std::filesystem::path(file_name_).stem().string();
    for (char& c : name_)
      if (!internal::is_identifier(std::string("a") + c) && c != '-' && c != '.') c = '_';
    plan_ = internal::plan_first_program(source_, language_, kernel_);
    write_head();
    write_problem();
    write_launch();
    for (const Parameter& parameter : kernel_.parameters) write_argument(parameter);
    write_check();
    for (const KnobText& knob : plan_.knobs) write_knob(knob);
    if (plan_.block.empty() && internal::is_identifier(plan_.block_x))  // knobs, not numbers
      line(
          "\n[[constraint]]\nexpression = \"{} * {} <= device.max_threads\"\nreason = \"threads of a block\"",
          plan_.block_x, plan_.block_y);
    FirstProgram result;
    result.text = std::move(text_);
    result.file_name = std::filesystem::path(file_name_).stem().string() + ".toml";
    result.entry = kernel_.name;
    for (const KernelText& each : kernels_) result.kernels.push_back(each.name);
    result.marks = marks_;
    return result;
  }

 private:
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... args) {
    text_ += fmt::format(format, std::forward<A>(args)...) + "\n";
  }
  template <class... A>
  void fill_in(fmt::format_string<A...> format, A&&... args) {
    text_ += "# FILL IN: " + fmt::format(format, std::forward<A>(args)...) + "\n";
    ++marks_;
  }

  Status check_parameters() const {
    std::set<std::string> names;
    for (const Parameter& parameter : kernel_.parameters) {
      if (!internal::is_identifier(parameter.name) || !names.insert(parameter.name).second)
        return fail(Code::invalid, "{}: kernel '{}' has a parameter without a name of its own", file_name_,
                    kernel_.name);
      if (parameter.local_space)
        return fail(Code::invalid,
                    "{}: parameter '{}' of kernel '{}' is local memory, which is no argument of a program: "
                    "declare the array inside the kernel",
                    file_name_, parameter.name, kernel_.name);
      if (!parameter.type && template_type(parameter) == nullptr)
        return fail(Code::invalid,
                    "{}: parameter '{}' of kernel '{}' has the type '{}', which a program cannot pass: "
                    "numbers and pointers to numbers can be passed",
                    file_name_, parameter.name, kernel_.name, parameter.type_text);
    }
    if (std::none_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                     [](const Parameter& p) { return p.pointer && !p.constant; }))
      return fail(Code::invalid,
                  "{}: kernel '{}' writes to no buffer (every pointer is const): there would be nothing to "
                  "check",
                  file_name_, kernel_.name);
    return {};
  }

  // The template parameter that is this parameter's type, or nullptr.
  const internal::TemplateParameter* template_type(const Parameter& parameter) const {
    for (const auto& each : kernel_.templates)
      if (each.is_type && internal::has_word(parameter.type_text, each.name)) return &each;
    return nullptr;
  }
  ElementType type_of(const Parameter& parameter) const { return parameter.type.value_or(ElementType::f32); }

  std::string entry() const {
    if (kernel_.templates.empty()) return kernel_.name;
    std::string list;
    std::size_t knob = 0;
    for (const auto& parameter : kernel_.templates) {
      if (!list.empty()) list += ", ";
      list += parameter.is_type ? "float" : "{" + plan_.knobs[knob++].name + "}";
    }
    return kernel_.name + "<" + list + ">";
  }

  void write_head() {
    line("# A first program file for {}, to be completed where it says FILL IN.", file_name_for_comment());
    line("# Every key is described in docs/formats/program.md.");
    if (kernels_.size() > 1) {
      std::vector<std::string> others;
      for (const KernelText& each : kernels_)
        if (each.name != kernel_.name) others.push_back(each.name);
      line("# Other kernels in the source: {}.", join(others, ", "));
    }
    line("format = 1\n\n[program]\nname = {}", toml_text(name_));
    fill_in("one sentence on what the kernel does");
    line("summary = \"\"");
    line("language = \"{}\"\nsource = {}", language_, toml_text(file_name_));
    if (!kernel_.templates.empty()) fill_in("the template's arguments; {{name}} stands for a knob's value");
    line("entry = {}", toml_text(entry()));
    line("# include = [\"include\"]          # folders with headers, relative to this file");
    line("# options = [\"...\"]              # compiler options");
    line("# defines = {{ NAME = 1 }}         # macros that no knob turns");
  }

  std::string file_name_for_comment() const {
    std::string name(file_name_);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; },
        '?');
    return name;
  }

  void write_problem() {
    line("");
    fill_in("the sizes at which the kernel matters to you (--problem changes them for one race)");
    line("[problem]");
    for (const std::string& size : plan_.sizes) line("{} = {}", size, plan_.default_size);
  }

  void write_two_dimensions() {
    const std::string& x = plan_.sizes[0];
    const std::string& y = plan_.sizes[plan_.sizes.size() > 1 ? 1 : 0];
    if (language_ == "host") {
      line("grid = [{}, {}]\nblock = 1", toml_text(x), toml_text(y));
      return;
    }
    line("grid = [{}, {}]", toml_text(fmt::format("ceil_div({}, {})", x, plan_.block_x)),
         toml_text(fmt::format("ceil_div({}, {})", y, plan_.block_y)));
    line("block = [{}, {}]", toml_text(plan_.block_x), toml_text(plan_.block_y));
  }

  void write_launch() {
    line("");
    fill_in("how many blocks and threads the kernel needs; expressions may use knobs and problem parameters");
    line("[launch]");
    if (plan_.block.empty()) {
      write_two_dimensions();
    } else {
      const std::string size = plan_.sizes.size() == 1 ? plan_.sizes[0] : plan_.elements;
      line("grid = {}\nblock = {}", toml_text(fmt::format("ceil_div({}, {})", size, plan_.block)),
           toml_text(plan_.block));
    }
    if (language_ == "host")
      line("# A host kernel is called once a block and loops over block.threads_x itself.");
    if (internal::has_word(kernel_.body, "__shared__") && internal::has_word(kernel_.body, "extern")) {
      fill_in("bytes of dynamic shared memory");
      line("shared_bytes = {}",
           toml_text(fmt::format("({}) * 4", plan_.block.empty() ? "16 * 16" : plan_.block)));
    }
  }

  void write_scalar(const Parameter& parameter) {
    const std::string name = expression_name(parameter.name);
    line("kind = \"scalar\"\ntype = \"{}\"", element_name(type_of(parameter)));
    if (std::find(plan_.sizes.begin(), plan_.sizes.end(), name) != plan_.sizes.end() && is_size(parameter)) {
      line("value = {}", toml_text(name));
      return;
    }
    fill_in("its value");
    line("value = {}", is_floating(type_of(parameter)) ? "1.5" : "1");
  }

  void write_argument(const Parameter& parameter) {
    line("\n[[argument]]\nname = {}", toml_text(parameter.name));
    if (!parameter.pointer) return write_scalar(parameter);
    line("kind = \"{}\"\ntype = \"{}\"", parameter.constant_space ? "constant" : "buffer",
         element_name(type_of(parameter)));
    fill_in("how many elements it has");
    const std::string size =
        parameter.lanes == 1
            ? plan_.elements
            : fmt::format("{} * {}", parameter.lanes == 3 && language_ == "opencl" ? 4 : parameter.lanes,
                          plan_.elements);
    line("size = {}", toml_text(size));
    if (parameter.constant) {
      line("direction = \"in\"");
      write_range(parameter);
      return;
    }
    if (internal::only_written(kernel_.body, parameter.name)) {
      line("direction = \"out\"");
      return;
    }
    fill_in("\"out\" if the kernel only writes it, \"scratch\" if nobody reads it afterwards");
    line("direction = \"inout\"");
    write_range(parameter);
  }

  void write_range(const Parameter& parameter) {
    if (is_floating(type_of(parameter))) {
      line(
          "fill = \"random\"               # or zeros, sequence, value, file = \"x.npy\"\nlow = -1.0\nhigh = "
          "1.0");
      return;
    }
    fill_in("the values that it may hold (indices must stay inside their array)");
    line(
        "fill = \"random\"               # or zeros, sequence, value, file = \"x.npy\"\nlow = 0\nhigh = 100");
  }

  void write_check() {
    bool floats = false;
    std::uint64_t bytes = 0;
    for (const Parameter& parameter : kernel_.parameters) {
      if (!parameter.pointer) continue;
      bytes += element_bytes(type_of(parameter)) * static_cast<std::uint64_t>(parameter.lanes);
      floats = floats || (!parameter.constant && is_floating(type_of(parameter)));
    }
    line("\n[check]");
    if (floats) {
      fill_in("how far an output may be off (norm of the error over norm of the reference)");
      line("kind = \"tolerance\"\nbound = 1e-5");
    } else {
      line("kind = \"exact\"");
    }
    fill_in("a reference of your own, so that base is checked too");
    line(
        "reference = \"base\"             # or host:reference.cpp:function, library:reference.so:function, "
        "files");
    line("\n[work]");
    fill_in("what a launch does, for rates and shares of the card's ceiling");
    line("unit = \"element\"\namount = {}\nbytes = {}", toml_text(plan_.elements),
         toml_text(fmt::format("({}) * {}", plan_.elements, bytes)));
  }

  // Tags by the rule of the reader unless two knobs' would meet.
  bool tags_meet(const KnobText& knob) const {
    const auto initials = [](const std::string& name) {
      std::string result;
      for (const std::string& part : split(name, '_'))
        if (!part.empty()) result += part[0];
      return result;
    };
    return std::count_if(plan_.knobs.begin(), plan_.knobs.end(),
                         [&](const KnobText& other) { return initials(other.name) == initials(knob.name); }) >
               1 ||
           initials(knob.name).empty() ||
           (initials(knob.name).back() >= '0' && initials(knob.name).back() <= '9');
  }

  void write_knob(const KnobText& knob) {
    line("\n[[knob]]\nname = {}", toml_text(knob.name));
    fill_in("the values to try, the default first");
    std::vector<std::string> values;
    std::vector<std::string> tags;
    for (const std::int64_t value : knob.values) {
      values.push_back(fmt::format("{}", value));
      tags.push_back(tags.empty()
                         ? "\"\""
                         : toml_text(fmt::format("{}_{}", knob.name, replace_all(values.back(), "-", "m"))));
    }
    line("values = [{}]", join(values, ", "));
    if (tags_meet(knob)) line("tags = [{}]", join(tags, ", "));
    if (knob.macro.empty()) {
      line("applies = \"launch\"");
    } else if (knob.guarded) {
      line("applies = {}", knob.launch ? "[\"define\", \"launch\"]" : "\"define\"");
      if (knob.macro != knob.name) line("define = {}", toml_text(knob.macro));
    } else {
      write_rewrites(knob);
    }
    line("# wins = \"when a large value is the better one\"\n# loses = \"when it is not\"");
  }

  void write_rewrites(const KnobText& knob) {
    line(
        "# The source defines {} itself; each value rewrites that line. Under #ifndef {} it could be applies "
        "= \"define\".",
        knob.macro, knob.macro);
    line("applies = {}", knob.launch ? "[\"rewrite\", \"launch\"]" : "\"rewrite\"");
    line("rewrites = [");
    for (std::size_t i = 1; i < knob.values.size(); ++i)
      line("  {{ value = {}, anchor = {}, replace = {} }},", knob.values[i], toml_text(knob.line),
           toml_text(fmt::format("#define {} {}", knob.macro, knob.values[i])));
    line("]");
  }

  std::string_view source_;
  std::string_view file_name_;
  std::string_view language_;
  const std::vector<KernelText>& kernels_;
  const KernelText& kernel_;
  std::string name_;
  internal::InitPlan plan_;
  std::string text_;
  std::size_t marks_ = 0;
};

// What is written must be what can be read: a source can hold names and lines that nobody foresaw.
Status check_parses(const FirstProgram& first, std::string_view source, std::string_view file_name) {
  FakeFiles files;
  FURLONG_CHECK(files.write_atomic(std::filesystem::path("/init") / file_name, source));
  const auto program = parse_program(first.text, first.file_name, "/init", files);
  if (!program)
    return fail(Code::invalid,
                "{}: no program file can be made of this kernel by rule ({}); docs/formats/program.md has an "
                "example to start from",
                file_name, program.error().text());
  return {};
}

}  // namespace

Result<FirstProgram> init_program(std::string_view source, std::string_view file_name,
                                  std::string_view entry) {
  const std::string_view language = language_of(file_name);
  if (language.empty())
    return fail(Code::invalid,
                "'{}' is no kernel's source by its name: .cu is CUDA, .cl OpenCL, .cpp a host kernel",
                file_name);
  if (std::filesystem::path(file_name).has_parent_path() || !is_valid_utf8(file_name))
    return fail(Code::invalid, "'{}' must be the file's own name, without folders", file_name);
  const auto kernels = internal::find_kernels(source, language);
  std::vector<std::string> names;
  for (const KernelText& kernel : kernels) names.push_back(kernel.name);
  if (kernels.empty())
    return fail(Code::invalid, "{}: there is no kernel ({})", file_name,
                language == "cuda"     ? "a function marked __global__"
                : language == "opencl" ? "a function marked __kernel"
                                       : "a function whose first parameter is 'const furlong_block& block'");
  const auto chosen = entry.empty() ? names.begin() : std::find(names.begin(), names.end(), entry);
  if (chosen == names.end()) {
    const std::string guess = did_you_mean(entry, names);
    return fail(Code::invalid, "{}: there is no kernel '{}'{}", file_name, entry,
                guess.empty() ? fmt::format("; it has {}", join(names, ", ")) : guess);
  }
  const KernelText& kernel = kernels[static_cast<std::size_t>(chosen - names.begin())];
  FURLONG_TRY(FirstProgram first, Writer(source, file_name, language, kernels, kernel).write());
  FURLONG_CHECK(check_parses(first, source, file_name));
  return first;
}

}  // namespace furlong::program
