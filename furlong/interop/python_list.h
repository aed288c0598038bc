#pragma once
// Lists of values as Python writes them: [1, 2, 4] + list(range(32, 1025, 32)), [2**i for i in range(0, 6)].

#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/lattice/value.h"

namespace furlong::interop {

/// A list or tuple of expressions, list(...), range(start, stop, step), a comprehension over one name with
/// at most one `if`, and sums of these. No names but a comprehension's own. `invalid` with "column N: what";
/// at most 65,536 characters and values.
Result<std::vector<lattice::Value>> python_list(std::string_view text);

}  // namespace furlong::interop
