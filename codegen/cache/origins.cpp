#include "codegen/cache/origins.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "codegen/cache/object.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestValue = std::size_t{1} << 18;

std::optional<ObjectOrigin> read_origin(const fs::path& path) {
  ObjectOrigin out;
  out.key = path.filename().string();
  const auto file = is_digest(out.key) ? read_file(path.string()) : Result<std::string>("");
  const auto opened = file ? open_object(*file, out.key) : std::nullopt;
  if (!opened || opened->kind != "origin") return std::nullopt;
  out.parts = KeyParts::read(opened->payload);
  if (out.parts.size() < 2) return std::nullopt;
  out.kind = std::move(out.parts[0].value);
  out.subject = std::move(out.parts[1].value);
  out.parts.erase(out.parts.begin(), out.parts.begin() + 2);
  std::error_code error;
  const auto when = std::chrono::file_clock::to_sys(fs::last_write_time(path, error));
  if (!error) out.made_at = std::chrono::nanoseconds(when.time_since_epoch()).count();
  return out;
}

/// Returns the line at the head of a text, and removes it.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

KeyChange change_of(const std::string& name, std::string_view before, std::string_view now) {
  const bool lines =
      before.find('\n') != std::string_view::npos || now.find('\n') != std::string_view::npos;
  KeyChange out{name, std::string(before), std::string(now)};
  for (out.line = lines ? 1 : 0; lines; ++out.line) {
    const std::string_view a = next_line(before), b = next_line(now);
    out.before = a;
    out.now = b;
    if (a != b || (before.empty() && now.empty())) break;
  }
  return out;
}

using ByName = std::map<std::pair<std::string, std::size_t>, const std::string*>;

/// Returns the values by name and count of equal names before.
ByName by_name(const ObjectOrigin& origin) {
  ByName out;
  std::map<std::string, std::size_t> counts;
  for (const KeyPart& part : origin.parts) out[{part.name, counts[part.name]++}] = &part.value;
  return out;
}

}  // namespace

std::string origin_path(const std::string& folder, const std::string& key) {
  return fmt::format("{}/origins/{}/{}", folder, key.substr(0, 2), key);
}

std::string written_origin(const std::string& kind, const KeyParts& parts) {
  KeyParts out;
  out.add("kind", kind).add("subject", parts.subject());
  for (const KeyPart& part : KeyParts::read(parts.text())) {
    const std::string_view value = part.value;
    out.add(part.name, value.size() <= kLongestValue ? part.value
                                                     : fmt::format("{}\n… {} bytes, SHA-256 {}",
                                                                   value.substr(0, kLongestValue),
                                                                   value.size(), sha256(value)));
  }
  return out.text();
}

std::vector<ObjectOrigin> read_origins(const std::string& folder) {
  std::vector<ObjectOrigin> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder + "/origins", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    if (auto origin = read_origin(at->path())) out.push_back(std::move(*origin));
  }
  std::sort(out.begin(), out.end(), [](const ObjectOrigin& a, const ObjectOrigin& b) {
    return std::tie(b.made_at, a.key) < std::tie(a.made_at, b.key);
  });
  return out;
}

const ObjectOrigin* predecessor(const std::vector<ObjectOrigin>& origins, std::size_t index) {
  const ObjectOrigin& now = origins[index];
  const ObjectOrigin* best = nullptr;
  std::pair<bool, std::size_t> least{true, std::numeric_limits<std::size_t>::max()};
  for (std::size_t i = index + 1; i < origins.size(); ++i) {
    const ObjectOrigin& old = origins[i];
    if (old.kind != now.kind) continue;
    const std::pair<bool, std::size_t> distance{old.subject != now.subject,
                                                changes(old, now).size()};
    if (distance >= least) continue;
    least = distance;
    best = &old;
  }
  return best;
}

std::vector<KeyChange> changes(const ObjectOrigin& before, const ObjectOrigin& now) {
  const ByName old = by_name(before), present = by_name(now);
  std::vector<KeyChange> out;
  for (const auto& [name, value] : present) {
    const auto found = old.find(name);
    if (found == old.end() || *found->second != *value)
      out.push_back(
          change_of(name.first, found == old.end() ? std::string_view() : *found->second, *value));
  }
  for (const auto& [name, value] : old)
    if (!present.contains(name)) out.push_back(change_of(name.first, *value, ""));
  return out;
}

}  // namespace pw
