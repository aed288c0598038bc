// Writes a first program file from what kernel_text reads.
#include "furlong/program/init.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "furlong/base/text.h"
#include "furlong/program/internal/kernel_text.h"
#include "furlong/program/internal/reader.h"
#include "furlong/program/program.h"

namespace furlong::program {
namespace {

using internal::KernelText;
using internal::MacroText;
using internal::Parameter;

constexpr std::size_t kMostKnobs = 12;
constexpr std::size_t kMostSizes = 3;

std::string_view language_of(std::string_view file_name) {
  const std::string extension = std::filesystem::path(file_name).extension().string();
  if (extension == ".cu") return "cuda";
  if (extension == ".cl") return "opencl";
  if (extension == ".cpp" || extension == ".cc" || extension == ".cxx") return "host";
  return {};
}

// A name that [problem] or [[knob]] takes, near to the given one.
std::string expression_name(std::string name) {
  static const std::set<std::string> reserved = {"and",  "or",    "not",      "in",   "if",    "else",
                                                 "True", "False", "None",     "true", "false", "min",
                                                 "max",  "abs",   "ceil_div", "int"};
  return reserved.contains(name) ? name + "_" : name;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
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

bool is_size(const Parameter& parameter) {
  return !parameter.pointer && parameter.type && !is_floating(*parameter.type) && parameter.lanes == 1 &&
         element_bytes(*parameter.type) >= 4;
}

// A knob to be written.
struct KnobText {
  std::string name;
  std::string macro;                 ///< empty: a knob of the launch alone
  std::vector<std::int64_t> values;  ///< the default first
  bool launch = false;
  bool guarded = true;
  std::string line;  ///< of an unguarded macro
};

std::vector<std::int64_t> proposed_values(std::int64_t value) {
  if (value == 0) return {0, 1};
  if (value == 1) return {1, 2, 4};
  const bool power = value > 1 && (value & (value - 1)) == 0;
  if (power && value <= 1 << 20) return {value, value / 2, value * 2};
  return {value, value > 0 ? value - 1 : value + 1};
}

bool names_block(const std::string& macro) {
  const std::string name = lower(macro);
  for (const std::string_view word :
       {"block", "thread", "group", "local_size", "wg_size", "tpb", "workgroup"})
    if (name.find(word) != std::string::npos) return true;
  return false;
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
    choose_sizes();
    choose_knobs();
    write_head();
    write_problem();
    write_launch();
    for (const Parameter& parameter : kernel_.parameters) write_argument(parameter);
    write_check();
    for (const KnobText& knob : knobs_) write_knob(knob);
    if (block_.empty() && internal::is_identifier(block_x_))  // knobs, not numbers
      line(
          "\n[[constraint]]\nexpression = \"{} * {} <= device.max_threads\"\nreason = \"threads of a block\"",
          block_x_, block_y_);
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

  void choose_sizes() {
    for (const Parameter& parameter : kernel_.parameters)
      if (is_size(parameter) && sizes_.size() < kMostSizes) sizes_.push_back(expression_name(parameter.name));
    if (sizes_.empty()) sizes_.push_back("n");
    for (const std::string& size : sizes_) {
      if (!elements_.empty()) elements_ += " * ";
      elements_ += size;
      taken_.insert(size);
    }
    static constexpr std::array<int, 3> defaults = {1 << 20, 1024, 64};
    default_size_ = defaults[sizes_.size() - 1];
  }

  std::string free_name(const std::string& macro) {
    std::string name = expression_name(lower(macro));
    if (!internal::is_identifier(name) || taken_.contains(name)) name = expression_name(macro);
    while (taken_.contains(name)) name += "_";
    taken_.insert(name);
    return name;
  }

  void choose_knobs() {
    for (const auto& parameter : kernel_.templates)
      if (!parameter.is_type) {
        const bool block = names_block(parameter.name);
        knobs_.push_back({.name = free_name(parameter.name),
                          .macro = {},
                          .values = block ? std::vector<std::int64_t>{256, 64, 128, 512}
                                          : std::vector<std::int64_t>{1, 2, 4},
                          .launch = true,
                          .guarded = true,
                          .line = {}});
        if (block && block_.empty()) block_ = knobs_.back().name;
      }
    for (const MacroText& macro : internal::find_macros(source_)) add_macro(macro);
    if (block_.empty() && kernel_.fixed_block.size() == 1 && !two_dimensions())
      block_ = fmt::format("{}", kernel_.fixed_block[0]);
    if (!block_.empty()) return;
    if (two_dimensions()) return choose_two_dimensions();
    block_ = free_name("block");
    knobs_.push_back({.name = block_,
                      .macro = {},
                      .values = {256, 64, 128, 512},
                      .launch = true,
                      .guarded = true,
                      .line = {}});
  }

  void choose_two_dimensions() {
    if (language_ == "host") return;  // a block of one thread
    if (kernel_.fixed_block.size() >= 2) {
      block_x_ = fmt::format("{}", kernel_.fixed_block[0]);
      block_y_ = fmt::format("{}", kernel_.fixed_block[1]);
      return;
    }
    for (std::string* name : {&block_x_, &block_y_}) {
      *name = free_name(name == &block_x_ ? "block_x" : "block_y");
      knobs_.push_back(
          {.name = *name, .macro = {}, .values = {16, 8, 32}, .launch = true, .guarded = true, .line = {}});
    }
  }

  void add_macro(const MacroText& macro) {
    if (macro.uses < 1 || knobs_.size() >= kMostKnobs) return;
    // Without a guard the source's own #define would win over -D, so the line itself is rewritten, which
    // needs it to be there once.
    const std::size_t at = source_.find(macro.line);
    if (!macro.guarded && (trim(macro.line).size() < 10 || at == std::string_view::npos ||
                           source_.find(macro.line, at + 1) != std::string_view::npos))
      return;
    if (!macro.guarded && !is_valid_utf8(macro.line)) return;
    if (std::any_of(knobs_.begin(), knobs_.end(), [&](const KnobText& k) { return k.macro == macro.name; }))
      return;
    KnobText knob{.name = free_name(macro.name),
                  .macro = macro.name,
                  .values = proposed_values(macro.value),
                  .launch = false,
                  .guarded = macro.guarded,
                  .line = macro.line};
    if (block_.empty() && macro.value >= 16 && macro.value <= 1024 && names_block(macro.name) &&
        !two_dimensions()) {
      knob.launch = true;
      block_ = knob.name;
    }
    knobs_.push_back(std::move(knob));
  }

  bool two_dimensions() const {
    for (const std::string_view word : {"threadIdx", "blockIdx", "block"})
      if (kernel_.body.find(std::string(word) + ".y") != std::string::npos) return true;
    for (const std::string_view word : {"get_global_id(1", "get_group_id(1", "get_local_id(1"})
      if (replace_all(kernel_.body, " ", "").find(word) != std::string::npos) return true;
    return false;
  }

  std::string entry() const {
    if (kernel_.templates.empty()) return kernel_.name;
    std::string list;
    std::size_t knob = 0;
    for (const auto& parameter : kernel_.templates) {
      if (!list.empty()) list += ", ";
      list += parameter.is_type ? "float" : "{" + knobs_[knob++].name + "}";
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
    for (const std::string& size : sizes_) line("{} = {}", size, default_size_);
  }

  void write_two_dimensions() {
    const std::string& x = sizes_[0];
    const std::string& y = sizes_[sizes_.size() > 1 ? 1 : 0];
    if (language_ == "host") {
      line("grid = [{}, {}]\nblock = 1", toml_text(x), toml_text(y));
      return;
    }
    line("grid = [{}, {}]", toml_text(fmt::format("ceil_div({}, {})", x, block_x_)),
         toml_text(fmt::format("ceil_div({}, {})", y, block_y_)));
    line("block = [{}, {}]", toml_text(block_x_), toml_text(block_y_));
  }

  void write_launch() {
    line("");
    fill_in("how many blocks and threads the kernel needs; expressions may use knobs and problem parameters");
    line("[launch]");
    if (block_.empty()) {
      write_two_dimensions();
    } else {
      const std::string size = sizes_.size() == 1 ? sizes_[0] : elements_;
      line("grid = {}\nblock = {}", toml_text(fmt::format("ceil_div({}, {})", size, block_)),
           toml_text(block_));
    }
    if (language_ == "host")
      line("# A host kernel is called once a block and loops over block.threads_x itself.");
    if (internal::has_word(kernel_.body, "__shared__") && internal::has_word(kernel_.body, "extern")) {
      fill_in("bytes of dynamic shared memory");
      line("shared_bytes = {}", toml_text(fmt::format("({}) * 4", block_.empty() ? "16 * 16" : block_)));
    }
  }

  void write_scalar(const Parameter& parameter) {
    const std::string name = expression_name(parameter.name);
    line("kind = \"scalar\"\ntype = \"{}\"", element_name(type_of(parameter)));
    if (std::find(sizes_.begin(), sizes_.end(), name) != sizes_.end() && is_size(parameter)) {
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
            ? elements_
            : fmt::format("{} * {}", parameter.lanes == 3 && language_ == "opencl" ? 4 : parameter.lanes,
                          elements_);
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
    line("unit = \"element\"\namount = {}\nbytes = {}", toml_text(elements_),
         toml_text(fmt::format("({}) * {}", elements_, bytes)));
  }

  // Tags by the rule of the reader unless two knobs' would meet.
  bool tags_meet(const KnobText& knob) const {
    const auto initials = [](const std::string& name) {
      std::string result;
      for (const std::string& part : split(name, '_'))
        if (!part.empty()) result += part[0];
      return result;
    };
    return std::count_if(knobs_.begin(), knobs_.end(),
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
  std::vector<std::string> sizes_;  ///< problem parameters
  std::string elements_;            ///< their product: no dimension of an array is larger
  int default_size_ = 0;
  std::set<std::string> taken_;
  std::vector<KnobText> knobs_;
  std::string block_;  ///< a knob's name or a number; empty: two dimensions
  std::string block_x_, block_y_;  ///< of two dimensions, in the same way
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
