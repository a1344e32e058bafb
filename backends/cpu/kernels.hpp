// Compiles row kernels from their text to functions in this process, each text once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/emitter.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/shared_object.hpp"
#include "codegen/toolchain.hpp"

namespace pw::cpu {

/// See `kEntry`.
using RowFunction = void (*)(void* const* pointers, const long long* params, long long begin,
                             long long end);

class Kernels {
 public:
  /// Creates the set. A null cache is opened from the environment on first use.
  Kernels(Toolchain toolchain, EmitOptions options, std::shared_ptr<CompileCache> cache);
  /// Compiles the new texts, several at a time, and stores each function or its error by text.
  void compile(std::span<const std::string> texts);
  /// Returns the function of a compiled text, or null with a reason if compiling failed.
  [[nodiscard]] RowFunction function(const std::string& text, std::string* reason = nullptr) const;
  [[nodiscard]] const Toolchain& toolchain() const { return toolchain_; }
  [[nodiscard]] std::size_t compiled() const { return compiled_; }  ///< runs of the compiler
  /// Returns the cache, or null before the first kernel.
  [[nodiscard]] const CompileCache* cache() const { return cache_.get(); }

 private:
  struct Entry {
    SharedObject object;
    RowFunction function = nullptr;
    std::string reason;
  };
  Entry make(const std::string& text);
  static Entry loaded(const std::string& bytes);
  /// Returns the cache key of a source's object for one compiler; with an empty `compiler` the key
  /// is valid for any.
  [[nodiscard]] KeyParts key(const std::string& source, const std::vector<std::string>& flags,
                             const std::string& compiler) const;

  Toolchain toolchain_;
  EmitOptions options_;
  std::shared_ptr<CompileCache> cache_;
  std::string processor_;
  std::vector<std::string> flags_, exact_flags_;
  std::map<std::string, Entry> entries_;
  std::atomic<std::size_t> compiled_ = 0;
};

}  // namespace pw::cpu
