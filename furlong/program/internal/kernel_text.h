#pragma once
// What can be read out of a kernel's source without compiling it: kernels, their parameters, macros. For
// `furlong init`, whose user corrects what a guess got wrong.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/program/program.h"

namespace furlong::program::internal {

/// One parameter of a kernel.
struct Parameter {
  std::string name;
  std::string type_text;  ///< "const float *", as written, blanks joined
  bool pointer = false;
  bool constant = false;            ///< const, or __constant
  bool constant_space = false;      ///< __constant
  bool local_space = false;         ///< __local: cannot be an argument of a program
  std::optional<ElementType> type;  ///< unknown: a type of the user's own
  int lanes = 1;                    ///< float4: 4
};

/// One template parameter: a type, or a number.
struct TemplateParameter {
  std::string name;
  bool is_type = false;
};

struct KernelText {
  std::string name;
  std::vector<TemplateParameter> templates;
  std::vector<Parameter> parameters;  ///< without the host's furlong_block
  std::string body;                   ///< between its braces, comments blanked; empty for a declaration
  /// Threads that an attribute fixes: {256} of __launch_bounds__(256), {16, 16, 1} of
  /// reqd_work_group_size(16, 16, 1).
  std::vector<std::int64_t> fixed_block;
};

/// A macro with an integer value that the kernel's author could turn.
struct MacroText {
  std::string name;
  std::int64_t value = 0;
  bool guarded = false;  ///< under #ifndef of its own name: -DNAME=value replaces it
  std::string line;      ///< its own line, without the newline
  int uses = 0;          ///< elsewhere in the code
};

/// The text with comments (and the contents of strings where `strings`) as blanks; line breaks stay, so that
/// places stay.
std::string blank_comments(std::string_view text, bool strings);
/// Kernels with a body, in order. `language` is "cuda", "opencl" or "host".
std::vector<KernelText> find_kernels(std::string_view text, std::string_view language);
std::vector<MacroText> find_macros(std::string_view text);
/// Whether the identifier stands in the text.
bool has_word(std::string_view text, std::string_view word);
/// Whether the body only ever assigns to elements of the pointer (name[...] = …), and so never reads what it
/// held.
bool only_written(std::string_view body, std::string_view name);

}  // namespace furlong::program::internal
