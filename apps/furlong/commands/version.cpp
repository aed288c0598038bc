#include "apps/furlong/version.h"

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/knobs_page.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::app {

CommandSpec version_command() {
  return {.name = "version",
          .summary = "Print the version, the commit and the back ends of this build.",
          .description = "",
          .positionals = {},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong version", ""}},
          .run = [](const Arguments& arguments) -> Result<int> {
            device::Registry registry;
            add_backends(registry);
            std::vector<std::string> names;
            for (const auto& driver : registry.drivers()) names.emplace_back(driver->name());
            if (arguments.flag("--json")) {
              print_out(json_pretty(
                  Json{{"version", version_text()}, {"commit", commit_text()}, {"backends", names}}));
            } else {
              print_out(fmt::format("furlong {} ({})\nback ends: {}\n", version_text(), commit_text(),
                                    join(names, " ")));
            }
            return exit_ok;
          }};
}

CommandSpec completion_command() {
  return {.name = "completion",
          .summary = "Print the completion script of a shell.",
          .description = "",
          .positionals = {{.name = "SHELL",
                           .help = "bash, zsh or fish",
                           .choices = {"bash", "zsh", "fish"},
                           .complete = ""}},
          .options = {},
          .examples = {{"source <(furlong completion bash)", "In ~/.bashrc, for every new shell."}},
          .run = [](const Arguments& arguments) -> Result<int> {
            FURLONG_TRY(const std::string script, completion_script(arguments.positionals[0]));
            print_out(script);
            return exit_ok;
          }};
}

CommandSpec help_pages_command() {
  return {.name = "help-pages",
          .summary = "Write the pages of docs/cli from the commands' descriptions.",
          .description = "",
          .positionals = {},
          .options =
              {{.name = "--out", .value_name = "DIR", .help = "Folder to write to.", .complete = "folder"}},
          .examples = {},
          .hidden = true,
          .run = [](const Arguments& arguments) -> Result<int> {
            const std::filesystem::path folder = arguments.value("--out", "docs/cli");
            std::string index = "# Commands\n\nWritten by `./dev docs` from the commands' own help.\n\n";
            for (const CommandSpec& command : commands()) {
              if (command.hidden) continue;
              const std::string file = replace_all(command.name, " ", "-") + ".md";
              FURLONG_CHECK(system_files().write_atomic(folder / file, markdown_page(command)));
              index += fmt::format("- [furlong {}]({}): {}\n", command.name, file, command.summary);
            }
            FURLONG_CHECK(system_files().write_atomic(folder / "README.md", index));
            return exit_ok;
          }};
}

CommandSpec knobs_page_command() {
  return {.name = "knobs-page",
          .summary = "Write docs/knobs.md from the program files that ship.",
          .description = "",
          .positionals = {},
          .options =
              {{.name = "--programs",
                .value_name = "DIR",
                .help = "Folder of the program files. Default programs.",
                .complete = "folder"},
               {.name = "--out", .value_name = "FILE", .help = "Default docs/knobs.md.", .complete = "file"}},
          .examples = {},
          .hidden = true,
          .run = [](const Arguments& arguments) -> Result<int> {
            FURLONG_TRY(const std::string page, knobs_page(arguments.value("--programs", "programs")));
            FURLONG_CHECK(system_files().write_atomic(arguments.value("--out", "docs/knobs.md"), page));
            return exit_ok;
          }};
}

}  // namespace furlong::app
