#pragma once
// What every back end asks of a request before its compiler, its memory or its clock sees it. All are
// `invalid` with the numbers, pure, and thread safe.

#include <cstddef>
#include <string_view>

#include "furlong/device/device.h"

namespace furlong::device {

/// An include folder without a name: the bare `-I` made of it would swallow the next option.
Status check_request(const CompileRequest& request);
/// An empty pipeline, and repeats or a batch under 1.
Status check_time(const TimeRequest& request);
/// `count` bytes at `offset` that are not within a buffer of `size`; `doing` is "writing" or the like.
Status check_range(std::size_t offset, std::size_t count, std::size_t size, std::string_view doing);

/// Offsets of buffers in launches are multiples of this (BufferArgument).
inline constexpr std::size_t buffer_offset_step = 256;
/// The offset of argument `index` of a launch into a buffer of `size`: a multiple of the step, and within it.
Status check_buffer_offset(const Launch& launch, std::size_t index, std::size_t offset, std::size_t size);

}  // namespace furlong::device
