#pragma once
// Copies of a fleet's store: into another, of whatever kind, and into a file.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

struct CopyCounts {
  std::uint64_t machines = 0, tokens = 0;  ///< that were put
  std::uint64_t batches = 0, races = 0;    ///< that were put
  std::uint64_t there = 0;                 ///< batches that were there already
  std::uint64_t of_batches = 0;            ///< that `from` had at the beginning
};
using CopyProgress = std::function<void(const CopyCounts&)>;

/// Copies machines, tokens and batches, each with its exact bytes, and the races of `from`: after it, `to`
/// holds what `from` does, besides what it held before; machines and tokens that both have are merged
/// (store.h), so that nothing is taken back from a `to` that has gone on. Races are decoded anew from their
/// records; those that `from` has replaced or forgotten stay so. `from` may be written to meanwhile: what
/// comes after the beginning may be missing. After an error run it again: it goes on where it was. Errors of
/// the stores; `corrupt` names the batch and line that cannot be read.
Result<CopyCounts> copy_store(Store& from, Store& to, const CopyProgress& progress = {});

/// Opens a store in a new file.
using OpenFile = std::function<Result<std::unique_ptr<Store>>(const std::filesystem::path& file)>;
/// A whole copy in one new file, which has its name only when it is complete and on the disk. `from` may be
/// written to meanwhile: a kind that can make a snapshot gives one moment, another is copied. `invalid`: the
/// file is there, or was made meanwhile; it stays as it is. What one that was killed leaves is
/// FILE.*.partial.
Status backup_store(Store& from, const std::filesystem::path& file, const OpenFile& open_file,
                    const CopyProgress& progress = {});

}  // namespace furlong::fleet
