// Where compiled objects may be kept: folders that nobody else can write to.
#pragma once

#include <string>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// $PWR_CACHE_DIR, else piecewise under $XDG_CACHE_HOME or ~/.cache; empty without any of them.
[[nodiscard]] std::string default_cache_folder();
/// $PWR_CACHE_READ_ONLY_DIR; empty when not set.
[[nodiscard]] std::string default_read_only_folder();

/// Makes the folder with mode 0700 where it is absent. PW1230 where it is no folder, belongs to
/// somebody else or can be written by others; where others can only read it, it is closed to them.
Status take_private_folder(const std::string& path);
/// Why objects of a folder that somebody else fills are not trusted; empty when they are: it
/// belongs to root or to this user, and nobody else can write to it.
[[nodiscard]] std::string distrust(const std::string& path);

}  // namespace pw
