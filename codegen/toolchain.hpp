// The machine's C++ compiler for generated CPU code. It is found once, identified without starting
// it, and run without a shell to make shared objects.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// Returns the first of $CXX, c++, g++, clang++ that is an executable on PATH; empty if there is
/// none. $CXX is one path or name: a value with arguments finds nothing.
[[nodiscard]] std::string host_compiler();

/// Returns the path of an executable, searched on PATH like a shell does; `name` may be a path.
/// Empty if there is none.
[[nodiscard]] std::string find_executable(const std::string& name);

/// A folder readable only by this user and removed with its contents. An empty path means that it
/// could not be created.
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
  std::string compiler;  ///< empty: not found
  /// The resolved path with its size and modification time; it changes with the compiler.
  std::string identity;
  [[nodiscard]] bool present() const { return !compiler.empty(); }
  static Toolchain find();
  /// Compiles a source to the bytes of a shared object. `flags` precede the source. Fails with
  /// PW1222 without a compiler or temporary folder, and with PW1223 and the compiler's output if
  /// compiling fails.
  [[nodiscard]] Result<std::string> shared_object(const std::string& source,
                                                  std::span<const std::string> flags) const;
};

/// Returns the processor's model and features as the system lists them; empty if it lists none.
[[nodiscard]] std::string processor();

}  // namespace pw
