#include "import/fx/module_path.hpp"

#include <algorithm>
#include <optional>

#include "base/characters.hpp"
#include "base/printable.hpp"

namespace pw::fx {
namespace {

constexpr std::size_t kLongest = 512;  // of a group

bool is_below(std::string_view path, std::string_view parent) {
  return path.size() > parent.size() && path.starts_with(parent) && path[parent.size()] == '.';
}

/// Returns "layers.0" for "L['self'].layers[0]" and "L['self']._modules['layers']._modules['0']".
std::string plain_path(std::string_view path) {
  if (path.starts_with("L["))
    path.remove_prefix(std::min(path.size(), std::min(path.find(']'), path.size() - 1) + 1));
  std::string out;
  for (const char c : path) {
    if (c == '[') out += '.';
    if (c != '[' && c != ']' && c != '\'' && c != '"') out += c;
  }
  constexpr std::string_view kModules = "._modules.";
  for (std::size_t at = 0; (at = out.find(kModules, at)) != std::string::npos;)
    out.erase(at, kModules.size() - 1);
  return out.starts_with('.') ? out.substr(1) : out;
}

/// Returns the number after "@" at the end of a key; empty if there is none.
std::string_view call_of(std::string_view key) {
  const std::size_t at = key.rfind('@');
  if (at == std::string_view::npos) return {};
  const std::string_view number = key.substr(at + 1);
  return are_digits(number) ? number : std::string_view();
}

/// Takes the next quoted text.
std::optional<std::string_view> next_quoted(std::string_view& text) {
  const std::size_t begin = text.find_first_of("'\"");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find(text[begin], begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view out = text.substr(begin + 1, end - begin - 1);
  text.remove_prefix(end + 1);
  return out;
}

}  // namespace

void ModuleStack::enter(std::string_view key, std::string_view path) {
  std::string plain = plain_path(path);
  if (plain == path_ || plain.size() > kLongest) return;
  if (!path_.empty() && is_below(plain, path_)) {
    group_ += printable(plain.substr(path_.size()));
  } else {
    group_ = printable(plain);
    call_.clear();
  }
  path_ = std::move(plain);
  const std::string_view call = call_of(key);
  if (!call.empty() && call != call_) group_.append("@").append(call);
  call_ = call;
}

std::string group_of_printed_stack(std::string_view text) {
  ModuleStack stack;
  while (const auto key = next_quoted(text)) {
    const auto path = next_quoted(text);
    if (!path || !next_quoted(text)) break;  // the class
    stack.enter(*key, *path);
  }
  return stack.group();
}

std::string group_of_archived_stack(std::string_view text) {
  ModuleStack stack;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const std::size_t comma = entry.find(',');
    if (comma == std::string_view::npos) continue;
    const std::string_view rest = entry.substr(comma + 1);
    stack.enter(entry.substr(0, comma), rest.substr(0, rest.find(',')));
  }
  return stack.group();
}

std::string group_of_node_name(std::string_view name) {
  if (name.starts_with('/')) name.remove_prefix(1);
  std::string out;
  std::string_view last;  // "layer1" of "layer1/layer1.0": the inner name repeats the outer one
  for (std::size_t end; (end = name.find('/')) != std::string_view::npos;
       name.remove_prefix(end + 1)) {
    const std::string_view part = name.substr(0, end);
    if (part.empty()) continue;
    if (!last.empty() && is_below(part, last)) out.resize(out.size() - last.size());
    if (!out.empty() && out.back() != '.') out += '.';
    out += part;
    last = part;
  }
  return out.size() > kLongest ? std::string() : printable(out);
}

std::string group_of_name_scopes(std::string_view text) {
  std::string_view group, last;
  while (const auto item = next_quoted(text)) {
    group = last;
    last = *item;
  }
  return group.size() > kLongest ? std::string() : printable(group);
}

}  // namespace pw::fx
