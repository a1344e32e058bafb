// Memory mapped from a file that stays readable if the file is truncated.
#pragma once

#include <cstddef>

namespace pw {

struct MappedPlace;

/// A range of mapped pages that survives bus errors: the failing page and all later pages are
/// replaced by zeros, and lost() returns true. Any other bus error reaches the process's earlier
/// handler.
class MappedRange {
 public:
  MappedRange(std::byte* begin, std::size_t size);
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;
  /// Unregisters the range. Call it before the pages are unmapped.
  ~MappedRange();
  /// Returns true if a page could not be read.
  [[nodiscard]] bool lost() const;

 private:
  MappedPlace& place_;
};

}  // namespace pw
