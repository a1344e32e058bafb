// Zip archives in memory, as libzip reads them. libzip is loaded when the first archive needs it,
// so that all else runs where there is none. Nothing is written to a disk, and what an archive says
// of itself is believed no further than its own size.
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
  std::string name;        ///< as it is written: a path inside of the archive
  std::uint64_t size = 0;  ///< of its bytes, unpacked
};

class Zip {
 public:
  /// `bytes` must outlive it; `file` names them in messages. PW0003: there is no libzip. PW0004: it
  /// is no archive, an entry is there twice or encrypted, or unpacks to far more than the archive.
  static Result<Zip> open(std::string_view bytes, std::string file);
  [[nodiscard]] const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null when absent.
  [[nodiscard]] const ZipEntry* find(std::string_view name) const;
  /// PW0004: absent, larger than `limit` bytes, or damaged.
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

/// Whether an archive begins here.
[[nodiscard]] inline bool looks_like_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04");
}

}  // namespace pw
