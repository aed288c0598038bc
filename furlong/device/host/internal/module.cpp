#include "furlong/device/host/internal/module.h"

#include "furlong/base/text.h"
#include "furlong/device/host/internal/buffer.h"
#include "furlong/device/request.h"

namespace furlong::device::host {
namespace {

Result<void*> buffer_pointer(const furlong_entry& entry, std::size_t place, const BufferArgument& argument,
                             const void* owner) {
  if (argument.buffer == nullptr) {
    if (argument.offset == 0) return nullptr;
    return fail(Code::invalid, "'{}': argument {} is no buffer but has offset {}", entry.name, place,
                argument.offset);
  }
  const auto* buffer = dynamic_cast<const HostBuffer*>(argument.buffer);
  if (buffer == nullptr || buffer->owner() != owner) {
    return fail(Code::invalid, "'{}': argument {} is a buffer of another device", entry.name, place);
  }
  if (argument.offset % buffer_offset_step != 0 || argument.offset > buffer->size()) {
    return fail(Code::invalid,
                "'{}': argument {} starts at byte {} of a buffer of {}: offsets are multiples of {}",
                entry.name, place, argument.offset, buffer->size(), buffer_offset_step);
  }
  return buffer->data() + argument.offset;
}

}  // namespace

Result<std::shared_ptr<Module>> HostModule::make(Library library, KernelFacts facts,
                                                 std::vector<std::string> entries) {
  const auto* table = static_cast<const furlong_entry*>(library.symbol("furlong_entries"));
  const auto* count = static_cast<const unsigned*>(library.symbol("furlong_entry_count"));
  if (table == nullptr || count == nullptr || *count != entries.size()) {
    return fail(Code::corrupt, "{} holds no table of {} entries", library.name(), entries.size());
  }
  return std::shared_ptr<Module>(
      new HostModule(std::move(library), std::move(facts), std::move(entries), table));
}

Result<const furlong_entry*> HostModule::find(const std::string& entry) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i] == entry) return &table_[i];
  }
  return fail(Code::invalid, "there is no entry '{}' in this module{} (it has {})", entry,
              did_you_mean(entry, entries_), join(entries_, ", "));
}

Result<ArgumentList> ArgumentList::make(const furlong_entry& entry, const std::vector<Argument>& arguments,
                                        const void* owner) {
  if (arguments.size() != entry.parameter_count) {
    return fail(Code::invalid, "'{}' takes {} arguments, {} given", entry.name, entry.parameter_count,
                arguments.size());
  }
  ArgumentList list;
  list.values_.resize(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const furlong_parameter& parameter = entry.parameters[i];
    if (const auto* buffer = std::get_if<BufferArgument>(&arguments[i])) {
      if (parameter.is_pointer == 0) {
        return fail(Code::invalid, "'{}': argument {} is a buffer, but the parameter is a value of {} bytes",
                    entry.name, i, parameter.size);
      }
      FURLONG_TRY(list.values_[i], buffer_pointer(entry, i, *buffer, owner));
      list.pointers_.push_back(&list.values_[i]);
      continue;
    }
    const Bytes& scalar = std::get<Bytes>(arguments[i]);
    if (parameter.is_pointer != 0) {
      return fail(Code::invalid, "'{}': argument {} is a value of {} bytes, but the parameter is a pointer",
                  entry.name, i, scalar.size());
    }
    if (scalar.size() != parameter.size) {
      return fail(Code::invalid, "'{}': argument {} has {} bytes, the parameter has {}", entry.name, i,
                  scalar.size(), parameter.size);
    }
    // The trampoline only reads through it.
    list.pointers_.push_back(const_cast<std::uint8_t*>(scalar.data()));
  }
  return list;
}

}  // namespace furlong::device::host
