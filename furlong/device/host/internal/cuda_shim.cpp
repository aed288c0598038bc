#include "furlong/device/host/internal/cuda_shim.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "furlong/base/text.h"
#include "furlong/device/host/internal/fibers.h"
#include "furlong/device/host/internal/prelude.h"

#define FURLONG_TEXT_(...) #__VA_ARGS__
#define FURLONG_TEXT(...) FURLONG_TEXT_(__VA_ARGS__)

namespace furlong::device::host {
namespace {

constexpr std::string_view kTail = R"(
namespace furlong_cuda_host {
template <unsigned... I> struct places {};
template <unsigned N, unsigned... I> struct make_places : make_places<N - 1, N - 1, I...> {};
template <unsigned... I> struct make_places<0, I...> { using type = places<I...>; };
template <class T> struct is_pointer { static constexpr unsigned value = 0; };
template <class T> struct is_pointer<T*> { static constexpr unsigned value = 1; };
template <class... P> constexpr auto plain(void (*kernel)(P...)) { return kernel; }
template <auto Kernel> struct entry;
template <class... P, void (*Kernel)(P...)> struct entry<Kernel> {
  static_assert((__is_trivially_copyable(P) && ...), "kernel parameters are pointers and plain values");
  static constexpr unsigned count = sizeof...(P);
  static constexpr furlong_parameter list[sizeof...(P) + 1] = {{sizeof(P), is_pointer<P>::value}..., {0, 0}};
  template <unsigned... I> static void call(void* const* arguments, places<I...>) {
    (void)arguments;
    Kernel(*static_cast<P*>(arguments[I])...);
  }
  static void body(void* arguments) {
    call(static_cast<void* const*>(arguments), typename make_places<sizeof...(P)>::type());
  }
  static int run(const furlong_block& block, void* const* arguments) {
    return furlong_run_block(block, &body, const_cast<void**>(arguments));
  }
};
}
)";

// Names whose use means that threads wait for each other.
constexpr std::array<std::string_view, 7> kWaiting{
    "__syncthreads", "__syncwarp", "__shfl", "__ballot_sync", "__match_", "__reduce_", "__activemask"};
constexpr std::array<std::string_view, 2> kWaitingExact{"__any_sync", "__all_sync"};
constexpr std::array<std::string_view, 3> kPtx{"asm", "__asm__", "__asm"};
constexpr std::array<std::string_view, 2> kMatrix{"wmma", "nvcuda"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <class List>
bool one_of(std::string_view word, const List& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Walks the text token by token, with comments and literals copied as they are.
class Scanner {
 public:
  Scanner(const CompileRequest& request) : request_(request), text_(request.source) {}

  Result<CudaText> scan() {
    while (at_ < text_.size()) {
      if (skip_blank() || skip_literal()) continue;
      if (is_word(text_[at_])) {
        FURLONG_CHECK(word());
        continue;
      }
      note_brace(text_[at_]);
      last_ = text_[at_];
      copy(1);
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t count) {
    out_.source.append(text_.substr(at_, count));
    at_ = std::min(at_ + count, text_.size());
  }

  bool skip_blank() {
    if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      copy(1);
      return true;
    }
    if (text_.substr(at_, 2) == "//") {
      copy(std::min(text_.find('\n', at_), text_.size()) - at_);
      return true;
    }
    if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      copy(end == std::string_view::npos ? text_.size() - at_ : end + 2 - at_);
      return true;
    }
    return false;
  }

  bool skip_literal() {
    const char quote = text_[at_];
    if (quote != '"' && quote != '\'') return false;
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    copy(std::min(end + 1, text_.size()) - at_);
    last_ = quote;
    return true;
  }

  // A brace after ')' opens a function or a statement in one; all within it is in a function.
  void note_brace(char c) {
    if (c == '{') in_function_.push_back((!in_function_.empty() && in_function_.back()) || last_ == ')');
    if (c == '}' && !in_function_.empty()) in_function_.pop_back();
  }

  Error refuse(std::string_view why) const {
    const TextPosition position = position_at(text_, at_);
    return fail(Code::invalid, "{}:{}:{}: {}", shown_source_name(request_), position.line, position.column,
                why);
  }

  std::string_view word_at(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at, end - at);
  }

  Status word() {
    const std::string_view name = word_at(at_);
    if (one_of(name, kPtx)) return refuse("inline PTX does not run on the host");
    if (one_of(name, kMatrix)) return refuse("matrix instructions do not run on the host");
    out_.waits |= one_of(name, kWaitingExact) ||
                  std::any_of(kWaiting.begin(), kWaiting.end(),
                              [&](std::string_view start) { return name.starts_with(start); });
    if (name == "extern") {
      std::size_t next = at_ + name.size();
      while (next < text_.size() && std::isspace(static_cast<unsigned char>(text_[next])) != 0) ++next;
      if (word_at(next) == "__shared__") return dynamic_shared(next + std::string_view("__shared__").size());
    }
    last_ = 'a';
    copy(name.size());
    return {};
  }

  // extern __shared__ TYPE NAME[];  →  TYPE *NAME = furlong_dynamic_shared();
  Status dynamic_shared(std::size_t from) {
    const std::size_t end = text_.find(';', from);
    if (end == std::string_view::npos) return refuse("'extern __shared__' has no end");
    std::string_view declaration = trim(text_.substr(from, end - from));
    const bool array = declaration.ends_with(']');
    if (array) declaration = trim(declaration.substr(0, declaration.rfind('[')));
    std::size_t name_start = declaration.size();
    while (name_start > 0 && is_word(declaration[name_start - 1])) --name_start;
    const std::string_view type = trim(declaration.substr(0, name_start));
    const std::string_view name = declaration.substr(name_start);
    if (!array || type.empty() || name.empty()) {
      return refuse("only 'extern __shared__ TYPE NAME[];' is understood of dynamic shared memory");
    }
    if (in_function_.empty() || !in_function_.back()) {
      return refuse("'extern __shared__' must stand inside the kernel to run on the host");
    }
    const auto lines = std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                  text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    out_.source += fmt::format("{} *{} = furlong_dynamic_shared(){};", type, name,
                               std::string(static_cast<std::size_t>(lines), '\n'));
    // The type's own lines are still in it.
    for (auto kept = std::count(type.begin(), type.end(), '\n'); kept > 0; --kept) {
      out_.source.erase(out_.source.rfind('\n'), 1);
    }
    at_ = end + 1;
    last_ = ';';
    return {};
  }

  const CompileRequest& request_;
  std::string_view text_;
  std::size_t at_ = 0;
  char last_ = ';';  // last character that is no blank; 'a' for a word
  std::vector<bool> in_function_;
  CudaText out_;
};

}  // namespace

Result<CudaText> scan_cuda_text(const CompileRequest& request) {
  FURLONG_TRY(CudaText text, Scanner(request).scan());
  // What its own headers do is not seen here.
  if (!request.include_folders.empty() || request.source.find("#include") != std::string::npos)
    text.waits = true;
  return text;
}

Result<std::string> cuda_translation_unit(const CompileRequest& request) {
  FURLONG_TRY(const CudaText text, scan_cuda_text(request));
  FURLONG_TRY(const std::string table, entry_table(request, "furlong_cuda_host"));
  std::string unit(abi_text());
  unit += FURLONG_TEXT(FURLONG_CUDA_ABI);
  unit += fmt::format("\n#define FURLONG_CUDA_SHIM 1\n#define FURLONG_CUDA_WAITS {}\n", text.waits ? 1 : 0);
  unit += cuda_prelude();
  unit += fmt::format("\n#line 1 {}\n{}\n#line 1 \"furlong-trampoline\"\n",
                      string_literal(shown_source_name(request)), text.source);
  unit += kTail;
  unit += table;
  return unit;
}

CompileRequest with_host_options(CompileRequest request) {
  // CUDA text casts between pointer types freely; whether a·b+c is fused is left to fmaf.
  std::vector<std::string> kept{"-fno-strict-aliasing", "-ffp-contract=off", "-Wno-unknown-pragmas"};
  for (std::size_t i = 0; i < request.options.size(); ++i) {
    std::string option = request.options[i];
    if (option.starts_with("--std=")) option.erase(0, 1);
    const bool takes_next = option == "-I" || option == "-D" || option == "-U";
    const bool same = takes_next || option.starts_with("-D") || option.starts_with("-U") ||
                      option.starts_with("-I") || option.starts_with("-O") || option.starts_with("-W") ||
                      option == "-g" || option.starts_with("-std=");
    if (!same) continue;
    kept.push_back(std::move(option));
    if (takes_next && i + 1 < request.options.size()) kept.push_back(request.options[++i]);
  }
  request.options = std::move(kept);
  return request;
}

std::string shim_answer_text(int answer) {
  switch (answer) {
    case kShimDeadlock:
      return "threads of a block wait for each other at different barriers or with different masks";
    case kShimGridTooLarge:
      return "a side of the grid does not fit 32 bits";
    case kShimThrew:
      return "a C++ exception left the kernel";
    case kShimNoMemory:
      return "there is no memory for the stacks of a block's threads";
    default:
      return fmt::format("gave up with code {}", answer);
  }
}

}  // namespace furlong::device::host
