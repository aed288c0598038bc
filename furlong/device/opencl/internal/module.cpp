#include "furlong/device/opencl/internal/module.h"

#include <algorithm>
#include <array>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/device/ptxas_log.h"
#include "furlong/device/request.h"

namespace furlong::device::cl {
namespace {

struct NamedType {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<NamedType, 17> kTypes{{{"char", 1},
                                            {"uchar", 1},
                                            {"unsigned char", 1},
                                            {"short", 2},
                                            {"ushort", 2},
                                            {"unsigned short", 2},
                                            {"half", 2},
                                            {"int", 4},
                                            {"uint", 4},
                                            {"unsigned int", 4},
                                            {"float", 4},
                                            {"long", 8},
                                            {"ulong", 8},
                                            {"unsigned long", 8},
                                            {"double", 8},
                                            {"long long", 8},
                                            {"unsigned long long", 8}}};

template <class T>
T group_value(const Session& session, Kernel kernel, Uint query, T fallback) {
  T value{};
  const Int code = session.api->work_group_info(kernel, session.device, query, sizeof value, &value, nullptr);
  return code == kSuccess ? value : fallback;
}

Parameter read_parameter(const Api& api, Kernel kernel, Uint place) {
  Parameter parameter;
  if (api.argument_info == nullptr) return parameter;
  Uint address = 0;
  if (api.argument_info(kernel, place, kKernelArgAddress, sizeof address, &address, nullptr) != kSuccess)
    return {};
  parameter.address = address;
  std::array<char, 256> name{};
  if (address == kArgAddressPrivate &&
      api.argument_info(kernel, place, kKernelArgTypeName, name.size(), name.data(), nullptr) == kSuccess) {
    parameter.bytes = type_bytes(name.data());
  }
  return parameter;
}

void raise(std::optional<std::uint64_t>& to, std::uint64_t value) { to = std::max(to.value_or(0), value); }

std::string escaped(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// "-cl-a -cl-b" in one string means two options, but a value with a space would be read as something else.
bool is_cut_by_spaces(const std::string& option) {
  for (std::size_t space = option.find(' '); space != std::string::npos; space = option.find(' ', space)) {
    space = option.find_first_not_of(' ', space);
    if (space == std::string::npos) return false;
    if (option[space] != '-') return true;
  }
  return false;
}

std::string shown_source_name(const CompileRequest& request) {
  if (!request.source_name.empty()) return request.source_name;
  return (request.name.empty() ? std::string("kernel") : request.name) + ".cl";
}

}  // namespace

std::size_t type_bytes(std::string_view type_name) {
  std::size_t lanes = 1;
  const std::size_t digits = type_name.find_first_of("0123456789");
  if (digits != std::string_view::npos) {
    const Result<std::int64_t> count = parse_integer(type_name.substr(digits));
    if (!count || (*count != 2 && *count != 3 && *count != 4 && *count != 8 && *count != 16)) return 0;
    lanes = *count == 3 ? 4 : static_cast<std::size_t>(*count);  // a vector of three takes the room of four
    type_name = type_name.substr(0, digits);
  }
  for (const NamedType& type : kTypes) {
    if (type.name == type_name) return type.bytes * lanes;
  }
  return 0;
}

std::string program_text(const CompileRequest& request) {
  // Not by -D: OpenCL's option string cannot carry a value with spaces.
  std::string text;
  for (const auto& [name, value] : request.defines) text += fmt::format("#define {} {}\n", name, value);
  return text + fmt::format("#line 1 \"{}\"\n{}", escaped(shown_source_name(request)), request.source);
}

std::string own_places(std::string_view log, const CompileRequest& request) {
  constexpr std::string_view kMark = "<kernel>:";
  // One line each for the defines, and the #line.
  const auto before = static_cast<std::int64_t>(request.defines.size()) + 1;
  std::string out;
  for (;;) {
    const std::size_t at = log.find(kMark);
    if (at == log.npos) break;
    const std::size_t start = at + kMark.size();
    const std::size_t end = std::min(log.find_first_not_of("0123456789", start), log.size());
    const Result<std::int64_t> line = parse_integer(log.substr(start, end - start));
    if (line && *line > before) {
      out += fmt::format("{}{}:{}", log.substr(0, at), shown_source_name(request), *line - before);
    } else {
      out += log.substr(0, end);
    }
    log.remove_prefix(end);
  }
  return out += log;
}

std::string pocl_build_hash(ByteView binary) {
  constexpr std::size_t kHead = 128;
  constexpr std::size_t kDigits = 32;  // of 40, with a slash after the second
  const std::string_view head = as_text(binary.first(std::min(kHead, binary.size())));
  if (!head.starts_with("poclbin")) return "";
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t end = std::min(head.find_first_not_of("ABCDEFGHIJKLMNOP/", at), head.size());
    if (end - at >= kDigits) return blake2b_256(as_bytes(head.substr(at, end - at))).hex().substr(0, 32);
    at = end + 1;
  }
  return "";
}

Result<std::string> option_text(const CompileRequest& request, bool nv_verbose) {
  FURLONG_CHECK(check_request(request));
  std::vector<std::string> words{"-cl-kernel-arg-info"};
  if (nv_verbose) words.emplace_back("-cl-nv-verbose");
  for (const auto& folder : request.include_folders) {
    if (folder.string().find(' ') != std::string::npos) {
      return fail(Code::invalid, "'{}': OpenCL cannot take the include folder '{}': its name has a space",
                  request.name, folder.string());
    }
    words.push_back("-I" + folder.string());
  }
  for (const std::string& option : request.options) {
    if (is_cut_by_spaces(option)) {
      return fail(Code::invalid, "'{}': OpenCL cannot take the option '{}': it has no quoting for the space",
                  request.name, option);
    }
    words.push_back(option);
  }
  return join(words, " ");
}

Result<std::shared_ptr<Module>> ClModule::build(const CompileRequest& request,
                                                std::shared_ptr<Session> session, const Found& found,
                                                std::stop_token stop) {
  // clBuildProgram cannot be stopped, so the token counts before and after it.
  const auto stopped = [&] {
    return fail(Code::timeout, "compiling '{}': stopped on request", request.name);
  };
  if (stop.stop_requested()) return stopped();
  if (request.entries.empty()) {
    return fail(Code::invalid, "'{}' names no entry: list the kernel functions to make", request.name);
  }
  const double start_ms = system_clock().now_ms();
  std::shared_ptr<ClModule> module(new ClModule(std::move(session)));
  FURLONG_CHECK(module->build_program(request, found));
  if (stop.stop_requested()) return stopped();
  FURLONG_CHECK(module->make_entries(request, found));
  module->facts_.code_hash = module->binary_hash(found.pocl);
  module->facts_.compile_ms = system_clock().now_ms() - start_ms;
  return std::shared_ptr<Module>(std::move(module));
}

ClModule::~ClModule() {
  for (const Entry& entry : table_) session_->api->release_kernel(entry.kernel);
  if (program_ != nullptr) session_->api->release_program(program_);
}

Status ClModule::build_program(const CompileRequest& request, const Found& found) {
  const Api& api = *session_->api;
  const std::string text = program_text(request);
  FURLONG_TRY(const std::string options, option_text(request, found.nv_verbose));
  const char* start = text.data();
  const std::size_t length = text.size();
  Int code = kSuccess;
  program_ = api.create_program(session_->context, 1, &start, &length, &code);
  if (program_ == nullptr) return error_of(code, fmt::format("taking the source of '{}'", request.name));
  code = api.build_program(program_, 1, &session_->device, options.c_str(), nullptr, nullptr);
  facts_.log = own_places(build_log(), request);
  // Not the text's fault. CL_OUT_OF_RESOURCES may be, and comes with a log then.
  for (const Int platform_fault :
       {kOutOfHostMemory, kDeviceNotAvailable, kCompilerNotAvailable, kInvalidDevice, kInvalidContext}) {
    if (code == platform_fault) return error_of(code, fmt::format("building '{}'", request.name));
  }
  if (code != kSuccess) {
    return fail(Code::invalid, "'{}': {} does not build ({}):\n{}", request.name, shown_source_name(request),
                error_name(code), facts_.log);
  }
  const PtxasFacts ptxas = parse_ptxas_log(facts_.log);
  facts_.registers = ptxas.registers;
  facts_.spill_bytes = ptxas.spill_bytes;
  // NVIDIA's driver tells them only when it compiles, not when it takes the code from its own cache.
  facts_.from_cache = found.nv_verbose && !ptxas.registers;
  return {};
}

Status ClModule::make_entries(const CompileRequest& request, const Found& found) {
  for (const std::string& name : request.entries) {
    Int code = kSuccess;
    Kernel kernel = session_->api->create_kernel(program_, name.c_str(), &code);
    if (kernel == nullptr) {
      if (code == kInvalidKernelName) {
        return fail(Code::invalid, "'{}': {} has no kernel '{}'", request.name, shown_source_name(request),
                    name);
      }
      return error_of(code, fmt::format("making the kernel '{}'", name));
    }
    table_.push_back({name, kernel, {}, 0, {}, {}});
    names_.push_back(name);
    read_entry(table_.back(), found);
  }
  return {};
}

void ClModule::read_entry(Entry& entry, const Found& found) {
  const Api& api = *session_->api;
  Uint count = 0;
  if (api.kernel_info(entry.kernel, kKernelArgumentCount, sizeof count, &count, nullptr) != kSuccess)
    count = 0;
  for (Uint place = 0; place < count; ++place) {
    entry.parameters.push_back(read_parameter(api, entry.kernel, place));
  }
  entry.max_threads = group_value<std::size_t>(*session_, entry.kernel, kKernelWorkGroupSize, 0);
  entry.required_block =
      group_value<std::array<std::size_t, 3>>(*session_, entry.kernel, kKernelCompileWorkGroupSize, {});
  // Newer PoCL answers 0 for every kernel: that means unknown there.
  const Bits shared_bytes = group_value<Bits>(*session_, entry.kernel, kKernelLocalMemory, 0);
  if (shared_bytes != 0 || !found.pocl) raise(facts_.shared_bytes, shared_bytes);
  if (!session_->host_memory && !found.nv_verbose) {
    // Where no assembler's log ever tells the spills, private memory is the nearest thing that is known.
    raise(facts_.spill_bytes, group_value<Bits>(*session_, entry.kernel, kKernelPrivateMemory, 0));
  }
  const auto most = static_cast<int>(std::min<std::size_t>(entry.max_threads, 1 << 30));
  if (most > 0) facts_.max_threads_per_block = std::min(facts_.max_threads_per_block.value_or(most), most);
}

Result<const Entry*> ClModule::find(const std::string& name) const {
  for (const Entry& entry : table_) {
    if (entry.name == name) return &entry;
  }
  return fail(Code::invalid, "there is no entry '{}' in this module{} (it has {})", name,
              did_you_mean(name, names_), join(names_, ", "));
}

std::string ClModule::build_log() const {
  const Api& api = *session_->api;
  std::size_t size = 0;
  if (api.build_info(program_, session_->device, kProgramBuildLog, 0, nullptr, &size) != kSuccess ||
      size == 0) {
    return "";
  }
  std::string log(size, '\0');
  if (api.build_info(program_, session_->device, kProgramBuildLog, size, log.data(), nullptr) != kSuccess)
    return "";
  log.resize(std::min(log.find('\0'), log.size()));
  return std::string(trim(log));
}

std::string ClModule::binary_hash(bool pocl) const {
  const Api& api = *session_->api;
  std::size_t size = 0;
  if (api.program_info(program_, kProgramBinarySizes, sizeof size, &size, nullptr) != kSuccess || size == 0)
    return "";
  Bytes binary(size);
  std::uint8_t* into = binary.data();
  if (api.program_info(program_, kProgramBinaries, sizeof into, &into, nullptr) != kSuccess) return "";
  if (pocl) return pocl_build_hash(binary);
  return blake2b_256(binary).hex().substr(0, 32);
}

}  // namespace furlong::device::cl
