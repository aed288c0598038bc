#pragma once
// A store from a list of races. Everything that the races need is frozen into it: the programs with all their
// files. docs/formats/campaign.md.

#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "furlong/base/error.h"
#include "furlong/shard/progress.h"

namespace furlong::campaign {

struct StoreSummary {
  std::uint64_t races = 0, units = 0, items = 0, item_bytes = 0;
  std::uint64_t programs = 0, datasets = 0;  ///< shared by races; the same content once
  std::uint64_t repeated = 0;                ///< races that the list has more than once
};

/// Reads `list` and writes the store file; nothing is left behind on failure. Nothing of the store depends on
/// the order of the list. Errors name the list's line: a program that does not read, a parameter that it does
/// not have, a pack without a trusted signature (`denied`). Progress is of the step "store", in programs.
Result<StoreSummary> make_campaign_store(const std::filesystem::path& list,
                                         const std::filesystem::path& store,
                                         const shard::Progress& progress = {}, std::stop_token stop = {});

}  // namespace furlong::campaign
