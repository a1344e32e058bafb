// Compiled objects by what they were made from: found in the user's folder or in a read-only one
// below it, else made once, by one process at a time, and kept. Objects never change; a file whose
// checksum is wrong, or that its user cannot use, is thrown away, counted and made anew. Without a
// folder everything is made, and `problem` says why.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/diagnostic.hpp"
#include "codegen/cache/objects.hpp"

namespace pw {

struct CacheOptions {
  std::string folder;     ///< empty: nothing is kept
  std::string read_only;  ///< empty: none
  /// Gets each object that is handed out, and each name that is given; null: nobody collects them.
  std::shared_ptr<CompiledObjects> collected = {};
  /// Has all objects there are: no folder is looked at, and nothing is made. Null: it is not so.
  std::shared_ptr<const CompiledObjects> sealed = {};
  /// From the environment; see folder.hpp.
  static CacheOptions from_environment();
};

struct CacheCounts {
  std::uint64_t found = 0, made = 0, evicted = 0, unwritten = 0;
};

/// All objects of a folder.
struct CacheContents {
  struct Kind {
    std::size_t objects = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Kind> kinds;
  std::size_t bad = 0;        ///< whose checksum is wrong: thrown away
  std::size_t leftovers = 0;  ///< unfinished files of processes that ended: thrown away
};

class CompileCache {
 public:
  explicit CompileCache(CacheOptions options);
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;
  /// Adds this process's counts to the folder's.
  ~CompileCache();

  /// The object of a key (64 hexadecimal digits): found, or made by `make`, whose errors are
  /// returned and not kept. May be called from several threads; two that ask for one key at the
  /// same time, in any processes, make it once.
  /// An object that `usable` refuses is thrown away like one whose checksum is wrong; one that was
  /// just made is returned, but not kept.
  Result<std::string> get(
      const std::string& kind, const std::string& key,
      const std::function<Result<std::string>()>& make,
      const std::function<bool(const std::string&)>& usable = [](const std::string&) {
        return true;
      });

  /// The object of what `key` names with a compiler's identity. Where there is no compiler, or the
  /// cache is sealed, it is the one that any compiler made last of the same: so `compiler` is empty
  /// where there is none.
  Result<std::string> get_compiled(
      const std::string& kind, const std::string& compiler,
      const std::function<std::string(const std::string& compiler)>& key,
      const std::function<Result<std::string>()>& make,
      const std::function<bool(const std::string&)>& usable = [](const std::string&) {
        return true;
      });

  /// Keeps the key of the object that was last made for a name (a digest too), for a process that
  /// cannot compute the whole key because it finds no compiler.
  void remember(const std::string& name, const std::string& key);
  /// The key; empty where none is known.
  [[nodiscard]] std::string recall(const std::string& name) const;

  /// Whether nothing can be made: PW1226 for what is not there.
  [[nodiscard]] bool sealed() const { return options_.sealed != nullptr; }
  /// Objects that were asked for and are not there.
  [[nodiscard]] std::size_t missing() const { return missing_; }
  [[nodiscard]] CacheCounts counts() const;  ///< of this process
  [[nodiscard]] CacheCounts totals() const;  ///< of all processes that have ended, by the folder
  [[nodiscard]] const std::string& folder() const { return options_.folder; }
  /// Why there is no folder, or why nothing can be written to it; empty when all is well.
  [[nodiscard]] std::string problem() const;

  /// Reads every object; what is bad or left over goes when `repair` is set.
  CacheContents inspect(bool repair);
  /// Removes all objects, and the counts; returns how many.
  std::size_t clear();

 private:
  Result<std::string> found_or_made(const std::string& kind, const std::string& key,
                                    const std::function<Result<std::string>()>& make,
                                    const std::function<bool(const std::string&)>& usable);
  Result<std::string> unsealed(const std::string& kind, const std::string& key,
                               const std::function<bool(const std::string&)>& usable);
  [[nodiscard]] std::string object_path(const std::string& base, const std::string& key) const;
  bool find(const std::string& base, const std::string& key,
            const std::function<bool(const std::string&)>& usable, std::string& payload);
  void write(const std::string& path, const std::string& bytes);
  void keep(const std::string& kind, const std::string& key, const std::string& payload);
  void unwritten(const std::string& why);

  CacheOptions options_;
  std::string refused_;  ///< why the folder is not used
  std::atomic<std::uint64_t> found_{0}, made_{0}, evicted_{0}, unwritten_{0}, serial_{0},
      missing_{0};
  mutable std::mutex saying_;
  std::string unwritten_why_;  ///< the first
};

}  // namespace pw
