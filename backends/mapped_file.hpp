// A file in memory without being read whole: pages come when they are touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

class MappedFile {
 public:
  /// PW1270 for what is no file that can be mapped. Writing to the bytes does not change the file.
  static Result<MappedFile> open(const std::string& path);
  /// A copy of these bytes, 64-byte aligned, in the place of a file.
  static MappedFile of(std::string_view bytes);
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), size_}; }
  /// A part of it, which keeps the whole mapped.
  [[nodiscard]] std::shared_ptr<std::byte[]> part(std::size_t begin) const {
    return {data_, data_.get() + begin};
  }

 private:
  std::shared_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

}  // namespace pw
