#pragma once
// Fills a Database from its texts, statement by statement, with the scopes as they are opened and closed.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/shard/executor/metamath/database.h"
#include "furlong/shard/executor/metamath/internal/lexer.h"

namespace furlong::shard::metamath {

class Parser {
 public:
  /// `files`: null where no inclusion is allowed.
  Parser(Database& database, Files* files) : database_(database), files_(files) {}
  Status read_file(const std::filesystem::path& file);
  Status read_text(std::string name, std::string text);
  /// What can only be said at the end: scopes that are still open.
  Status finish();

 private:
  /// What a $} takes back: sizes of the lists below at the ${.
  struct Scope {
    std::size_t variables, hypotheses, disjoint;
    Place opened;
  };
  /// Per symbol; an index of floating_ is that of the hypothesis + 1.
  struct State {
    bool active = false;
    std::uint32_t floating = 0;
    std::uint32_t marked = 0;
  };

  Status source(std::uint32_t index);
  Status statement(Lexer& lexer, std::string_view token);
  Status labelled(Lexer& lexer, std::string_view label);
  Status constants(Lexer& lexer, std::string_view keyword);
  Status variables(Lexer& lexer);
  Status disjoint(Lexer& lexer, std::string_view keyword);
  Status include(Lexer& lexer, std::string_view keyword);
  Status close_scope(std::string_view keyword);
  Status floating(Lexer& lexer, std::string_view label);
  Status essential(Lexer& lexer, std::string_view label);
  Status assertion(Lexer& lexer, std::string_view label, bool theorem);

  /// Active symbols up to `end`, the first a constant, every variable with a type.
  Result<Range> symbols(Lexer& lexer, std::string_view label, std::string_view statement,
                        std::string_view end);
  Result<Symbol> declare(std::string_view name, bool variable);
  Status name_label(std::string_view label, std::uint32_t value);
  void make_frame(Assertion& assertion);
  void mark(Range expression);
  std::uint32_t pool(std::size_t size) const { return static_cast<std::uint32_t>(size); }

  Result<std::string_view> next(Lexer& lexer, std::string_view label, std::string_view inside);
  Error at_lexer(const Lexer& lexer, Error error) const;
  Error wrong(std::string_view token, std::string message) const;
  Error wrong(std::string_view token, std::string_view label, std::string message) const;
  Place place(std::string_view token) const;

  Database& database_;
  Files* files_;
  std::filesystem::path folder_;
  std::set<std::string> included_;
  std::uint32_t source_ = 0;
  std::uint32_t clock_ = 0;
  std::uint32_t stamp_ = 0;
  std::vector<State> states_;
  std::vector<Symbol> active_variables_;
  std::vector<std::uint32_t> active_hypotheses_, active_disjoint_;
  std::vector<Scope> scopes_;
};

}  // namespace furlong::shard::metamath
