#pragma once
// Files that a command will write, looked at before it works.

#include <filesystem>
#include <initializer_list>
#include <string>

#include "apps/furlong/command.h"
#include "furlong/base/error.h"

namespace furlong::app {

/// Whether `file` can be written: minutes of work are not to end in "no such folder". Nothing is made or
/// changed. `invalid` names the option.
Status can_write(const std::string& option, const std::filesystem::path& file);
/// The same for all of these options that were given with a file's name ("-" is standard output); two on one
/// file are `invalid`: the later would be all that is left.
Status can_write_outputs(const Arguments& arguments, std::initializer_list<const char*> options);

}  // namespace furlong::app
