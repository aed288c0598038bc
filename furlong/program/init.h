#pragma once
// `furlong init kernel.cu`: a first program file from a kernel's own text.

#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::program {

/// A first program file, which parses beside the kernel it was made for. What was guessed stands in lines
/// marked "FILL IN".
struct FirstProgram {
  std::string text;
  std::string file_name;             ///< "saxpy.toml" for saxpy.cu
  std::string entry;                 ///< the kernel that it is for
  std::vector<std::string> kernels;  ///< all kernels of the source, in order
  std::size_t marks = 0;             ///< lines marked FILL IN
};

/// Reads signature and macros of `entry` (empty: the first kernel) in `source`; `file_name` says the
/// language: .cu CUDA, .cl OpenCL, .cpp .cc .cxx a host kernel (a function whose first parameter is `const
/// furlong_block&`). `invalid` when there is no kernel, none of that name (with the nearest), or a parameter
/// that a program cannot pass (__local memory, a structure). Pure; thread safe.
Result<FirstProgram> init_program(std::string_view source, std::string_view file_name,
                                  std::string_view entry = {});

}  // namespace furlong::program
