#include "graph/text/json_checks.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace pw::json {
namespace {

constexpr std::size_t kMaxErrors = 20;

std::string instead_of(std::string_view key, std::initializer_list<std::string_view> known) {
  const std::string near = nearest(key, {known.begin(), known.end()});
  return near.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                      : "did you mean `" + near + "`?";
}

}  // namespace

std::string Pointer::text() const {
  if (parent_ == nullptr) return "";
  return parent_->text() + (key_.data() != nullptr ? step(key_) : fmt::format("/{}", index_));
}

bool Checks::full() const { return errors_.size() >= kMaxErrors; }

bool Checks::error_at(const std::string& pointer, std::string_view code, std::string message,
                      std::string help) {
  if (!full())
    errors_.push_back(error_in(file_ + " at " + (pointer.empty() ? "/" : pointer), code,
                               std::move(message), std::move(help)));
  return false;
}

void Checks::add(Diagnostic error, const std::string& pointer) {
  if (full()) return;
  error.place = file_ + " at " + pointer;
  errors_.push_back(std::move(error));
}

void Checks::add(Diagnostics errors) {
  std::move(errors.begin(), errors.end(), std::back_inserter(errors_));
}

bool Checks::unexpected(const Tree& tree, Tree::Kind kind, const Pointer& pointer) {
  return error(pointer, codes_.form,
               fmt::format("expected {}, found {}", name(kind), name(tree.kind)));
}

bool Checks::known_keys(const Tree& tree, std::initializer_list<std::string_view> known,
                        const Pointer& pointer) {
  bool ok = true;
  for (std::string_view key : tree.keys)
    if (std::find(known.begin(), known.end(), key) == known.end())
      ok = unknown_key(key, known, pointer);
  return ok;
}

bool Checks::unknown_key(std::string_view key, std::initializer_list<std::string_view> known,
                         const Pointer& pointer) {
  return error(pointer / key, codes_.member, fmt::format("unknown member `{}`", key.substr(0, 80)),
               instead_of(key, known));
}

}  // namespace pw::json
