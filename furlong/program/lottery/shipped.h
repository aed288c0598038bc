#pragma once
// The shipped program file of the lottery, programs/lottery/lottery.toml, as it was when this library was
// built.

#include <string_view>

namespace furlong::program::lottery {

std::string_view shipped_program_text();

}  // namespace furlong::program::lottery
