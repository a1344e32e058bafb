// A file mapped into memory without reading it whole: pages are loaded on first access.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// The bytes of a file. They stay readable if the file is truncated or rewritten; check_unchanged()
/// then fails, and results computed from them must be discarded.
class MappedFile {
 public:
  /// Maps a file; fails with PW1270 if it cannot be mapped. Writing to the bytes does not change
  /// the file.
  static Result<MappedFile> open(const std::string& path);
  /// Returns a 64-byte aligned copy of these bytes in place of a file.
  static MappedFile of(std::string_view bytes);
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), size_}; }
  /// Returns a part of the file; it keeps the whole mapping alive.
  [[nodiscard]] std::shared_ptr<std::byte[]> part(std::size_t begin) const {
    return {data_, data_.get() + begin};
  }
  /// Fails with PW1275 if the file was written or cut off since it was opened, or if a page could
  /// not be read.
  [[nodiscard]] Status check_unchanged() const;
  /// Returns true if this memory is a part of a mapped file, which may still change.
  [[nodiscard]] bool maps(const std::byte* memory) const;

 private:
  struct Mapping;

  std::shared_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::shared_ptr<const Mapping> mapping_;  ///< null: the bytes are a copy
};

}  // namespace pw
