#pragma once
// What `furlong init` makes of a kernel before it writes it down: sizes, knobs, the block.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/program/internal/kernel_text.h"

namespace furlong::program::internal {

struct InitPlan {
  struct Knob {
    std::string name;
    std::string macro;                 ///< empty: a knob of the launch or of a template alone
    std::vector<std::int64_t> values;  ///< the default first
    bool launch = false;
    bool guarded = true;  ///< the macro stands under #ifndef: a define reaches it
    std::string line;     ///< of an unguarded macro
  };
  std::vector<std::string> sizes;  ///< problem parameters
  std::string elements;            ///< their product: no dimension of an array is larger
  int default_size = 0;
  std::vector<Knob> knobs;       ///< those of template parameters first, in their order
  std::string block;             ///< a knob's name or a number; empty: two dimensions
  std::string block_x, block_y;  ///< of two dimensions, in the same way
};

InitPlan plan_first_program(std::string_view source, std::string_view language, const KernelText& kernel);
/// A name that [problem] or [[knob]] takes, near to the given one.
std::string expression_name(std::string name);
/// A scalar that can be the size of something.
bool is_size(const Parameter& parameter);

}  // namespace furlong::program::internal
