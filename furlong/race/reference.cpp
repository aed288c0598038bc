#include "furlong/race/reference.h"

#include <algorithm>

namespace furlong::race {
namespace {

using program::ArgumentKind;
using program::ReferenceKind;
using LibraryFunction = void(void** arguments, std::size_t count);

}  // namespace

Result<std::optional<Reference>> Reference::make(const program::Program& program, device::Device* host) {
  const program::CheckSpec& check = program.check;
  Reference made(program);
  if (check.reference == ReferenceKind::host) {
    if (host == nullptr) {
      return fail(Code::unavailable, "the check's reference '{}' needs the host device, and there is none",
                  check.function);
    }
    device::CompileRequest request;
    request.language = device::Language::host;
    request.name = "reference";
    request.source = check.host_source;
    request.source_name = check.file.string();
    request.entries = {check.function};
    // As for kernels: quoted includes are looked for beside the file first. A source made in memory has no
    // folder.
    if (const auto own = check.file.parent_path(); !own.empty()) request.include_folders = {own};
    auto module = host->compile(request);
    if (!module)
      return std::move(module).error().with(fmt::format("compiling the reference '{}'", check.function));
    made.host_ = host;
    made.module_ = *std::move(module);
    return std::optional<Reference>(std::move(made));
  }
  if (check.reference == ReferenceKind::library) {
    FURLONG_TRY(Library library, Library::open(check.file));
    if (library.symbol(check.function.c_str()) == nullptr) {
      return fail(Code::invalid, "{} has no function '{}' (declare it extern \"C\")", check.file.string(),
                  check.function);
    }
    made.shared_object_ = std::move(library);
    return std::optional<Reference>(std::move(made));
  }
  return std::optional<Reference>();
}

std::string Reference::words() const {
  const std::string file = program_->check.file.filename().string();
  return fmt::format("{} function '{}'{}", shared_object_ ? "library" : "host", program_->check.function,
                     file.empty() ? "" : " of " + file);
}

Result<std::vector<Bytes>> Reference::gather(const program::Instance& instance,
                                             const program::RunInputs& inputs, Buffers& buffers) const {
  std::vector<Bytes> bytes(program_->arguments.size());
  for (std::size_t i = 0; i < program_->arguments.size(); ++i) {
    const program::ArgumentSpec& spec = program_->arguments[i];
    if (spec.kind == ArgumentKind::scalar) {
      FURLONG_TRY(bytes[i], instance.scalar_bytes(i, instance.lattice().base(), inputs));
    } else if (spec.kind == ArgumentKind::dataset) {
      FURLONG_TRY(bytes[i], buffers.read(i, inputs));
    } else {
      bytes[i] = inputs.bytes[i];
      bytes[i].resize(inputs.buffer_bytes[i]);  // outputs start as zeros
    }
  }
  return bytes;
}

Status Reference::call_host(std::vector<Bytes>& bytes) const {
  std::vector<std::unique_ptr<device::Buffer>> held;
  device::Launch launch;
  launch.module = module_.get();
  launch.entry = program_->check.function;
  for (std::size_t i = 0; i < program_->arguments.size(); ++i) {
    if (program_->arguments[i].kind == ArgumentKind::scalar) {
      launch.arguments.emplace_back(bytes[i]);
      continue;
    }
    FURLONG_TRY(auto buffer, host_->allocate(std::max<std::size_t>(bytes[i].size(), 1)));
    FURLONG_CHECK(buffer->write(0, bytes[i]));
    launch.arguments.emplace_back(device::BufferArgument{buffer.get(), 0});
    held.push_back(std::move(buffer));
  }
  FURLONG_CHECK(host_->launch(launch));
  FURLONG_CHECK(host_->finish());
  std::size_t next = 0;
  for (std::size_t i = 0; i < program_->arguments.size(); ++i) {
    if (program_->arguments[i].kind == ArgumentKind::scalar) continue;
    device::Buffer& buffer = *held[next++];
    if (program_->arguments[i].is_output()) FURLONG_CHECK(buffer.read(0, bytes[i]));
  }
  return {};
}

void Reference::call_library(std::vector<Bytes>& bytes) const {
  std::vector<void*> pointers;
  for (Bytes& one : bytes) pointers.push_back(one.data());
  shared_object_->function<LibraryFunction>(program_->check.function.c_str())(pointers.data(),
                                                                              pointers.size());
}

Result<std::vector<Bytes>> Reference::outputs(const program::Instance& instance,
                                              const program::RunInputs& inputs, Buffers& buffers) {
  FURLONG_TRY(std::vector<Bytes> bytes, gather(instance, inputs, buffers));
  if (shared_object_) {
    call_library(bytes);
  } else {
    FURLONG_CHECK_DOING(call_host(bytes), "running the {}", words());
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (!program_->arguments[i].is_output()) bytes[i].clear();
  return bytes;
}

}  // namespace furlong::race
