#pragma once
// What the completion scripts and the dispatcher know of groups of commands.

#include <string>
#include <string_view>
#include <vector>

namespace furlong::app {

/// Second words of a group's commands: of "knobs" list, show, … Empty: there is no such group.
std::vector<std::string> second_words(std::string_view group);

}  // namespace furlong::app
