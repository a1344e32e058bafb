// Uses an anonymous file, or a file in a private folder on systems without them.
#include "codegen/shared_object.hpp"

#include <cerrno>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/write_all.hpp"
#include "codegen/toolchain.hpp"

namespace pw {

/// The descriptor stays open: its path is the loader's name for the object and must not be reused.
struct SharedObject::Loaded {
  int fd = -1;
  void* handle = nullptr;
  Loaded() = default;
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle) ::dlclose(handle);
    if (fd >= 0) ::close(fd);
  }
};

namespace {}  // namespace

Result<SharedObject> SharedObject::load(std::string_view bytes) {
  SharedObject made;
  made.loaded_ = std::make_shared<Loaded>();
  Loaded& loaded = *made.loaded_;
  loaded.fd = ::memfd_create("piecewise", MFD_CLOEXEC);
  if (loaded.fd >= 0 && write_all(loaded.fd, bytes).empty())
    loaded.handle =
        ::dlopen(fmt::format("/proc/self/fd/{}", loaded.fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded.handle) {
    const PrivateFolder folder;
    const std::string path = folder.path() + "/kernel.so";
    if (!folder.path().empty() && write_file(path, bytes))
      loaded.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (loaded.handle) return made;
  const char* why = ::dlerror();
  return fail(error_in(
      "compiled kernels", "PW1223",
      fmt::format("the kernels cannot be loaded: {}", why ? why : "no writable location")));
}

void* SharedObject::symbol(const char* name) const {
  return loaded_ ? ::dlsym(loaded_->handle, name) : nullptr;
}

}  // namespace pw
