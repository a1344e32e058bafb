// Folders whose piecewise.toml may set every option: by the folder's canonical path and the SHA-256
// of the file's text, so that a file that changes loses the trust. The list is in the user's state
// folder, which nobody else can write to.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

constexpr const char* kConfigName = "piecewise.toml";

struct TrustedFolder {
  std::string folder;  ///< canonical
  std::string sha256;  ///< of the text of its piecewise.toml
};

enum class Trust { none, changed, in_force };

/// Returns the folders in the order of their names; none where the list cannot be read, or where
/// others can write to it.
std::vector<TrustedFolder> trusted_folders();
/// Returns whether the user trusts this text as the piecewise.toml of a folder.
Trust trust_of(const std::string& folder, std::string_view text);

/// Records the text of the folder's piecewise.toml. PW1505 where the list cannot be kept.
Result<TrustedFolder> add_trust(const std::string& folder, std::string_view text);
/// Returns the folders that were removed: none, or this one. A folder that is gone is found by its
/// path. PW1505 where the list cannot be kept.
Result<std::vector<TrustedFolder>> remove_trust(const std::string& folder);

/// A row a folder, with its state now: in force, changed, or missing.
Table trust_table(const std::vector<TrustedFolder>& folders);

}  // namespace pw
