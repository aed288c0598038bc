#include "furlong/program/init.h"

#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<int> run(const Arguments& arguments) {
  const fs::path kernel = arguments.positionals[0];
  if (kernel.extension() == ".hip")
    return fail(
        Code::invalid,
        "{}: HIP is not built. On an AMD card race an OpenCL kernel (.cl) through the opencl back end",
        kernel.string());
  FURLONG_TRY(const std::string source, as_input(system_files().read(kernel, 16u << 20)));
  FURLONG_TRY(const auto first,
              program::init_program(source, kernel.filename().string(), arguments.value("--entry")));
  fs::path out = arguments.value("--out");
  if (out.empty()) {
    out = kernel;
    out.replace_filename(first.file_name);
  }
  if (out == "-") {
    print_out(first.text);
    return exit_ok;
  }
  if (system_files().exists(out) && !arguments.flag("--replace"))
    return fail(Code::invalid, "{} is there already; choose another --out or say --replace", out.string());
  FURLONG_CHECK(system_files().write_atomic(out, first.text));
  print_out(fmt::format("{}: for kernel '{}', {} lines marked FILL IN; fill them in, then: furlong race {}\n",
                        out.string(), first.entry, first.marks, out.string()));
  if (first.kernels.size() > 1)
    print_out(
        fmt::format("kernels in this file: {} (choose with --entry)\n", fmt::join(first.kernels, ", ")));
  return exit_ok;
}

}  // namespace

CommandSpec init_command() {
  return {
      .name = "init",
      .summary = "Write a first program file for a kernel, from its signature and macros.",
      .description =
          "Reads an OpenCL (.cl), CUDA (.cu) or host (.cpp) kernel. What cannot be read off the text is "
          "marked "
          "FILL IN.",
      .positionals = {{.name = "KERNEL", .help = "The kernel's source file."}},
      .options = {{.name = "--entry",
                   .value_name = "NAME",
                   .help = "Kernel function, where the file has several."},
                  {.name = "--out",
                   .value_name = "FILE",
                   .help = "Where to write; - for standard output. Default: the kernel's name with .toml.",
                   .complete = "file"},
                  {.name = "--replace", .value_name = "", .help = "Overwrite the file."}},
      .examples = {{"furlong init my_kernel.cl", "Writes my_kernel.toml."}},
      .run = run};
}

}  // namespace furlong::app
