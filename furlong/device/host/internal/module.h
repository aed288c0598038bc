#pragma once

#include <string>
#include <vector>

#include "furlong/base/os/library.h"
#include "furlong/device/device.h"
#include "furlong/device/host/internal/abi.h"

namespace furlong::device::host {

/// A loaded shared object and its table of trampolines.
class HostModule : public Module {
 public:
  /// `corrupt` when the object has no table (it is not one of ours).
  static Result<std::shared_ptr<Module>> make(Library library, KernelFacts facts,
                                              std::vector<std::string> entries);

  const KernelFacts& facts() const override { return facts_; }
  const std::vector<std::string>& entries() const override { return entries_; }
  /// `invalid` names the entries there are.
  Result<const furlong_entry*> find(const std::string& entry) const;

 private:
  HostModule(Library library, KernelFacts facts, std::vector<std::string> entries, const furlong_entry* table)
      : library_(std::move(library)), facts_(std::move(facts)), entries_(std::move(entries)), table_(table) {}

  Library library_;
  KernelFacts facts_;
  std::vector<std::string> entries_;
  const furlong_entry* table_;
};

/// The arguments of one launch in the form that a trampoline takes: a pointer to each value.
class ArgumentList {
 public:
  /// Checks count, kind, size, offset and owner against the entry's parameters: `invalid` with the numbers.
  static Result<ArgumentList> make(const furlong_entry& entry, const std::vector<Argument>& arguments,
                                   const void* owner);
  void* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<void*> values_;  // the pointers that buffers stand for; sized once, never moved after
  std::vector<void*> pointers_;
};

}  // namespace furlong::device::host
