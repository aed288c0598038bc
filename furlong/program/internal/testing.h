#pragma once
// Small programs for this part's tests.

#include <memory>
#include <string>
#include <string_view>

#include "furlong/base/os/file.h"
#include "furlong/program/program.h"

namespace furlong::program::testing {

inline constexpr std::string_view kSource =
    "__kernel void add(__global const float* a, __global float* b, int n) {\n"
    "  for (int i = 0; i < UNROLL; ++i) b[i] = a[i];\n"
    "}\n";

/// A file that reads without errors; tests change one place of it.
inline constexpr std::string_view kProgram = R"toml(format = 1

[program]
name = "add"
summary = "adds"
language = "opencl"
source = "add.cl"
entry = "add"

[problem]
n = 1024
scale = 2.0

[let]
threads = "block * 2"

[launch]
grid = "ceil_div(n, threads)"
block = "threads"

[[argument]]
name = "a"
type = "f32"
size = "n"

[[argument]]
name = "b"
type = "f32"
size = "n"
direction = "out"

[[argument]]
name = "n"
kind = "scalar"
type = "i32"
value = "n"

[check]
kind = "tolerance"
bound = 1e-6

[work]
unit = "element"
amount = "n"
bytes = "n * 8"

[[knob]]
name = "block"
values = [32, 64, 128]
default = 64
applies = "launch"

[[knob]]
name = "unroll"
values = [1, 2]
define = "UNROLL"

[[constraint]]
expression = "threads <= device.max_threads"
reason = "a block has that many threads at most"
)toml";

/// Reads `text` as /p/add.toml beside add.cl and whatever else `files` holds.
inline Result<std::shared_ptr<const Program>> read(std::string_view text, FakeFiles& files) {
  FURLONG_CHECK(files.write_atomic("/p/add.cl", kSource));
  return parse_program(text, "add.toml", "/p", files);
}
inline Result<std::shared_ptr<const Program>> read(std::string_view text) {
  FakeFiles files;
  return read(text, files);
}

/// kProgram with one piece replaced; the piece must be there.
inline std::string with(std::string_view from, std::string_view to) {
  std::string text(kProgram);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "the text to change is not in kProgram";
  return text.replace(at, from.size(), to);
}

}  // namespace furlong::program::testing
