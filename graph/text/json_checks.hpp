// Checks of scanned JSON for the readers of graphs and plans, and the errors they collect.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/diagnostic.hpp"
#include "graph/text/scan_json.hpp"

namespace pw::json {

/// Place in the file; becomes text only for an error. Refers to the pointer that it was made from.
class Pointer {
 public:
  Pointer() = default;
  Pointer operator/(std::string_view key) const { return {this, key, 0}; }
  Pointer operator/(std::size_t index) const { return {this, {}, index}; }
  [[nodiscard]] std::string text() const;

 private:
  Pointer(const Pointer* parent, std::string_view key, std::size_t index)
      : parent_(parent), key_(key), index_(index) {}
  const Pointer* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};
inline const Pointer kTop;

/// Error codes of a format: for a wrong form, and for unknown members.
struct Codes {
  std::string_view form, member;
};

/// Checks of JSON values. Each returns false on failure, after reporting it.
class Checks {
 public:
  /// Creates the checks. `file` names the file in places, and must outlive them.
  Checks(const std::string& file, const Codes& codes) : file_(file), codes_(codes) {}

  /// Reports an error and returns false. Errors after the 20th are dropped.
  bool error(const Pointer& pointer, std::string_view code, std::string message,
             std::string help = {}) {
    return error_at(pointer.text(), code, std::move(message), std::move(help));
  }
  bool error_at(const std::string& pointer, std::string_view code, std::string message,
                std::string help = {});
  /// Adds an error found elsewhere, with a place in this file.
  void add(Diagnostic error, const std::string& pointer);
  /// Adds errors that have their places.
  void add(Diagnostics errors);
  [[nodiscard]] bool full() const;
  [[nodiscard]] bool passed() const { return errors_.empty(); }
  [[nodiscard]] Diagnostics take() { return std::move(errors_); }

  bool expect(const Tree& tree, Tree::Kind kind, const Pointer& pointer) {
    return tree.kind == kind || unexpected(tree, kind, pointer);
  }
  /// Reports an error for each other member of an object.
  bool known_keys(const Tree& tree, std::initializer_list<std::string_view> known,
                  const Pointer& pointer);
  bool unknown_key(std::string_view key, std::initializer_list<std::string_view> known,
                   const Pointer& pointer);

 private:
  bool unexpected(const Tree& tree, Tree::Kind kind, const Pointer& pointer);
  const std::string& file_;
  Codes codes_;
  Diagnostics errors_;
};

}  // namespace pw::json
