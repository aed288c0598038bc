#pragma once
// What the commands share that read and write a fleet's records: the store's URL, filters, progress.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/furlong/command.h"
#include "furlong/fleet/exchange/importer.h"
#include "furlong/fleet/store/store.h"

namespace furlong::app {

OptionSpec store_option(std::string help);
/// The store that --store names. `invalid` without the option.
Result<std::unique_ptr<fleet::Store>> open_store(const Arguments& arguments,
                                                 const fleet::StoreKind::Options& options);
/// Whether a positional is a store's URL rather than a file's name: "sqlite:…", "postgresql://…".
bool is_store_url(std::string_view text);

/// --card, --program, --machine, --since, --until.
std::vector<OptionSpec> filter_options();
Result<fleet::ExportFilter> export_filter(const Arguments& arguments);

/// People name what they imported, the store where it is filed: the id of a machine as the store has it.
/// Empty for an empty name; `invalid` when the store knows none.
Result<std::string> filed_machine(fleet::Store& store, const std::string& name);

/// `invalid` for a card or a program of the filter that no record names; the nearest ones are told.
Status check_filter_names(fleet::Store& store, const fleet::ExportFilter& filter);

/// Of a word that is no machine's id: ": rack7 is the label of 693f59f934134716; say that" where it is
/// exactly one machine's label, else the ids that it may have been meant for. Empty where none is near: of
/// ids, which are hexadecimal, none is near a word that is not.
std::string nearest_machine(const std::vector<fleet::Machine>& machines, const std::string& name);

/// One line on a terminal's standard error that is drawn anew a few times a second; nothing elsewhere. The
/// destructor clears it.
class RecordsProgress {
 public:
  explicit RecordsProgress(bool quiet = false);
  ~RecordsProgress();
  RecordsProgress(const RecordsProgress&) = delete;
  RecordsProgress& operator=(const RecordsProgress&) = delete;
  /// `share`: 0 to 1; negative: not known.
  void show(const std::string& text, double share);
  /// Before something else is written to standard error.
  void clear();

 private:
  bool on_ = false, drawn_ = false;
  std::int64_t next_ns_ = 0, begin_ns_ = 0;
};

/// "12 345 records".
std::string count_text(std::uint64_t count, std::string_view what);

}  // namespace furlong::app
