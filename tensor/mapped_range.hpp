// Memory that is mapped from a file and stays readable if the file is cut off.
#pragma once

#include <cstddef>

namespace pw {

struct MappedPlace;

/// A range of mapped pages in which a bus error is survived: zeros take the place of the pages from
/// there on, and lost() returns true. Any other bus error reaches the handler that the process had
/// before.
class MappedRange {
 public:
  MappedRange(std::byte* begin, std::size_t size);
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;
  /// Has to run before the pages are unmapped.
  ~MappedRange();
  /// Returns true if a page could not be read.
  [[nodiscard]] bool lost() const;

 private:
  MappedPlace& place_;
};

}  // namespace pw
