// The JSON texts of a PT2 archive as trees, and checked access to their parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::pt2 {

struct JsonMember;

struct Json {
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, list, object };
  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Json> items;          ///< of a list
  std::vector<JsonMember> members;  ///< of an object, by name
  /// Returns a member of an object; null when absent.
  [[nodiscard]] const Json* find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  Json value;
};

/// Parses JSON. PW0531 at `place`: invalid JSON, nested deeper than 100, more than 2^24 values, an
/// object with a repeated name, a whole number beyond 64 bits.
Result<Json> read_document(std::string_view text, const std::string& place);

/// A value with its place. Refers to its tree and to the name of its file.
class Part {
 public:
  Part(const Json& json, const std::string& file) : json_(&json), file_(&file) {}
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  [[nodiscard]] bool is(Json::Kind kind) const { return json_->kind == kind; }

  /// Returns a member. PW0531 if the value is not an object, a list …, or lacks that member.
  [[nodiscard]] Result<Part> member(std::string_view name) const;
  [[nodiscard]] Result<std::vector<Part>> items() const;
  [[nodiscard]] Result<std::vector<std::pair<std::string, Part>>> members() const;
  [[nodiscard]] Result<std::string> text() const;
  [[nodiscard]] Result<std::int64_t> integer() const;
  /// Returns a real, including "Infinity", "-Infinity" and "NaN", as PyTorch writes them.
  [[nodiscard]] Result<double> real() const;
  [[nodiscard]] Result<bool> boolean() const;
  /// Returns the member; nothing if it is absent or null.
  [[nodiscard]] Result<std::optional<Part>> maybe(std::string_view name) const;
  /// Returns the only member of a union.
  [[nodiscard]] Result<std::pair<std::string, Part>> choice() const;

  [[nodiscard]] tl::unexpected<Diagnostics> wrong(std::string message, std::string help = {},
                                                  std::string_view code = "PW0531") const;

 private:
  [[nodiscard]] Part child(const Json& json, std::string_view step) const;
  [[nodiscard]] tl::unexpected<Diagnostics> expected(std::string_view what) const;
  const Json* json_;
  const std::string* file_;
  std::string pointer_;
};

}  // namespace pw::pt2
