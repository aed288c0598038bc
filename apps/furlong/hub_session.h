#pragma once
// What a hub needs from where the program is installed.

#include <filesystem>
#include <vector>

#include "furlong/fleet/hub/hub.h"

namespace furlong::app {

/// The dashboard's files: as installed, and in a source tree above the binary; empty: nowhere.
std::filesystem::path shipped_web();
/// Of the programs that are shipped. One that cannot be read is told and left out: the hub audits the others.
std::vector<fleet::ShippedLattice> shipped_lattices();

}  // namespace furlong::app
