#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/program/init.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<int> run(const Arguments& arguments) {
  const fs::path kernel = arguments.positionals[0];
  if (kernel.extension() == ".hip")
    return fail(Code::invalid, "{}: HIP is not built. On an AMD card race an OpenCL kernel (.cl) through the opencl back end",
                kernel.string());
  program::InitRequest request;
  request.kernel = kernel;
  request.entry = arguments.value("--entry");
  FURLONG_TRY(const std::string text, program::init_program_file(request));
  fs::path out = arguments.value("--out");
  if (out.empty()) {
    out = kernel;
    out.replace_extension(".toml");
  }
  if (out == "-") {
    print_out(text);
    return exit_ok;
  }
  if (system_files().exists(out) && !arguments.flag("--replace"))
    return fail(Code::invalid, "{} is there already; choose another --out or say --replace", out.string());
  FURLONG_CHECK(system_files().write_atomic(out, text));
  print_out(fmt::format("{}: fill in the places marked 'fill in', then: furlong race {}\n", out.string(), out.string()));
  return exit_ok;
}

}  // namespace

CommandSpec init_command() {
  return {.name = "init",
          .summary = "Write a first program file for a kernel, from its signature and macros.",
          .description = "Reads an OpenCL (.cl), CUDA (.cu) or host (.cpp) kernel. What cannot be read off the text is marked "
                         "'fill in'.",
          .positionals = {{.name = "KERNEL", .help = "The kernel's source file."}},
          .options = {{.name = "--entry", .value_name = "NAME", .help = "Kernel function, where the file has several."},
                      {.name = "--out", .value_name = "FILE", .help = "Where to write; - for standard output. Default: the kernel's name with .toml.", .complete = "file"},
                      {.name = "--replace", .value_name = "", .help = "Overwrite the file."}},
          .examples = {{"furlong init my_kernel.cl", "Writes my_kernel.toml."}},
          .run = run};
}

}  // namespace furlong::app
