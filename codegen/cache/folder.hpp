// Finds folders for compiled objects that no other user can write to.
#pragma once

#include <string>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// Returns true if $PWR_DISABLE_CACHE is set, and is not 0: nothing is read or stored.
[[nodiscard]] bool is_cache_disabled();
/// Returns $PWR_CACHE_DIR, else `piecewise` under $XDG_CACHE_HOME or ~/.cache; empty if none of
/// these is set.
[[nodiscard]] std::string default_cache_folder();
/// Returns $PWR_CACHE_READ_ONLY_DIR; empty if it is not set.
[[nodiscard]] std::string default_read_only_folder();

/// Creates the folder with mode 0700 if it is absent, and removes other users' read permission.
/// Fails with PW1230 if the path is not a folder, belongs to another user, or is writable by
/// others.
Status take_private_folder(const std::string& path);
/// Returns why the objects of a folder filled by someone else are not trusted; empty if they are. A
/// trusted folder belongs to root or this user and is not writable by others.
[[nodiscard]] std::string distrust(const std::string& path);

}  // namespace pw
