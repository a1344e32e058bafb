// Caches compiled objects by what they are made from. An object is found in the user's folder or in
// a read-only folder, or else compiled once, by one process at a time, and stored. Objects never
// change. A file with a wrong checksum, or one that its user rejects, is removed, counted and
// compiled again. Without a folder everything is compiled, and `problem` reports why.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/diagnostic.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/cache/objects.hpp"
#include "codegen/cache/origins.hpp"

namespace pw {

struct CacheOptions {
  std::string folder;     ///< empty: nothing is stored
  std::string read_only;  ///< empty: none
  /// Collects each returned object and each remembered name; null: no collection.
  std::shared_ptr<CompiledObjects> collected = {};
  /// Holds all available objects: no folder is read and nothing is compiled. Null: the cache is not
  /// sealed.
  std::shared_ptr<const CompiledObjects> sealed = {};
  /// Reads the options from the environment; see folder.hpp.
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
  std::size_t bad = 0;        ///< objects with a wrong checksum, which are removed
  std::size_t leftovers = 0;  ///< unfinished files of processes that ended, which are removed
};

class CompileCache {
 public:
  explicit CompileCache(CacheOptions options);
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;
  /// Adds this process's counts to the folder's.
  ~CompileCache();

  /// Returns the object of a key, or calls `make`, whose errors are returned and not stored.
  /// Thread-safe: concurrent requests for one key, in any processes, compile it once. A stored
  /// object that `usable` rejects is removed like one with a wrong checksum; a new object that it
  /// rejects is returned but not stored.
  Result<std::string> get(
      const std::string& kind, const KeyParts& key,
      const std::function<Result<std::string>()>& make,
      const std::function<bool(const std::string&)>& usable = [](const std::string&) {
        return true;
      });

  /// Returns the object for `key` and a compiler's identity. If there is no compiler (`compiler` is
  /// empty) or the cache is sealed, returns the object that any compiler made last for `key`.
  Result<std::string> get_compiled(
      const std::string& kind, const std::string& compiler,
      const std::function<KeyParts(const std::string& compiler)>& key,
      const std::function<Result<std::string>()>& make,
      const std::function<bool(const std::string&)>& usable = [](const std::string&) {
        return true;
      });

  /// Stores the key of the last object for a name (also a digest), for processes that cannot
  /// compute the whole key because they find no compiler.
  void remember(const std::string& name, const std::string& key);
  /// Returns the key stored for a name; empty if there is none.
  [[nodiscard]] std::string recall(const std::string& name) const;

  /// Returns true if nothing can be compiled: a missing object fails with PW1226.
  [[nodiscard]] bool sealed() const { return options_.sealed != nullptr; }
  /// Returns the number of requested objects that were missing.
  [[nodiscard]] std::size_t missing() const { return missing_; }
  [[nodiscard]] CacheCounts counts() const;  ///< counts of this process
  [[nodiscard]] CacheCounts totals() const;  ///< counts of all ended processes
  [[nodiscard]] const std::string& folder() const { return options_.folder; }
  /// Returns why there is no folder or why it is not writable; empty if the cache works.
  [[nodiscard]] std::string problem() const;

  /// Reads every object; with `repair`, removes bad objects and leftovers.
  CacheContents inspect(bool repair);
  /// Returns what the stored objects are made from, the newest first.
  [[nodiscard]] std::vector<ObjectOrigin> origins() const;
  /// Removes all objects and the counts, and returns the number of objects.
  std::size_t clear();

 private:
  Result<std::string> object_of(const std::string& kind, const std::string& key,
                                const KeyParts& parts,
                                const std::function<Result<std::string>()>& make,
                                const std::function<bool(const std::string&)>& usable);
  Result<std::string> found_or_made(const std::string& kind, const std::string& key,
                                    const KeyParts& parts,
                                    const std::function<Result<std::string>()>& make,
                                    const std::function<bool(const std::string&)>& usable);
  Result<std::string> unsealed(const std::string& kind, const std::string& key,
                               const std::function<bool(const std::string&)>& usable);
  [[nodiscard]] std::string object_path(const std::string& base, const std::string& key) const;
  bool find(const std::string& base, const std::string& key,
            const std::function<bool(const std::string&)>& usable, std::string& payload);
  bool write(const std::string& path, const std::string& bytes);
  void keep(const std::string& kind, const std::string& key, const KeyParts& parts,
            const std::string& payload);
  void unwritten(const std::string& why);

  CacheOptions options_;
  std::string refused_;  ///< why the folder is not used
  std::atomic<std::uint64_t> found_{0}, made_{0}, evicted_{0}, unwritten_{0}, serial_{0},
      missing_{0};
  mutable std::mutex saying_;
  std::string unwritten_why_;  ///< the first write error
};

}  // namespace pw
