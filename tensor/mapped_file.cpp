#include "tensor/mapped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/mapped_range.hpp"

namespace pw {
struct MappedFile::Mapping {
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    range.reset();
    if (data != nullptr) ::munmap(data, size());
    if (file >= 0) ::close(file);
  }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(opened.st_size); }
  /// Returns true if nothing wrote to the file since it was opened.
  [[nodiscard]] bool unchanged() const {
    struct stat now{};
    return ::fstat(file, &now) == 0 && now.st_size == opened.st_size &&
           now.st_mtim.tv_sec == opened.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == opened.st_mtim.tv_nsec;
  }

  std::string path;
  int file = -1;
  struct stat opened{};
  std::byte* data = nullptr;
  std::optional<MappedRange> range;
};

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return fail(error_in(path, "PW1270", "cannot be mapped: " + why));
  };
  const auto mapping = std::make_shared<Mapping>();
  mapping->path = path;
  mapping->file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (mapping->file < 0) return refuse(std::strerror(errno));
  if (::fstat(mapping->file, &mapping->opened) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(mapping->opened.st_mode)) return refuse("it is not a regular file");
  MappedFile out;
  out.size_ = mapping->size();
  if (out.size_ == 0) return out;
  void* at = ::mmap(nullptr, out.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, mapping->file, 0);
  if (at == MAP_FAILED) return refuse(std::strerror(errno));
  mapping->data = static_cast<std::byte*>(at);
  mapping->range.emplace(mapping->data, out.size_);
  out.data_ = std::shared_ptr<std::byte[]>(mapping, mapping->data);
  out.mapping_ = mapping;
  return out;
}

Status MappedFile::check_unchanged() const {
  if (!mapping_ || (mapping_->unchanged() && !mapping_->range->lost())) return {};
  return fail(error_in(mapping_->path, "PW1275",
                       mapping_->unchanged() ? "part of the file cannot be read"
                                             : "the file changed while it was being read",
                       mapping_->unchanged() ? "see the system log for the reason"
                                             : "run again when nothing writes to the file; to "
                                               "replace a file, write another one and rename it"));
}

bool MappedFile::maps(const std::byte* memory) const {
  const std::less<const std::byte*> before;
  return mapping_ && !before(memory, mapping_->data) &&
         before(memory, mapping_->data + mapping_->size());
}

MappedFile MappedFile::of(std::string_view bytes) {
  constexpr std::align_val_t kAligned{64};
  MappedFile out;
  out.size_ = bytes.size();
  out.data_ = std::shared_ptr<std::byte[]>(
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes.size(), 1), kAligned)),
      [](std::byte* p) { ::operator delete(p, kAligned); });
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(out.data_.get()));
  return out;
}

}  // namespace pw
