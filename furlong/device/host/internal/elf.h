#pragma once

#include <string>

#include "furlong/base/bytes.h"

namespace furlong::device::host {

/// Hash (32 hexadecimal digits) of what a 64-bit ELF shared object does: its loaded code, constants, initial
/// data and relocations, without notes, unwind tables and debug information. Two variants with one hash are
/// the same machine code. Empty when the bytes are not such a file.
std::string elf_code_hash(ByteView object);

/// Whether the bytes begin as a 64-bit ELF shared object, the only kind that can be loaded.
bool is_shared_object(ByteView object);

}  // namespace furlong::device::host
