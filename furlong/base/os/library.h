#pragma once
// Dynamic libraries opened at run time (vendor drivers, host kernels).

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "furlong/base/error.h"

namespace furlong {

/// Owns a dlopen handle. Symbols are valid while it lives.
class Library {
 public:
  /// `unavailable` with the loader's words.
  static Result<Library> open(const std::filesystem::path& path);
  /// The first of several names that opens; `unavailable` lists them all.
  static Result<Library> open_any(std::span<const std::string> names);
  ~Library();
  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;
  /// nullptr when the symbol is not there.
  void* symbol(const char* name) const;
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }
  const std::string& name() const { return name_; }

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace furlong
