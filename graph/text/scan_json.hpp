// Reads JSON text as a stream of the top object's members and of the elements of its large lists,
// so that a file is never held as one tree. Everything is bounded; every error has a place. A tree
// refers to the text and to memory that the next tree reuses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/progress.hpp"

namespace pw::json {

inline constexpr std::size_t kMaxNesting = 64;
inline constexpr std::size_t kMaxText = std::size_t{2} << 30;    ///< bytes of a file
inline constexpr std::size_t kMaxString = std::size_t{1} << 20;  ///< bytes of one string
inline constexpr std::size_t kMaxMembers = 1024;                 ///< of one object
inline constexpr std::size_t kMaxItems = std::size_t{1}
                                         << 20;  ///< of one array that is not streamed
inline constexpr std::size_t kMaxElements = std::size_t{1} << 26;  ///< of one streamed list

/// Value of JSON. Trivial, so that creating and dropping thousands costs nothing.
struct Tree {
  enum class Kind : std::uint8_t {
    null,
    boolean,
    integer,
    real,
    string,
    array,
    object
  } kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;                   ///< of a string; an object as it is written
  std::span<const Tree> items;             ///< of an array; of an object, in order with `keys`
  std::span<const std::string_view> keys;  ///< of an object; no key twice
  [[nodiscard]] const Tree* find(std::string_view key) const;
};
[[nodiscard]] std::string_view name(Tree::Kind kind);

struct Sink {
  std::vector<std::string> streamed;  ///< keys whose lists come by element
  std::function<void(std::string_view key, std::size_t index, const Tree& value)> element;
  std::function<void(std::string_view key, const Tree& value)>
      member;                   ///< all others; and streamed keys whose value is not a list
  StageProgress progress = {};  ///< of the bytes, between elements
};

/// Scans a text, which must be one object. `file` names it in places: "graph.json:3:14 at
/// /nodes/7".
Status scan(std::string_view text, const std::string& file, const Sink& sink);

/// Returns a JSON string literal; bytes that are not UTF-8 are replaced.
std::string quoted(std::string_view text);
/// Returns one escaped step of a JSON pointer.
std::string step(std::string_view key);

}  // namespace pw::json
