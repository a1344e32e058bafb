#include "pipeline/trust.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/cache/folder.hpp"
#include "codegen/cache/lock.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostList = std::size_t{1} << 24;

tl::unexpected<Diagnostics> no_list(const std::string& path, const std::string& why) {
  return fail(error_in(path, "PW1505", "the list of trusted folders cannot be stored: " + why,
                       "set XDG_STATE_HOME to the absolute path of a folder that you own"));
}

/// Empty without a home. A relative path could place the list in the folder to be trusted.
std::string state_folder() {
  if (const std::string base = environment("XDG_STATE_HOME"); base.starts_with('/'))
    return base + "/piecewise";
  const std::string home = environment("HOME");
  return home.starts_with('/') ? home + "/.local/state/piecewise" : "";
}

std::string list_path() { return state_folder() + "/trusted"; }

std::string canonical(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::canonical(folder.empty() ? "." : folder, error);
  if (!error) return path.string();
  std::string gone = fs::absolute(folder, error).lexically_normal().string();
  while (gone.size() > 1 && gone.ends_with('/')) gone.pop_back();
  return gone;
}

/// Lines of `sha256sum`: the digest, two spaces, the folder. Others are skipped.
std::vector<TrustedFolder> entries_of(const std::string& text) {
  std::vector<TrustedFolder> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::size_t kFolder = kDigestLength + 2;
    if (line.size() <= kFolder || line.substr(kDigestLength, 2) != "  ") continue;
    TrustedFolder entry{line.substr(kFolder), line.substr(0, kDigestLength)};
    if (is_digest(entry.sha256) && entry.folder.starts_with('/')) out.push_back(std::move(entry));
  }
  return out;
}

Status make_state_folder() {
  const std::string folder = state_folder();
  if (folder.empty())
    return no_list("the state folder", "HOME and XDG_STATE_HOME are not set to absolute paths");
  std::error_code ignored;
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return no_list(folder, std::strerror(errno));
  if (const std::string why = distrust(folder); !why.empty()) return no_list(folder, why);
  return {};
}

/// Replaces the list with the result of `change`, one process at a time.
template <class Change>
Status change_list(Change change) {
  PW_TRY(make_state_folder());
  const std::string path = list_path();
  const FileLock lock(path + ".lock");
  if (!lock.held()) return no_list(path + ".lock", std::strerror(errno));
  std::vector<TrustedFolder> list = trusted_folders();
  change(list);
  std::ranges::sort(list, {}, &TrustedFolder::folder);
  std::string text;
  for (const TrustedFolder& entry : list) text += entry.sha256 + "  " + entry.folder + "\n";
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  if (const std::string why = write_durably(temporary, path, text); !why.empty())
    return no_list(path, why);
  return {};
}

std::string state_of(const TrustedFolder& entry) {
  const auto text = read_file(entry.folder + "/" + kConfigName, kMostList);
  if (!text) return "missing";
  return sha256(*text) == entry.sha256 ? "in force" : "changed";
}

}  // namespace

std::vector<TrustedFolder> trusted_folders() {
  const std::string folder = state_folder();
  if (folder.empty() || !distrust(folder).empty() || ::access(list_path().c_str(), R_OK) != 0)
    return {};
  const auto text = read_file(list_path(), kMostList);
  return text ? entries_of(*text) : std::vector<TrustedFolder>{};
}

Trust trust_of(const std::string& folder, std::string_view text) {
  const std::string path = canonical(folder);
  for (const TrustedFolder& entry : trusted_folders())
    if (entry.folder == path)
      return entry.sha256 == sha256(text) ? Trust::in_force : Trust::changed;
  return Trust::none;
}

Result<TrustedFolder> add_trust(const std::string& folder, std::string_view text) {
  const TrustedFolder entry{canonical(folder), sha256(text)};
  if (entry.folder.find('\n') != std::string::npos)
    return no_list(folder, "the folder's name contains a line break");
  PW_TRY(change_list([&](std::vector<TrustedFolder>& list) {
    std::erase_if(list, [&](const TrustedFolder& e) { return e.folder == entry.folder; });
    list.push_back(entry);
  }));
  return entry;
}

Result<std::vector<TrustedFolder>> remove_trust(const std::string& folder) {
  const std::string path = canonical(folder);
  std::vector<TrustedFolder> removed;
  PW_TRY(change_list([&](std::vector<TrustedFolder>& list) {
    for (const TrustedFolder& entry : list)
      if (entry.folder == path) removed.push_back(entry);
    std::erase_if(list, [&](const TrustedFolder& e) { return e.folder == path; });
  }));
  return removed;
}

Table trust_table(const std::vector<TrustedFolder>& folders) {
  Table table({"folder", "sha256", "state"});
  for (const TrustedFolder& entry : folders)
    table.add({entry.folder, entry.sha256, state_of(entry)});
  return table;
}

}  // namespace pw
