#pragma once
// A program while its file is read: the pieces of the reader (one a table of the file) work on this in turn.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "furlong/program/internal/reader.h"
#include "furlong/program/program.h"

namespace furlong::program::internal {

const std::vector<std::string>& language_words();

/// A knob before it goes into the editions in whose languages it exists.
struct KnobDraft {
  lattice::Knob knob;
  std::string define_name;
  std::map<std::size_t, std::vector<std::pair<Rewrite, std::set<std::string>>>>
      rewrites;  ///< with languages; empty: all
  const TomlNode* node = nullptr;
  std::optional<PlacedExpression> requirement;
};

struct Draft {
  const Reader& reader;
  const TomlNode& root;
  std::filesystem::path folder;
  Files& files;
  Emitters emitters;  ///< beside the shipped
  Program program;
  std::map<std::string, const TomlNode*> emitter_nodes;  ///< by language: where the emitter is named
  std::vector<PlacedExpression> lets;  ///< beside program.lets, in the file's order until resolved
  std::map<std::string, std::set<std::string>> let_knobs;  ///< knobs that a let uses, through others too
  std::vector<KnobDraft> knobs;

  std::filesystem::path resolve(const std::string& path) const { return (folder / path).lexically_normal(); }
  bool knob_exists(std::string_view knob, std::string_view language) const;
};

/// Which names an expression may use.
enum class Uses {
  problem,           ///< problem parameters, device facts and lets that use no knob
  knobs_of_edition,  ///< these and the knobs of one language
};

/// Every name in the expression is defined; `language` empty: the expression must hold in every language of
/// the program.
Status check_names(const Draft& draft, const PlacedExpression& expression, Uses uses,
                   std::string_view language = {});
/// Placeholders {name} of knobs and problem parameters in entries and defines.
Status check_placeholders(const Draft& draft, const TomlNode& node, std::string_view text,
                          std::string_view language);
/// The expression's text with every let put in, in parentheses; for the lattice, which knows no lets.
Result<lattice::Expression> without_lets(const Draft& draft, const PlacedExpression& expression);

// One function a table of the file, in the order in which they must run.
Status read_sources(Draft& draft);  ///< [program], [source.*]: editions with texts and headers
Status read_problem(Draft& draft);  ///< [problem], [let]
Status read_knobs(Draft& draft);    ///< [[knob]]
/// claims of one [[knob]], whose values and default are known.
Status read_claims(const Draft& draft, const TomlNode& table, lattice::Knob& knob);
Status resolve_lets(Draft& draft);          ///< undefined names and cycles in [let]
Status check_emitters(const Draft& draft);  ///< what they read of the problem is there
Status read_lattice(
    Draft& draft);  ///< [[constraint]], [[strictly_better]], catalogue; lattices of the editions
Status read_arguments(Draft& draft);  ///< [[argument]]
Status read_launch(Draft& draft);     ///< [launch], [[kernel]]
Status read_check(Draft& draft);      ///< [check]
Status read_work(Draft& draft);       ///< [work], [class]

/// Reads an .npy or raw file; the node's place stands in the error.
Result<std::shared_ptr<const DataFile>> read_data_file(const Draft& draft, const TomlNode& node,
                                                       const std::filesystem::path& path);

}  // namespace furlong::program::internal
