#pragma once
// Files imported records in a store, and takes records out of one again (docs/formats/fleet-exchange.md).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/fleet/exchange/record_reader.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

struct ImportCounts {
  std::uint64_t records = 0, accepted = 0, duplicate = 0;
  std::uint64_t machines = 0;  ///< under which they are filed
};

/// Records wait until there are some thousands of them, and go into the store in one transaction; what is
/// not flushed is lost with the object. The same records again are duplicates: nothing changes. For one
/// thread.
class Importer {
 public:
  /// `as`: the machine that all are filed under; empty: each under the one that it names.
  Importer(Store& store, std::string as, std::int64_t now_us)
      : store_(store), as_(std::move(as)), now_us_(now_us) {}
  /// Errors of the store.
  Status add(const ImportedRecord& record);
  Status flush();
  const ImportCounts& counts() const { return counts_; }

 private:
  struct Waiting {
    std::vector<std::string> lines;
    std::vector<DecodedRace> races;
  };
  Store& store_;
  const std::string as_;
  const std::int64_t now_us_;
  std::map<std::string, Waiting> waiting_;  // by machine
  std::size_t records_ = 0, bytes_ = 0;
  std::map<std::string, bool> made_;
  ImportCounts counts_;
};

struct ExportFilter {
  std::string card;  ///< label or silicon hash
  std::string program;
  std::string machine;  ///< as the store names it: "import:NAME" for imported ones, or NAME alone
  Window window;
};

/// Calls `visit` with every record that the store holds and the filter lets through, as the machine wrote it:
/// ordered by time, then id. Holds 48 bytes for each record of a day, and 64 MiB of batches; days with more
/// than two million records need more. The visitor returns false to end it. Returns how many were visited.
Result<std::uint64_t> export_records(Store& store, const ExportFilter& filter,
                                     const std::function<Result<bool>(std::string_view line)>& visit);

}  // namespace furlong::fleet
