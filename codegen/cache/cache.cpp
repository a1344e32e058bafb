#include "codegen/cache/cache.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/read_paths.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/cache/folder.hpp"
#include "codegen/cache/lock.hpp"
#include "codegen/cache/object.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-";

std::string name_path(const std::string& base, const std::string& name) {
  return fmt::format("{}/names/{}/{}", base, name.substr(0, 2), name);
}

constexpr const char* kNames[] = {"found", "made", "evicted", "unwritten"};

std::uint64_t& field(CacheCounts& counts, std::size_t i) {
  std::uint64_t* const fields[] = {&counts.found, &counts.made, &counts.evicted, &counts.unwritten};
  return *fields[i];
}

CacheCounts read_counts(const std::string& path) {
  CacheCounts counts;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return counts;
  const auto text = read_file(path, 4096);
  std::istringstream lines(text ? *text : "");
  std::string name;
  for (std::uint64_t value = 0; lines >> name >> value;) {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      if (name == kNames[i]) field(counts, i) = value;
    }
  }
  return counts;
}

/// Returns true if the process that started a temporary file, named in it, has ended.
bool left_over(const std::string& name) {
  const long pid = std::strtol(name.c_str() + kTemporary.size(), nullptr, 10);
  return pid <= 0 || (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH);
}

/// Calls `visit` with each file under objects/, by path and name.
template <class Visit>
void each_file(const std::string& folder, Visit visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder + "/objects", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) visit(at->path(), at->path().filename().string());
  }
}

}  // namespace

CacheOptions CacheOptions::from_environment() {
  if (is_cache_disabled()) return {};
  return {default_cache_folder(), default_read_only_folder()};
}

CompileCache::CompileCache(CacheOptions options) : options_(std::move(options)) {
  if (options_.folder.empty()) {
    refused_ = is_cache_disabled() ? "PWR_DISABLE_CACHE disables it"
                                   : "it has no folder: set PWR_CACHE_DIR";
  } else if (auto taken = take_private_folder(options_.folder); !taken) {
    refused_ = fmt::format("{} {}", options_.folder, taken.error().front().message);
    options_.folder.clear();
  }
  if (!options_.read_only.empty()) {
    if (std::string why = distrust(options_.read_only); !why.empty()) {
      if (!refused_.empty()) refused_ += "; ";
      refused_ += fmt::format("{} is not read: {}", options_.read_only, why);
      options_.read_only.clear();
    }
  }
  for (const std::string& folder : {options_.folder, options_.read_only})
    if (!folder.empty()) ignore_reads_below(folder);
  if (options_.folder.empty()) return;
  for (const char* part : {"/objects", "/locks", "/names", "/origins"}) {
    std::error_code ignored;
    fs::create_directory(options_.folder + part, ignored);
  }
}

CompileCache::~CompileCache() {
  const CacheCounts own = counts();
  if (options_.folder.empty() || own.found + own.made + own.evicted + own.unwritten == 0) return;
  const FileLock lock(options_.folder + "/locks/counts");
  if (!lock.held()) return;
  CacheCounts sum = totals(), add = own;
  std::string text;
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    text += fmt::format("{} {}\n", kNames[i], field(sum, i) + field(add, i));
  const std::string path = options_.folder + "/counts";
  // Counts are informative: failing to store them is not an error.
  (void)write_durably(fmt::format("{}{}{}", path, kTemporary, ::getpid()), path, text);
}

CacheCounts CompileCache::counts() const { return {found_, made_, evicted_, unwritten_}; }
CacheCounts CompileCache::totals() const {
  return options_.folder.empty() ? CacheCounts{} : read_counts(options_.folder + "/counts");
}

std::string CompileCache::problem() const {
  const std::lock_guard guard(saying_);
  if (unwritten_ == 0) return refused_;
  return fmt::format("{}{}{} cannot be written to: {}", refused_, refused_.empty() ? "" : "; ",
                     options_.folder, unwritten_why_);
}

std::string CompileCache::object_path(const std::string& base, const std::string& key) const {
  return fmt::format("{}/objects/{}/{}", base, key.substr(0, 2), key);
}

bool CompileCache::find(const std::string& base, const std::string& key,
                        const std::function<bool(const std::string&)>& usable,
                        std::string& payload) {
  if (base.empty()) return false;
  const std::string path = object_path(base, key);
  if (::access(path.c_str(), F_OK) != 0) return false;
  const auto file = read_file(path);
  if (file) {
    if (auto opened = open_object(*file, key); opened && usable(opened->payload)) {
      payload = std::move(opened->payload);
      return true;
    }
  } else if (::access(path.c_str(), F_OK) != 0) {
    return false;  // another process has just removed it
  }
  ++evicted_;
  if (base == options_.folder) ::unlink(path.c_str());
  return false;
}

void CompileCache::unwritten(const std::string& why) {
  const std::lock_guard guard(saying_);
  if (unwritten_++ == 0) unwritten_why_ = why;
}

bool CompileCache::write(const std::string& path, const std::string& bytes) {
  const fs::path parent = fs::path(path).parent_path();
  std::error_code error;
  fs::create_directory(parent, error);
  const std::string temporary =
      fmt::format("{}/{}{}-{}", parent.string(), kTemporary, ::getpid(), ++serial_);
  const std::string why = write_durably(temporary, path, bytes);
  if (!why.empty()) unwritten(why);
  return why.empty();
}

void CompileCache::keep(const std::string& kind, const std::string& key, const KeyParts& parts,
                        const std::string& payload) {
  if (write(object_path(options_.folder, key), seal_object(kind, key, payload)))
    write(origin_path(options_.folder, key),
          seal_object("origin", key, written_origin(kind, parts)));
}

std::vector<ObjectOrigin> CompileCache::origins() const {
  return options_.folder.empty() ? std::vector<ObjectOrigin>() : read_origins(options_.folder);
}

void CompileCache::remember(const std::string& name, const std::string& key) {
  if (options_.collected) options_.collected->add_name(name, key);
  if (options_.folder.empty() || recall(name) == key) return;
  write(name_path(options_.folder, name), seal_object("name", name, key));
}

std::string CompileCache::recall(const std::string& name) const {
  if (options_.sealed) return options_.sealed->recall(name);
  for (const std::string& base : {options_.folder, options_.read_only}) {
    if (base.empty()) continue;
    const std::string path = name_path(base, name);
    if (::access(path.c_str(), F_OK) != 0) continue;
    const auto file = read_file(path, 4096);
    const auto opened = file ? open_object(*file, name) : std::nullopt;
    if (opened && is_digest(opened->payload)) return opened->payload;
  }
  return {};
}

Result<std::string> CompileCache::get(const std::string& kind, const KeyParts& key,
                                      const std::function<Result<std::string>()>& make,
                                      const std::function<bool(const std::string&)>& usable) {
  return object_of(kind, key.digest(), key, make, usable);
}

Result<std::string> CompileCache::object_of(const std::string& kind, const std::string& key,
                                            const KeyParts& parts,
                                            const std::function<Result<std::string>()>& make,
                                            const std::function<bool(const std::string&)>& usable) {
  if (options_.sealed) return unsealed(kind, key, usable);
  auto out = found_or_made(kind, key, parts, make, usable);
  if (out && options_.collected) options_.collected->add(key, *out);
  return out;
}

Result<std::string> CompileCache::get_compiled(
    const std::string& kind, const std::string& compiler,
    const std::function<KeyParts(const std::string&)>& key,
    const std::function<Result<std::string>()>& make,
    const std::function<bool(const std::string&)>& usable) {
  const std::string any = key("any").digest();
  const bool elsewhere = compiler.empty() || sealed();
  const std::string recalled = elsewhere ? recall(any) : "";
  const KeyParts parts = key(compiler);
  const std::string own = recalled.empty() ? parts.digest() : recalled;
  bool used = false;
  auto object = object_of(kind, own, parts, make,
                          [&](const std::string& bytes) { return used = usable(bytes); });
  if (object && used && !elsewhere) remember(any, own);
  return object;
}

Result<std::string> CompileCache::unsealed(const std::string& kind, const std::string& key,
                                           const std::function<bool(const std::string&)>& usable) {
  std::string payload;
  const bool there = options_.sealed->find(key, payload);
  if (there && usable(payload)) {
    ++found_;
    return payload;
  }
  ++missing_;
  return fail(error_in("artifact", "PW1226",
                       there ? "an object in it is damaged or was built on another machine"
                             : fmt::format("it has no object for this {} kernel", kind),
                       "compile again on this machine or on a similar one"));
}

Result<std::string> CompileCache::found_or_made(
    const std::string& kind, const std::string& key, const KeyParts& parts,
    const std::function<Result<std::string>()>& make,
    const std::function<bool(const std::string&)>& usable) {
  std::string payload;
  const auto look = [&] {
    return find(options_.folder, key, usable, payload) ||
           find(options_.read_only, key, usable, payload);
  };
  if (look()) {
    ++found_;
    return payload;
  }
  if (options_.folder.empty()) {
    auto made = make();
    if (made) ++made_;
    if (made) (void)usable(*made);  // `usable` also receives a new object
    return made;
  }
  const FileLock lock(options_.folder + "/locks/" + key);
  if (lock.held() && find(options_.folder, key, usable, payload)) {
    ++found_;
    return payload;
  }
  auto made = make();
  if (!made) return made;
  ++made_;
  if (usable(*made)) keep(kind, key, parts, *made);
  return made;
}

CacheContents CompileCache::inspect(bool repair) {
  CacheContents out;
  if (options_.folder.empty()) return out;
  each_file(options_.folder, [&](const fs::path& path, const std::string& name) {
    std::error_code ignored;
    if (name.rfind(kTemporary, 0) == 0) {
      if (!left_over(name)) return;
      ++out.leftovers;
      if (repair) fs::remove(path, ignored);
      return;
    }
    const auto file = read_file(path.string());
    const auto opened = file ? open_object(*file, name) : std::nullopt;
    if (!opened) {
      ++out.bad;
      if (repair && fs::remove(path, ignored)) ++evicted_;
      return;
    }
    CacheContents::Kind& kind = out.kinds[opened->kind];
    ++kind.objects;
    kind.bytes += file->size();
  });
  return out;
}

std::size_t CompileCache::clear() {
  std::size_t objects = 0;
  if (options_.folder.empty()) return objects;
  std::error_code ignored;
  each_file(options_.folder, [&](const fs::path& path, const std::string& name) {
    if (fs::remove(path, ignored) && name.rfind(kTemporary, 0) != 0) ++objects;
  });
  for (const auto& lock : fs::directory_iterator(options_.folder + "/locks", ignored))
    fs::remove(lock.path(), ignored);
  fs::remove(options_.folder + "/counts", ignored);
  for (const char* const folder : {"/names", "/origins"})
    for (const auto& part : fs::directory_iterator(options_.folder + folder, ignored))
      fs::remove_all(part.path(), ignored);
  return objects;
}

}  // namespace pw
