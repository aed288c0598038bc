#pragma once
// A store from a Metamath database. Unit = a theorem: it owns a statement item and a proof item, and refers
// to the statements that its proof uses. All axioms, definitions and syntax ($a) are the items of one unit
// before all theorems, "(axioms)": there is nothing to execute in them, and one unit a statement would only
// fill plans with thousands of units that cost nothing. docs/formats/metamath-items.md.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/executor/metamath/database.h"
#include "furlong/shard/progress.h"
#include "furlong/shard/types.h"

namespace furlong::shard::metamath {

/// The name of the unit that owns what $a states; no label can be that.
inline constexpr std::string_view kAxiomsUnit = "(axioms)";

/// Where units go: a StoreWriter, or memory. One thread at a time.
class UnitSink {
 public:
  virtual ~UnitSink() = default;
  /// The same bytes twice are one item. `shared`: other units will refer to it (StoreWriter::add_item).
  virtual Result<Key> add_item(ByteView bytes, bool shared) = 0;
  virtual Status add_unit(const std::string& name, std::vector<Key> items, std::vector<Key> references) = 0;
};

struct StoreSummary {
  std::uint64_t axioms = 0;  ///< $a statements
  std::uint64_t proofs = 0;  ///< $p statements, as `metamath` counts them: as many units
  /// Theorems that state, letter by letter, what an axiom or an earlier theorem states: their units own a
  /// proof item alone.
  std::uint64_t restated = 0;
  std::uint64_t units = 0, items = 0, item_bytes = 0;
};

/// Units in the order of the text. A proof that is wrong or unfinished makes a unit all the same, which its
/// check rejects; one whose labels cannot be resolved is `invalid` with file, line and label. `timeout` when
/// stopped. Progress is of the step "store", in theorems.
Result<StoreSummary> make_units(const Database& database, UnitSink& sink, const Progress& progress = {},
                                std::stop_token stop = {});

/// Reads `database` and writes the store file; nothing is left behind on failure.
Result<StoreSummary> make_metamath_store(const std::filesystem::path& database,
                                         const std::filesystem::path& store, const Progress& progress = {},
                                         std::stop_token stop = {});

}  // namespace furlong::shard::metamath
