// Compiled row kernels: from the text of a kernel to a function in this process, each text once.
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
  /// The cache may be null: then it is opened from the environment when it is first needed.
  Kernels(Toolchain toolchain, EmitOptions options, std::shared_ptr<CompileCache> cache);
  /// Compiles what is new, several at a time. By text: the function, or why there is none.
  void compile(std::span<const std::string> texts);
  /// Of a text that was compiled; null when that failed, for the reason.
  [[nodiscard]] RowFunction function(const std::string& text, std::string* reason = nullptr) const;
  [[nodiscard]] const Toolchain& toolchain() const { return toolchain_; }
  [[nodiscard]] std::size_t compiled() const { return compiled_; }  ///< runs of the compiler
  /// Null before the first kernel.
  [[nodiscard]] const CompileCache* cache() const { return cache_.get(); }

 private:
  struct Entry {
    SharedObject object;
    RowFunction function = nullptr;
    std::string reason;
  };
  Entry make(const std::string& text);
  static Entry loaded(const std::string& bytes);
  /// Of the object of a source, as this machine's compiler makes it, or as any did.
  [[nodiscard]] std::string key(const std::string& source, const std::string& compiler) const;

  Toolchain toolchain_;
  EmitOptions options_;
  std::shared_ptr<CompileCache> cache_;
  std::string processor_;
  std::vector<std::string> flags_;
  std::map<std::string, Entry> entries_;
  std::atomic<std::size_t> compiled_ = 0;
};

}  // namespace pw::cpu
