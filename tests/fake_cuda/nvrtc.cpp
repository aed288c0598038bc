// A made-up NVRTC: CUDA text goes through the host back end's shim to a shared object, which fake_cuda's
// driver loads. What it says of errors and registers has the form that the real one gives it.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "furlong/base/os/paths.h"
#include "furlong/device/host/internal/compiler.h"
#include "furlong/device/host/internal/cpu.h"
#include "furlong/device/host/internal/cuda_shim.h"
#include "tests/fake_cuda/image.h"
#include "tests/fake_cuda/script.h"

namespace furlong::fake {
namespace {

using namespace device;
using namespace std::chrono_literals;

enum : int {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kInvalidOption = 5,
  kCompilation = 6,
  kNamesAfterCompilation = 8,
  kNoLoweredNames = 9,
  kNameNotValid = 10,
  kInternal = 11,
  kCancelled = 13,
};

struct Program {
  std::string source, name, log;
  std::vector<std::string> expressions, lowered;
  std::string image;
  bool compiled = false;
  int (*flow)(void*, void*) = nullptr;
  void* flow_argument = nullptr;
};

struct Options {
  std::string arch = "sm_75";
  bool verbose = false;
  int most_registers = 0;
  CompileRequest request;
};

// Words after which the next argument is theirs.
bool takes_next(std::string_view word) {
  return word == "-I" || word == "-D" || word == "-U" || word == "-arch" || word == "-Xptxas";
}

bool known(const std::string& word) {
  static constexpr std::array starts{"-D",
                                     "-U",
                                     "-I",
                                     "--define-macro",
                                     "--undefine-macro",
                                     "--include-path",
                                     "--std=",
                                     "-std=",
                                     "--maxrregcount",
                                     "-maxrregcount",
                                     "--ptxas-options",
                                     "-Xptxas",
                                     "--ftz",
                                     "-ftz",
                                     "--fmad",
                                     "-fmad",
                                     "--prec-div",
                                     "-prec-div",
                                     "--prec-sqrt",
                                     "-prec-sqrt",
                                     "--use_fast_math",
                                     "-use_fast_math",
                                     "--restrict",
                                     "-restrict",
                                     "-lineinfo",
                                     "--generate-line-info",
                                     "-G",
                                     "--device-debug",
                                     "-w",
                                     "--disable-warnings",
                                     "--extra-device-vectorization",
                                     "-extra-device-vectorization",
                                     "-default-device",
                                     "--device-as-default-execution-space",
                                     "--diag",
                                     "-dopt",
                                     "--dopt",
                                     "--split-compile",
                                     "--relocatable-device-code",
                                     "-rdc",
                                     "--builtin-",
                                     "--minimal",
                                     "--no-source-include"};
  return std::any_of(starts.begin(), starts.end(),
                     [&](const char* start) { return word.starts_with(start); });
}

std::string value_after(const std::string& word, std::string_view option) {
  return word.starts_with(option) ? word.substr(option.size()) : "";
}

// What cannot be understood goes to the log.
int parse_options(std::vector<std::string> list, Options& out, std::string& log) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string word = list[i];
    if (takes_next(word) && i + 1 < list.size()) word += (word == "-arch" ? "=" : "") + list[++i];
    std::string arch = value_after(word, "--gpu-architecture=");
    if (arch.empty()) arch = value_after(word, "-arch=");
    if (!arch.empty()) {
      out.arch = arch;
      continue;
    }
    if (!known(word)) {
      log = "nvrtc: error: unrecognized option " + word + " found\n";
      return kInvalidOption;
    }
    for (const char* option : {"--maxrregcount=", "-maxrregcount="}) {
      if (const std::string count = value_after(word, option); !count.empty())
        out.most_registers = std::atoi(count.c_str());
    }
    out.verbose = out.verbose || word == "--ptxas-options=-v" || word == "-Xptxas-v";
    if (const std::string define = value_after(word, "--define-macro="); !define.empty())
      word = "-D" + define;
    if (const std::string folder = value_after(word, "--include-path="); !folder.empty())
      word = "-I" + folder;
    if (word.starts_with("-D") || word.starts_with("-U") || word.starts_with("-I") ||
        word.starts_with("-std=") || word.starts_with("--std="))
      out.request.options.push_back(word);
  }
  const std::vector<std::string> archs =
      words(Script::the().text("nvrtc_archs", "75,80,86,87,88,89,90,100,103,110,120,121"), ',');
  const std::string number =
      out.arch.starts_with("sm_") ? out.arch.substr(3, out.arch.find_last_of("0123456789") - 2) : "";
  if (std::find(archs.begin(), archs.end(), number) != archs.end()) return kSuccess;
  log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
  return kInvalidOption;
}

// "bad.src:3:10: error: …" as NVIDIA writes it: "bad.src(3): error: …".
std::string in_its_words(const std::string& log) {
  static const std::regex place("^([^:\n]+):([0-9]+):[0-9]+: (fatal )?(error|warning): ");
  std::string out;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    out += std::regex_replace(line, place, "$1($2): $4: ") + "\n";
  }
  return out;
}

// A function with C linkage keeps its name; others get one that is not theirs.
std::string lowered_name(const std::string& expression, const std::string& object) {
  const bool plain = expression.find_first_of("<:( ") == std::string::npos;
  if (plain && object.find('\0' + expression + '\0') != std::string::npos) return expression;
  std::string base = expression.substr(0, expression.find('<'));
  std::string mangled = "_Z" + std::to_string(base.size()) + base;
  for (const char c : expression.substr(base.size()))
    mangled +=
        std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : "_" + std::to_string(int(c));
  return mangled + "v";
}

std::string resources_log(const ImageEntry& entry, const std::string& arch) {
  const std::string spill = Script::the().first_of({"spill." + entry.name, "spill"}, "0");
  std::string log = "ptxas info    : Compiling entry function '" + entry.lowered + "' for '" + arch + "'\n" +
                    "ptxas info    : Function properties for " + entry.lowered + "\n    " + spill +
                    " bytes stack frame, " + spill + " bytes spill stores, " + spill +
                    " bytes spill loads\n" + "ptxas info    : Used " + std::to_string(entry.registers) +
                    " registers";
  if (entry.shared_bytes != 0) log += ", " + std::to_string(entry.shared_bytes) + " bytes smem";
  return log + ", 368 bytes cmem[0]\n";
}

ImageEntry describe(const std::string& name, const std::string& object, const Options& options) {
  const Script& script = Script::the();
  ImageEntry entry;
  entry.name = name;
  entry.lowered = lowered_name(name, object);
  entry.registers = std::atoi(script.first_of({"registers." + name, "registers"}, "32").c_str());
  entry.shared_bytes = parse_bytes(script.first_of({"shared." + name, "shared"}, "0"));
  entry.max_threads = std::atoi(script.first_of({"max_threads." + name, "max_threads"}, "1024").c_str());
  if (options.most_registers > 0) entry.registers = std::min(entry.registers, options.most_registers);
  return entry;
}

Result<std::string> shim_object(const CompileRequest& request, std::string& log, std::stop_token stop) {
  FURLONG_TRY(const host::Compiler compiler, host::find_compiler());
  FURLONG_TRY(const std::string unit, host::cuda_translation_unit(request));
  const host::Cpu cpu = host::this_cpu();
  FURLONG_TRY(const host::Compiled compiled,
              host::compile_unit(compiler, host::with_host_options(request), unit,
                                 cpu.model + " " + cpu.features, cache_folder() / "host", std::move(stop)));
  log = compiled.log;
  std::ifstream file(compiled.object.name(), std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  std::string object = bytes.str();
  if (object.size() < 64) return fail(Code::internal, "the compiled object cannot be read again");
  object.resize(std::min<std::uint64_t>(object.size(), elf_length(object.data())));
  return object;
}

int compile(Program& program, std::vector<std::string> list) {
  Options options;
  if (const int code = parse_options(std::move(list), options, program.log); code != kSuccess) return code;
  if (const auto fault = Script::the().happens("fail.nvrtcCompileProgram", "call nvrtcCompileProgram"))
    return std::atoi(fault->c_str());
  options.request.language = Language::cuda;
  options.request.name = program.name;
  options.request.source = program.source;
  options.request.source_name = program.name;
  options.request.entries = program.expressions;
  // Asked again and again while it compiles, as the real one does.
  std::stop_source stop;
  if (program.flow != nullptr && program.flow(program.flow_argument, nullptr) != 0) return kCancelled;
  const std::jthread asks([&](std::stop_token done) {
    while (program.flow != nullptr && !done.stop_requested() && !stop.stop_requested()) {
      if (program.flow(program.flow_argument, nullptr) != 0) stop.request_stop();
      std::this_thread::sleep_for(5ms);
    }
  });
  std::string warnings;
  const Result<std::string> object = shim_object(options.request, warnings, stop.get_token());
  program.log = in_its_words(object ? warnings : object.error().text());
  if (stop.stop_requested()) return kCancelled;
  if (!object) {
    const std::string& why = object.error().message();
    if (object.error().code() == furlong::Code::exhausted) return kOutOfMemory;
    if (object.error().code() != furlong::Code::invalid) return kInternal;
    return why.find("is not the name of a C++ function") != std::string::npos ? kNameNotValid : kCompilation;
  }
  Image image;
  image.arch = options.arch;
  image.toolkit_major = std::atoi(Script::the().text("nvrtc", "13.0").c_str());
  image.object = *object;
  for (const std::string& name : program.expressions) {
    image.entries.push_back(describe(name, *object, options));
    program.lowered.push_back(image.entries.back().lowered);
    if (options.verbose) program.log += resources_log(image.entries.back(), options.arch);
  }
  program.image = image.bytes();
  program.compiled = true;
  return kSuccess;
}

void minor_version(int* major, int* minor) {
  const std::vector<std::string> parts = words(Script::the().text("nvrtc", "13.0"), '.');
  *major = std::atoi(parts.front().c_str());
  *minor = parts.size() > 1 ? std::atoi(parts[1].c_str()) : 0;
}

int copy_out(const std::string& text, char* into, std::size_t extra) {
  if (into == nullptr) return kInvalidInput;
  std::memcpy(into, text.c_str(), text.size() + extra);
  return kSuccess;
}

}  // namespace
}  // namespace furlong::fake

using namespace furlong::fake;

extern "C" {

void furlong_fake_nvrtc_script(const char* text) { Script::the().set(text); }

int nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return kInvalidInput;
  minor_version(major, minor);
  return kSuccess;
}

int nvrtcCreateProgram(Program** out, const char* source, const char* name, int headers, const char* const*,
                       const char* const*) {
  if (out == nullptr || source == nullptr || headers < 0) return kInvalidInput;
  *out = new Program;
  (*out)->source = source;
  (*out)->name = name == nullptr ? "default_program" : name;
  return kSuccess;
}

int nvrtcDestroyProgram(Program** program) {
  if (program == nullptr || *program == nullptr) return kInvalidProgram;
  delete *program;
  *program = nullptr;
  return kSuccess;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  if (program == nullptr) return kInvalidProgram;
  return compile(*program, std::vector<std::string>(options, options + count));
}

int nvrtcAddNameExpression(Program* program, const char* name) {
  if (program == nullptr) return kInvalidProgram;
  if (name == nullptr) return kInvalidInput;
  if (program->compiled) return kNamesAfterCompilation;
  program->expressions.emplace_back(name);
  return kSuccess;
}

int nvrtcGetLoweredName(Program* program, const char* name, const char** lowered) {
  if (program == nullptr) return kInvalidProgram;
  if (name == nullptr || lowered == nullptr) return kInvalidInput;
  if (!program->compiled) return kNoLoweredNames;
  for (std::size_t i = 0; i < program->expressions.size(); ++i) {
    if (program->expressions[i] != name) continue;
    *lowered = program->lowered[i].c_str();
    return kSuccess;
  }
  return kNameNotValid;
}

int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  if (program == nullptr || !program->compiled) return kInvalidProgram;
  if (size == nullptr) return kInvalidInput;
  *size = program->image.size();
  return kSuccess;
}

int nvrtcGetCUBIN(Program* program, char* image) {
  if (program == nullptr || !program->compiled) return kInvalidProgram;
  return copy_out(program->image, image, 0);
}

int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  if (program == nullptr) return kInvalidProgram;
  if (size == nullptr) return kInvalidInput;
  *size = program->log.size() + 1;
  return kSuccess;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  if (program == nullptr) return kInvalidProgram;
  return copy_out(program->log, log, 1);
}

int nvrtcGetNumSupportedArchs(int* count) {
  if (count == nullptr) return kInvalidInput;
  *count = static_cast<int>(
      words(Script::the().text("nvrtc_archs", "75,80,86,87,88,89,90,100,103,110,120,121"), ',').size());
  return kSuccess;
}

int nvrtcGetSupportedArchs(int* numbers) {
  if (numbers == nullptr) return kInvalidInput;
  for (const std::string& arch :
       words(Script::the().text("nvrtc_archs", "75,80,86,87,88,89,90,100,103,110,120,121"), ','))
    *numbers++ = std::atoi(arch.c_str());
  return kSuccess;
}

int nvrtcSetFlowCallback(Program* program, int (*callback)(void*, void*), void* argument) {
  if (program == nullptr) return kInvalidProgram;
  program->flow = callback;
  program->flow_argument = argument;
  return kSuccess;
}

const char* nvrtcGetErrorString(int code) {
  switch (code) {
    case kSuccess:
      return "NVRTC_SUCCESS";
    case kOutOfMemory:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case kInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidProgram:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case kInvalidOption:
      return "NVRTC_ERROR_INVALID_OPTION";
    case kCompilation:
      return "NVRTC_ERROR_COMPILATION";
    case kNamesAfterCompilation:
      return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case kNoLoweredNames:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case kNameNotValid:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    case kCancelled:
      return "NVRTC_ERROR_CANCELLED";
    default:
      return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

}  // extern "C"
