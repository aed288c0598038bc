#pragma once
// SIMT CUDA text on the host, for tests without a card: threadIdx, shared memory, barriers, warp shuffles,
// atomics, the integer intrinsics and vector types. No matrix instructions, no inline PTX.
//
// A block runs on one thread of the pool. Where the text waits (barriers, warp operations) its CUDA threads
// are fibers (fibers.h), else a plain loop. `__shared__` is static thread_local; `extern __shared__ T
// name[];` is rewritten to a pointer to the launch's dynamic bytes.

#include <string>

#include "furlong/device/device.h"

namespace furlong::device::host {

/// What a scan of CUDA text (comments and strings skipped) says about it.
struct CudaText {
  std::string source;  ///< with `extern __shared__` rewritten; line numbers are kept
  bool waits = false;  ///< it uses barriers or warp operations
};

/// `invalid` for what the shim cannot run, with the line: inline PTX, matrix instructions, `extern
/// __shared__` outside a function.
Result<CudaText> scan_cuda_text(const CompileRequest& request);

/// The whole translation unit, as host_translation_unit().
Result<std::string> cuda_translation_unit(const CompileRequest& request);

/// The request with only those options that mean the same to a C++ compiler (-D, -U, -I, -O, -W, -g,
/// -std), and those that CUDA text needs here.
CompileRequest with_host_options(CompileRequest request);

/// The shim's declarations (cuda_prelude.cpp).
std::string_view cuda_prelude();

/// The words for a ShimAnswer.
std::string shim_answer_text(int answer);

}  // namespace furlong::device::host
