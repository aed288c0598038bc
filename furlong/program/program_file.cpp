// The reader of program files (docs/formats/program.md); internal/ has one file a table.
#include "furlong/base/text.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/program.h"

namespace furlong::program {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kLargestFile = 4u << 20;

Status check_format(const internal::Reader& in, const TomlNode& root) {
  const TomlNode* node = root.find("format");
  if (node == nullptr)
    return in.error(root, "the file does not begin with its format: write format = {} at the top", kFormat);
  FURLONG_TRY(const std::int64_t format, in.integer(*node, "format"));
  if (format == kFormat) return {};
  return fail(Code::incompatible, "{}:{}:{}: found program file format {}, expected {}", in.name(),
              node->line, node->column, format, kFormat);
}

// Array tables written as [table] and the reverse are told apart by each table's own reader.
Status check_top(const internal::Reader& in, const TomlNode& root) {
  return in.check_keys(root, "a program file",
                       {"format", "program", "source", "problem", "let", "launch", "kernel", "argument",
                        "check", "work", "class", "knob", "constraint", "catalogue", "strictly_better"});
}

}  // namespace

Result<std::shared_ptr<const Program>> parse_program(std::string_view text, std::string_view name,
                                                     const std::filesystem::path& folder, Files& files,
                                                     Emitters emitters) {
  if (text.size() > kLargestFile)
    return fail(Code::invalid, "{}: a program file has at most {}", name, human_bytes(kLargestFile));
  FURLONG_TRY(const TomlNode root, toml_parse(text, name));
  const internal::Reader reader(text, name);
  FURLONG_CHECK(check_format(reader, root));
  FURLONG_CHECK(check_top(reader, root));
  internal::Draft draft{.reader = reader,
                        .root = root,
                        .folder = folder,
                        .files = files,
                        .emitters = emitters,
                        .program = {},
                        .emitter_nodes = {},
                        .lets = {},
                        .let_knobs = {},
                        .knobs = {}};
  FURLONG_CHECK(internal::read_sources(draft));
  FURLONG_CHECK(internal::read_problem(draft));
  FURLONG_CHECK(internal::read_knobs(draft));
  FURLONG_CHECK(internal::resolve_lets(draft));
  FURLONG_CHECK(internal::check_emitters(draft));
  FURLONG_CHECK(internal::read_lattice(draft));
  FURLONG_CHECK(internal::read_arguments(draft));
  FURLONG_CHECK(internal::read_launch(draft));
  FURLONG_CHECK(internal::read_check(draft));
  FURLONG_CHECK(internal::read_work(draft));
  return std::make_shared<const Program>(std::move(draft.program));
}

Result<std::shared_ptr<const Program>> load_program_file(const std::filesystem::path& file, Files& files,
                                                         Emitters emitters) {
  FURLONG_TRY(const std::string text, files.read(file, kLargestFile));
  FURLONG_TRY(
      const auto program,
      parse_program(text, file.string(), file.has_parent_path() ? file.parent_path() : ".", files, emitters));
  auto named = std::make_shared<Program>(*program);
  named->file = file;
  return std::shared_ptr<const Program>(std::move(named));
}

}  // namespace furlong::program
