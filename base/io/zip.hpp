// Zip archives in memory, read by libzip. libzip is loaded with the first archive, so that
// everything else runs without it. Nothing is written to disk, and sizes that an archive states are
// trusted only up to its own size.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

struct ZipEntry {
  std::string name;        ///< as stored: a path inside the archive
  std::uint64_t size = 0;  ///< unpacked, in bytes
};

class Zip {
 public:
  /// Opens an archive. `bytes` must outlive it; `file` names it in messages. Fails with PW0003
  /// without libzip. Fails with PW0004 if it is not an archive, has a duplicate or encrypted entry,
  /// or unpacks to far more than its size.
  static Result<Zip> open(std::string_view bytes, std::string file);
  [[nodiscard]] const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Returns the entry, or null if absent.
  [[nodiscard]] const ZipEntry* find(std::string_view name) const;
  /// Reads an entry. Fails with PW0004 if it is absent, larger than `limit` bytes, or damaged.
  [[nodiscard]] Result<std::string> read(std::string_view name, std::size_t limit) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  struct Archive;  ///< libzip's
  Status list(std::size_t bytes);
  [[nodiscard]] tl::unexpected<Diagnostics> wrong(std::string_view entry, std::string why) const;

  std::string file_;
  std::shared_ptr<Archive> archive_;
  std::vector<ZipEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;  ///< in entries_, by name
};

/// Returns true if the bytes begin like an archive.
[[nodiscard]] inline bool looks_like_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04");
}

}  // namespace pw
