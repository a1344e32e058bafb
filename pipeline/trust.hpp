// Trusted folders, whose piecewise.toml may set every option. An entry is the folder's canonical
// path and the SHA-256 of the file's text, so a changed file is not trusted. The list is stored in
// the user's state folder, which must not be writable by others.
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

/// Returns the folders in the order of their names; empty if the list cannot be read or is writable
/// by others.
std::vector<TrustedFolder> trusted_folders();
/// Returns whether the user trusts this text as the piecewise.toml of a folder.
Trust trust_of(const std::string& folder, std::string_view text);

/// Records the text of the folder's piecewise.toml. Fails with PW1505 if the list cannot be stored.
Result<TrustedFolder> add_trust(const std::string& folder, std::string_view text);
/// Removes a folder, which may no longer exist, and returns it; empty if it was not trusted. Fails
/// with PW1505 if the list cannot be stored.
Result<std::vector<TrustedFolder>> remove_trust(const std::string& folder);

/// Returns one row for each folder with its state: in force, changed, or missing.
Table trust_table(const std::vector<TrustedFolder>& folders);

}  // namespace pw
