// Exports MappedFile.
#include "backends/mapped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pw {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return fail(error_in(path, "PW1270", "cannot be mapped: " + why));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return refuse(std::strerror(errno));
  const std::shared_ptr<void> closed(nullptr, [file](void*) { ::close(file); });
  struct stat info{};
  if (::fstat(file, &info) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("it is no regular file");
  MappedFile out;
  out.size_ = static_cast<std::size_t>(info.st_size);
  if (out.size_ == 0) return out;
  void* at = ::mmap(nullptr, out.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) return refuse(std::strerror(errno));
  out.data_ = std::shared_ptr<std::byte[]>(static_cast<std::byte*>(at),
                                           [size = out.size_](std::byte* p) { ::munmap(p, size); });
  return out;
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
