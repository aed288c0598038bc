#include "furlong/device/host/internal/prelude.h"

#include <algorithm>
#include <cctype>

#include "furlong/device/host/internal/abi.h"

#define FURLONG_TEXT_(...) #__VA_ARGS__
#define FURLONG_TEXT(...) FURLONG_TEXT_(__VA_ARGS__)

namespace furlong::device::host {
namespace {

// No standard C++ header: a kernel that needs one includes it, and the others compile quicker.
constexpr std::string_view kHostHead = R"(
#include <stddef.h>
#include <stdint.h>
)";

// `plain` turns a noexcept kernel into the common pointer type, and is where the compiler complains when
// the first parameter is not `const furlong_block&`.
constexpr std::string_view kHostTail = R"(
namespace furlong_host {
template <unsigned... I> struct places {};
template <unsigned N, unsigned... I> struct make_places : make_places<N - 1, N - 1, I...> {};
template <unsigned... I> struct make_places<0, I...> { using type = places<I...>; };
template <class T> struct is_pointer { static constexpr unsigned value = 0; };
template <class T> struct is_pointer<T*> { static constexpr unsigned value = 1; };
template <class... P> constexpr auto plain(void (*kernel)(const furlong_block&, P...)) { return kernel; }
template <auto Kernel> struct entry;
template <class... P, void (*Kernel)(const furlong_block&, P...)> struct entry<Kernel> {
  static_assert((__is_trivially_copyable(P) && ...),
                "kernel parameters after the block are pointers and plain values, not references");
  static constexpr unsigned count = sizeof...(P);
  static constexpr furlong_parameter list[sizeof...(P) + 1] = {{sizeof(P), is_pointer<P>::value}..., {0, 0}};
  template <unsigned... I>
  static void call(const furlong_block& block, void* const* arguments, places<I...>) {
    (void)arguments;
    Kernel(block, *static_cast<P*>(arguments[I])...);
  }
  static int run(const furlong_block& block, void* const* arguments) {
    call(block, arguments, typename make_places<sizeof...(P)>::type());
    return 0;
  }
};
}
)";

Status check_entry_name(std::string_view name) {
  const bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) ||
                             std::string_view("_:<>,()-+*& ").find(c) != std::string_view::npos;
                    });
  if (good) return {};
  return fail(Code::invalid, "'{}' is not the name of a C++ function", name);
}

}  // namespace

std::string_view abi_text() {
  static constexpr std::string_view text = FURLONG_TEXT(FURLONG_HOST_ABI);
  return text;
}

std::string string_literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += (c == '\n' || c == '\r') ? ' ' : c;
  }
  return out += '"';
}

std::string shown_source_name(const CompileRequest& request) {
  if (!request.source_name.empty()) return request.source_name;
  return (request.name.empty() ? std::string("kernel") : request.name) + ".cpp";
}

Result<std::string> entry_table(const CompileRequest& request, std::string_view wrap) {
  if (request.entries.empty()) {
    return fail(Code::invalid, "'{}' names no entry: list the kernel functions to make", request.name);
  }
  std::string rows;
  for (const std::string& entry : request.entries) {
    FURLONG_CHECK(check_entry_name(entry));
    const std::string made = fmt::format("{0}::entry<{0}::plain(&{1})>", wrap, entry);
    // Its own #line, so that a message about a missing entry names the entry.
    rows += fmt::format("#line 1 {}\n  {{{}, {}::count, {}::list, {}::run}},\n",
                        string_literal("entry " + entry), string_literal(entry), made, made, made);
  }
  return fmt::format(
      "extern \"C\" {{\n"
      "__attribute__((visibility(\"default\"))) extern const furlong_entry furlong_entries[] = {{\n{}}};\n"
      "__attribute__((visibility(\"default\"))) extern const unsigned furlong_entry_count = {};\n}}\n",
      rows, request.entries.size());
}

Result<std::string> host_translation_unit(const CompileRequest& request) {
  FURLONG_TRY(std::string table, entry_table(request, "furlong_host"));
  std::string text(kHostHead);
  text += abi_text();
  text += fmt::format("\n#line 1 {}\n{}\n#line 1 \"furlong-trampoline\"\n",
                      string_literal(shown_source_name(request)), request.source);
  text += kHostTail;
  text += table;
  return text;
}

}  // namespace furlong::device::host
