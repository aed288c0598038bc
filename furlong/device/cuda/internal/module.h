#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/device/cuda/internal/session.h"
#include "furlong/device/cuda/nvrtc.h"
#include "furlong/device/device.h"

namespace furlong::device::cuda {

/// One kernel function of a module.
struct Entry {
  std::string name;
  Function function = nullptr;
  int registers = 0;
  int max_threads = 0;  ///< of a block, by its launch bounds and its registers; 0: unknown
  std::uint64_t static_shared_bytes = 0;
  /// Bytes of each parameter, where the driver tells.
  std::optional<std::vector<std::size_t>> parameter_bytes;
  /// Dynamic shared memory that the driver has been asked for. Only the thread that launches raises it.
  mutable std::uint64_t allowed_dynamic_bytes = 0;
};

/// Machine code loaded into a session's context. Immutable but for the entries' allowance.
class CudaModule : public Module {
 public:
  /// Thread safe. `incompatible` when the driver cannot run the code.
  static Result<std::shared_ptr<Module>> load(const CompileRequest& request, const Cubin& cubin,
                                              bool from_cache, std::shared_ptr<Session> session);
  ~CudaModule() override;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  const KernelFacts& facts() const override { return facts_; }
  const std::vector<std::string>& entries() const override { return names_; }
  const Session* session() const { return session_.get(); }
  /// `invalid` for a name that is not there.
  Result<const Entry*> find(const std::string& entry) const;

 private:
  explicit CudaModule(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Status load_image(const CompileRequest& request, const Cubin& cubin);
  Status add_entry(const std::string& name, const std::string& lowered, const CompileRequest& request);

  std::shared_ptr<Session> session_;
  ModuleHandle module_ = nullptr;
  std::vector<Entry> table_;
  std::vector<std::string> names_;
  KernelFacts facts_;
};

/// Asks the driver for `bytes` of dynamic shared memory for an entry where that is more than it gives
/// unasked. `invalid` with the numbers for more than the card has.
Status allow_dynamic_shared(const Session& session, const Entry& entry, std::uint64_t bytes);

}  // namespace furlong::device::cuda
