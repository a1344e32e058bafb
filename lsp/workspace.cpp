#include "lsp/workspace.hpp"

#include <algorithm>
#include <filesystem>

#include "base/environment.hpp"
#include "base/hash.hpp"
#include "base/io/file.hpp"
#include "base/io/own_folders.hpp"
#include "dsl/used_file.hpp"
#include "lsp/uris.hpp"

namespace pw::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 2000;
constexpr std::size_t kMostEntries = 50000;  // limit for a folder, which may be a whole disk
constexpr std::size_t kMostFileSize = std::size_t{16} << 20;

std::string name_of_uri(const std::string& uri) {
  const std::string path = path_of_uri(uri);
  return path.empty() ? uri : fs::path(path).lexically_normal().generic_string();
}

/// Returns the folder where library texts are written for editors; empty without a home folder.
fs::path library_folder() {
  const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  fs::path base = !cache.empty() ? fs::path(cache)
                  : home.empty() ? fs::path()
                                 : fs::path(home) / ".cache";
  if (!base.is_absolute()) return {};
  std::uint64_t hash = 0;
  for (const EmbeddedFile& file : embedded_rules())
    hash = combine(combine(hash, hash_text(file.path)), hash_text(file.text));
  return base / "piecewise-library" / std::to_string(hash);
}

}  // namespace

SourceTextPtr library_text(const std::string& path) {
  static const auto texts = [] {
    std::map<std::string, SourceTextPtr, std::less<>> out;
    for (const EmbeddedFile& file : embedded_rules())
      out.emplace(file.path,
                  std::make_shared<SourceText>(std::string(kLibrary) + std::string(file.path),
                                               std::string(file.text)));
    return out;
  }();
  const auto it = texts.find(path);
  return it == texts.end() ? nullptr : it->second;
}

void Workspace::open(const std::string& uri, std::int64_t version, std::string text) {
  documents_[uri] = {uri, version, std::make_shared<SourceText>(name_of_uri(uri), std::move(text))};
}

void Workspace::close(const std::string& uri) { documents_.erase(uri); }

bool Workspace::change(const std::string& uri, std::int64_t version,
                       const std::vector<ContentChange>& changes) {
  const auto it = documents_.find(uri);
  if (it == documents_.end()) return false;
  std::string text = it->second.text->text;
  for (const ContentChange& change : changes) {
    if (!change.range) {
      text = change.text;
      continue;
    }
    const TextLines lines(text);
    const std::uint32_t begin = lines.offset(change.range->start, unit);
    const std::uint32_t end = std::max(begin, lines.offset(change.range->end, unit));
    text.replace(begin, end - begin, change.text);
  }
  it->second.version = version;
  it->second.text = std::make_shared<SourceText>(it->second.text->name, std::move(text));
  return true;
}

const OpenDocument* Workspace::find(const std::string& uri) const {
  const auto it = documents_.find(uri);
  return it == documents_.end() ? nullptr : &it->second;
}

/// Returns the open text, else that on disk; null if it cannot be read.
SourceTextPtr Workspace::file(const std::string& path) const {
  const std::string name = fs::path(path).lexically_normal().generic_string();
  for (const auto& [uri, document] : documents_)
    if (document.text->name == name) return document.text;
  const std::string stamp = file_stamp(name);
  Kept& kept = files_[name];
  if (kept.text && kept.stamp == stamp && !stamp.empty()) return kept.text;
  kept = {stamp, nullptr};
  if (auto text = read_file(name, kMostFileSize))
    kept.text = std::make_shared<SourceText>(name, std::move(*text));
  return kept.text;
}

std::vector<SourceTextPtr> Workspace::loaded_with(const SourceTextPtr& root) const {
  std::vector<SourceTextPtr> out;
  std::set<std::string> names;
  const auto add = [&](SourceTextPtr text) {
    if (text && names.insert(text->name).second) out.push_back(std::move(text));
  };
  add(root);
  for (std::size_t i = 0; i < out.size() && out.size() < kMostFiles; ++i) {
    const SourceText& user = *out[i];  // stable while `out` grows
    for (const UseOf& use : user.mentions.uses) {
      const UsedFile used = find_used(user.name, use.path);
      if (used.embedded != nullptr) add(library_text(std::string(used.embedded->path)));
      if (!used.path.empty()) add(file(used.path));
    }
  }
  for (const EmbeddedFile& embedded : embedded_rules())
    if (embedded.path.starts_with("ops/") || embedded.path.starts_with("import/"))
      add(library_text(std::string(embedded.path)));
  return out;
}

std::vector<SourceTextPtr> Workspace::all() const {
  std::vector<SourceTextPtr> out;
  std::set<std::string> names;
  for (const auto& [uri, document] : documents_)
    if (names.insert(document.text->name).second) out.push_back(document.text);
  for (const std::string& folder : folders) {
    std::error_code error;
    constexpr auto kOptions = fs::directory_options::skip_permission_denied;
    std::vector<std::string> paths;
    std::size_t entries = 0;
    for (fs::recursive_directory_iterator it(folder, kOptions, error), end;
         !error && it != end && paths.size() < kMostFiles && ++entries < kMostEntries;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with(".") || name == "build" || name == "node_modules")
        it.disable_recursion_pending();
      else if (it->path().extension() == ".pwr")
        paths.push_back(it->path().lexically_normal().generic_string());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths)
      if (names.size() < kMostFiles && names.insert(path).second)
        if (SourceTextPtr text = file(path)) out.push_back(std::move(text));
  }
  return out;
}

std::map<std::string, std::string> Workspace::unsaved() const {
  std::map<std::string, std::string> out;
  for (const auto& [uri, document] : documents_)
    out.emplace(real_path(document.text->name).generic_string(), document.text->text);
  return out;
}

std::string Workspace::uri_of(const SourceText& text) const {
  for (const auto& [uri, document] : documents_)
    if (document.text->name == text.name) return uri;
  if (!std::string_view(text.name).starts_with(kLibrary)) return uri_of_path(text.name);
  const std::string path = text.name.substr(kLibrary.size());
  for (const std::string& folder : folders)
    for (const fs::path& near : {fs::path(folder) / path, fs::path(folder) / "rules" / path})
      if (const SourceTextPtr there = file(near.generic_string());
          there && there->text == text.text)
        return uri_of_path(there->name);
  const fs::path cache = library_folder();
  if (cache.empty()) return {};
  const fs::path target = cache / path;
  if (const auto there = read_file(target.generic_string(), kMostFileSize);
      !there || *there != text.text) {
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    if (!write_file(target.generic_string(), text.text)) return {};
  }
  return uri_of_path(target.generic_string());
}

}  // namespace pw::cli
