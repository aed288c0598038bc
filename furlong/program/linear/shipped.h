#pragma once
// The shipped program files of linear algebra, programs/linear/*.toml, as they were when this library was
// built: a host program needs no file of Furlong beside it.

#include <memory>
#include <span>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/program/program.h"

namespace furlong::program::linear {

/// "gemm", "gemm_real", "gemv".
std::span<const std::string_view> shipped_names();
/// The file's text; empty for another name.
std::string_view shipped_program_text(std::string_view name);
/// The program; `invalid` for another name. Read anew at each call.
Result<std::shared_ptr<const Program>> shipped_program(std::string_view name);

}  // namespace furlong::program::linear
