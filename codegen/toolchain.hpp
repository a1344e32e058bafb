// The C++ compiler of this machine, for generated code of the CPU: found once, identified without
// being started, and run without a shell to make shared objects.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// The first of $CXX, c++, g++, clang++ that is an executable on PATH; empty when there is none.
/// $CXX is one path or name: words after it are not split off, and such a value finds nothing.
[[nodiscard]] std::string host_compiler();

/// The path of an executable that a shell would find on PATH by this name, which may be a path
/// itself; empty when there is none.
[[nodiscard]] std::string find_executable(const std::string& name);

/// A folder that only this user can read, removed with all in it. Empty path: none could be made.
class PrivateFolder {
 public:
  PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Toolchain {
  std::string compiler;  ///< empty: there is none
  /// The resolved path with its size and time of change: another compiler, another identity.
  std::string identity;
  [[nodiscard]] bool present() const { return !compiler.empty(); }
  static Toolchain find();
  /// The bytes of a shared object. `flags` come before the source. PW1222 without a compiler or a
  /// temporary folder, PW1223 with the compiler's words when it fails.
  [[nodiscard]] Result<std::string> shared_object(const std::string& source,
                                                  std::span<const std::string> flags) const;
};

/// Identifies this machine's processor: model and features as the system lists them; empty where it
/// does not.
[[nodiscard]] std::string processor();

}  // namespace pw
