#pragma once
// Where the gate's expected outputs come from when neither a vector, a file nor the recipe gives them: a host
// function, compiled or from a shared object.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/os/library.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/race/buffers.h"

namespace furlong::race {

/// The check's host or library function. It gets the arguments of the program's kernel in the kernel's order;
/// for a pipeline of several kernels all arguments but scratch, in the program's order. One thread at a time.
class Reference {
 public:
  /// Nothing for other kinds of reference. `host` compiles host functions: `unavailable` when it is null and
  /// needed. `invalid` with the compiler's words when the function does not compile or is not there.
  static Result<std::optional<Reference>> make(const program::Program& program, device::Device* host);
  /// Outputs of `inputs` at the default point, by argument; the others stay empty. The dataset is read from
  /// `buffers`.
  Result<std::vector<Bytes>> outputs(const program::Instance& instance, const program::RunInputs& inputs,
                                     Buffers& buffers);
  /// "host function 'reference' of ref.cpp"
  std::string words() const;

 private:
  explicit Reference(const program::Program& program) : program_(&program) {}
  Result<std::vector<Bytes>> gather(const program::Instance& instance, const program::RunInputs& inputs,
                                    Buffers& buffers) const;
  Status call_host(std::vector<Bytes>& bytes) const;
  void call_library(std::vector<Bytes>& bytes) const;

  const program::Program* program_;
  device::Device* host_ = nullptr;
  std::shared_ptr<device::Module> module_;
  std::optional<Library> shared_object_;
};

}  // namespace furlong::race
