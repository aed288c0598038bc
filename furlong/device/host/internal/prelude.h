#pragma once
// The text around a kernel's source: what makes a plain C++ function callable from the library.

#include <string>

#include "furlong/device/device.h"

namespace furlong::device::host {

/// The whole translation unit: prelude, `#line 1 "<source_name>"`, the source, and a trampoline per entry
/// that unpacks `void** arguments` by the entry's own parameter types. `invalid` for an entry name that is
/// not a C++ name (with template arguments or not), or for no entry at all.
Result<std::string> host_translation_unit(const CompileRequest& request);

/// `"…"` with quotes and backslashes escaped, for #line and string literals.
std::string string_literal(std::string_view text);
/// The file name that compiler messages show.
std::string shown_source_name(const CompileRequest& request);
/// The table of trampolines that ends every translation unit; `wrap` names the template that makes a
/// furlong_entry out of a kernel.
Result<std::string> entry_table(const CompileRequest& request, std::string_view wrap);
/// The text of FURLONG_HOST_ABI.
std::string_view abi_text();

}  // namespace furlong::device::host
