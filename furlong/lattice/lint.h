#pragma once
// The discipline of the lattice as checks (docs/lattice.md), and the map that people read.

#include <string>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice {

struct Finding {
  std::string where;  ///< knob, constraint or catalogue entry
  std::string what;   ///< what is wrong and how to mend it
  int line = 0;       ///< in the program file; 0 unknown
};

struct LintOptions {
  std::vector<std::string> known_names;  ///< problem parameters and device facts that constraints may use
  Lookup facts;                          ///< their values, for reachability and the default point
  bool user_file = false;  ///< a user's program: missing sentences are findings only for shipped programs
};

/// All findings, empty when clean. Never fails: a lattice that cannot be evaluated is a finding.
std::vector<Finding> lint(const Lattice& lattice, const LintOptions& options);

/// knob, default, values, wins, loses, evidence, as a table for people and as JSON.
std::string show_text(const Lattice& lattice);
/// The trade-off table and the strictly-better list in Markdown, for pages: one row a knob. The same lattice
/// gives the same bytes. `lattice` may hold the knobs of several languages.
std::string show_markdown(const Lattice& lattice);
Json show_json(const Lattice& lattice);

}  // namespace furlong::lattice
