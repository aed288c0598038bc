// Any text: a list of commands is read or refused as `invalid`. What is read is printed as lines that give
// the same commands again, and its items are read back; the words of a command line and a makefile's rule
// never fail otherwise.

#include <cstdlib>

#include "furlong/shard/executor/command/command_list.h"
#include "furlong/shard/executor/command/compiler.h"
#include "furlong/shard/executor/command/internal/items.h"

using namespace furlong;
using namespace furlong::shard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  if (const auto words = command::shell_words(text); words)
    static_cast<void>(command::dependency_command(*words));
  static_cast<void>(command::parse_dependencies(text));
  static_cast<void>(command::decode(as_bytes(text)));
  const auto commands = command::parse_command_list(text, "/base", "fuzz");
  if (!commands) {
    if (commands.error().code() != Code::invalid) std::abort();
    return 0;
  }
  std::string printed;
  for (const command::Command& one : *commands) {
    const auto item = command::decode(command::encode(one));
    if (!item || command::encode(std::get<command::Command>(*item)) != command::encode(one)) std::abort();
    printed += command::print_command(one) + "\n";
  }
  const auto again = command::parse_command_list(printed, "/elsewhere", "again");
  if (!again || again->size() != commands->size()) std::abort();
  for (std::size_t i = 0; i < again->size(); ++i)
    if (command::print_command((*again)[i]) != command::print_command((*commands)[i])) std::abort();
  return 0;
}
