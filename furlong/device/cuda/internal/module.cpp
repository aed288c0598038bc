#include "furlong/device/cuda/internal/module.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::device::cuda {
namespace {

int function_value(const Api& api, Function function, int which) {
  int value = 0;
  return api.function_attribute(&value, which, function) == kSuccess ? value : 0;
}

template <class T>
void raise(std::optional<T>& to, T value) {
  to = std::max(to.value_or(0), value);
}

std::optional<std::vector<std::size_t>> parameter_bytes(const Api& api, Function function) {
  if (api.parameter_info == nullptr) return std::nullopt;
  std::vector<std::size_t> bytes;
  std::size_t offset = 0;
  std::size_t size = 0;
  // The driver ends the list by refusing the next index.
  while (api.parameter_info(function, bytes.size(), &offset, &size) == kSuccess) bytes.push_back(size);
  return bytes;
}

}  // namespace

Status allow_dynamic_shared(const Session& session, const Entry& entry, std::uint64_t bytes) {
  const Limits& limits = session.limits();
  if (entry.static_shared_bytes > limits.shared_bytes_at_most ||
      bytes > limits.shared_bytes_at_most - entry.static_shared_bytes) {
    return fail(Code::invalid,
                "'{}': {} bytes of dynamic shared memory beside {} of its own, a block has at most {}",
                entry.name, bytes, entry.static_shared_bytes, limits.shared_bytes_at_most);
  }
  if (bytes <= entry.allowed_dynamic_bytes || bytes + entry.static_shared_bytes <= limits.shared_bytes)
    return {};
  const Status32 code = session.api().set_function_attribute(entry.function, kFunctionMaxDynamicShared,
                                                             static_cast<int>(bytes));
  if (code != kSuccess)
    return launch_error(session.api(), code,
                        fmt::format("'{}': asking for {} bytes of shared memory", entry.name, bytes));
  entry.allowed_dynamic_bytes = bytes;
  return {};
}

Result<std::shared_ptr<Module>> CudaModule::load(const CompileRequest& request, const Cubin& cubin,
                                                 bool from_cache, std::shared_ptr<Session> session) {
  std::shared_ptr<CudaModule> module(new CudaModule(std::move(session)));
  FURLONG_CHECK(module->load_image(request, cubin));
  module->facts_.from_cache = from_cache;
  return std::shared_ptr<Module>(std::move(module));
}

CudaModule::~CudaModule() {
  if (module_ != nullptr && session_->enter()) (void)session_->api().unload_module(module_);
}

Status CudaModule::load_image(const CompileRequest& request, const Cubin& cubin) {
  FURLONG_CHECK(session_->enter());
  const Api& api = session_->api();
  if (const Status32 code = api.load_module(&module_, cubin.image.data()); code != kSuccess) {
    module_ = nullptr;
    return session_->failed(code, fmt::format("loading the machine code of '{}'", request.name));
  }
  facts_.log = cubin.log;
  facts_.code_hash = cubin.code_hash;
  facts_.compile_ms = cubin.compile_ms;
  facts_.spill_bytes = cubin.spill_bytes;
  if (cubin.lowered.size() != request.entries.size())
    return fail(Code::internal, "'{}': the compiler named {} kernels of {}", request.name,
                cubin.lowered.size(), request.entries.size());
  for (std::size_t i = 0; i < request.entries.size(); ++i) {
    FURLONG_CHECK(add_entry(request.entries[i], cubin.lowered[i], request));
  }
  return {};
}

Status CudaModule::add_entry(const std::string& name, const std::string& lowered,
                             const CompileRequest& request) {
  const Api& api = session_->api();
  Entry entry;
  entry.name = name;
  const Status32 code = api.find_function(&entry.function, module_, lowered.c_str());
  if (code != kSuccess) {
    return fail(Code::invalid, "'{}': the machine code has no kernel '{}' ({})", request.name, name,
                api.name_of(code));
  }
  entry.registers = function_value(api, entry.function, kFunctionRegisters);
  entry.max_threads = function_value(api, entry.function, kFunctionMaxThreads);
  entry.static_shared_bytes =
      static_cast<std::uint64_t>(function_value(api, entry.function, kFunctionSharedBytes));
  entry.parameter_bytes = parameter_bytes(api, entry.function);
  raise(facts_.registers, entry.registers);
  raise(facts_.shared_bytes, entry.static_shared_bytes);
  if (!facts_.spill_bytes)  // the assembler's log tells them; local memory is the nearest thing else
    facts_.spill_bytes = static_cast<std::uint64_t>(function_value(api, entry.function, kFunctionLocalBytes));
  if (entry.max_threads > 0)
    facts_.max_threads_per_block =
        std::min(facts_.max_threads_per_block.value_or(entry.max_threads), entry.max_threads);
  FURLONG_CHECK(allow_dynamic_shared(*session_, entry, request.dynamic_shared_bytes));
  table_.push_back(std::move(entry));
  names_.push_back(name);
  return {};
}

Result<const Entry*> CudaModule::find(const std::string& name) const {
  for (const Entry& entry : table_) {
    if (entry.name == name) return &entry;
  }
  return fail(Code::invalid, "there is no entry '{}' in this module{} (it has {})", name,
              did_you_mean(name, names_), join(names_, ", "));
}

}  // namespace furlong::device::cuda
