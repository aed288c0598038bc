#pragma once
// Data files: NumPy's .npy (format 1.0 to 3.0,
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) and raw bytes.

#include <span>
#include <string>
#include <vector>

#include "furlong/program/program.h"

namespace furlong::program {

/// An .npy file's contents: integers and floats of 1 to 8 bytes (complex numbers, strings and objects are
/// `invalid`; booleans become u8), either byte order (turned to little-endian), rows in C order (a
/// Fortran-ordered array of more than one dimension is `invalid`). Damage and missing or surplus bytes are
/// `corrupt` and name the byte.
Result<DataFile> parse_npy(ByteView file);
/// The bytes of an .npy file of format 1.0. `bytes` must be the shape's product times the element's size,
/// else `invalid`.
Result<Bytes> write_npy(ElementType type, std::span<const std::uint64_t> shape, ByteView bytes);
/// .npy when the name says so or the file begins with its magic; raw otherwise.
Result<DataFile> parse_data_file(ByteView file, bool named_npy);

}  // namespace furlong::program
