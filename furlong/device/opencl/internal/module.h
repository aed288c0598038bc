#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "furlong/device/device.h"
#include "furlong/device/opencl/internal/buffer.h"
#include "furlong/device/opencl/internal/facts.h"

namespace furlong::device::cl {

/// Bytes of a value of an OpenCL C type ("uint" 4, "float3" 16); 0 for a type that is not built in.
std::size_t type_bytes(std::string_view type_name);

/// What is known of a kernel's parameter, where the platform tells.
struct Parameter {
  Uint address = 0;       ///< kArgAddress…; 0: unknown
  std::size_t bytes = 0;  ///< of a private value; 0: unknown
};

struct Entry {
  std::string name;
  Kernel kernel = nullptr;
  std::vector<Parameter> parameters;
  std::size_t max_threads = 0;                  ///< of a work-group; 0: unknown
  std::array<std::size_t, 3> required_block{};  ///< reqd_work_group_size, or zeros
  /// Local sizes that have run, each with whether the grid was a wide one: PoCL compiles anew at the first
  /// launch of each. Only the thread that launches touches it.
  mutable std::set<std::array<std::size_t, 4>> warmed = {};
};

class ClModule : public Module {
 public:
  /// Builds the source with its defines, options and include folders. `invalid` with the build log.
  static Result<std::shared_ptr<Module>> build(const CompileRequest& request,
                                               std::shared_ptr<Session> session, const Found& found,
                                               std::stop_token stop);
  ~ClModule() override;
  ClModule(const ClModule&) = delete;
  ClModule& operator=(const ClModule&) = delete;

  const KernelFacts& facts() const override { return facts_; }
  const std::vector<std::string>& entries() const override { return names_; }
  const Session* session() const { return session_.get(); }
  Result<const Entry*> find(const std::string& entry) const;

 private:
  explicit ClModule(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Status build_program(const CompileRequest& request, const Found& found);
  Status make_entries(const CompileRequest& request, const Found& found);
  void read_entry(Entry& entry, const Found& found);
  std::string binary_hash(bool pocl) const;
  std::string build_log() const;

  std::shared_ptr<Session> session_;
  Program program_ = nullptr;
  std::vector<Entry> table_;
  std::vector<std::string> names_;
  KernelFacts facts_;
};

/// The text handed to the platform: defines, then `#line 1 "name"`, then the source.
std::string program_text(const CompileRequest& request);
/// A hash of the preprocessed text, options and compiler that stands at the head of PoCL's program binary.
/// The rest of that binary grows with every work-group function that has been compiled. Empty when it is not
/// there.
std::string pocl_build_hash(ByteView binary);
/// NVIDIA's platform knows no #line and counts from the first line of what it was handed, as "<kernel>:4:10":
/// that place in the user's own file.
std::string own_places(std::string_view log, const CompileRequest& request);
/// The options in one string. `invalid` for a folder or an option with a space: OpenCL has no quoting.
Result<std::string> option_text(const CompileRequest& request, bool nv_verbose);

}  // namespace furlong::device::cl
