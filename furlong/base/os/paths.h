#pragma once
// Where Furlong keeps things: the XDG folders, each overridable.

#include <filesystem>

namespace furlong {

/// $FURLONG_CACHE_DIR, else $XDG_CACHE_HOME/furlong, else ~/.cache/furlong: may be deleted at any time.
std::filesystem::path cache_folder();
/// $FURLONG_STATE_DIR, else $XDG_STATE_HOME/furlong, else ~/.local/state/furlong: quarantine, records.
std::filesystem::path state_folder();
/// $FURLONG_CONFIG_DIR, else $XDG_CONFIG_HOME/furlong, else ~/.config/furlong: trusted keys.
std::filesystem::path config_folder();

}  // namespace furlong
