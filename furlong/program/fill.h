#pragma once
// Contents of arguments before a run.

#include <cstdint>

#include "furlong/program/program.h"

namespace furlong::program {

/// The bytes of `count` elements of a buffer by its fill: random by (seed + the argument's own seed, its
/// name), the same on every machine; zeros; sequence 0, 1, 2, … (integers wrap at the type's end); `value`;
/// the data file, which must have exactly `count` elements (`invalid` otherwise). Fill::none and Fill::poison
/// give no bytes. `exhausted` when memory does not suffice. Thread safe.
Result<Bytes> fill_buffer(const ArgumentSpec& argument, std::uint64_t count, const lattice::Value& value,
                          std::uint64_t seed);
/// One element of the argument's type, as a scalar is passed; `invalid` when the value does not fit it.
Result<Bytes> one_element(const ArgumentSpec& argument, const lattice::Value& value);
/// So many bytes of 0; `exhausted` names the argument where memory does not suffice.
Result<Bytes> zeroed(const ArgumentSpec& argument, std::uint64_t bytes);
/// Bytes of `count` elements; `exhausted` when 64 bits or the machine's memory do not hold them.
Result<std::uint64_t> buffer_bytes(const ArgumentSpec& argument, std::uint64_t count);

}  // namespace furlong::program
