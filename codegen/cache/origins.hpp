// Records of what cached objects are made from, to explain why one was compiled again. They are
// informative: losing one changes no key and no object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cache/digest.hpp"

namespace pw {

/// The parts that one object is made from.
struct ObjectOrigin {
  std::string key, kind, subject;
  std::vector<KeyPart> parts;  ///< long values cut
  std::int64_t made_at = 0;    ///< nanoseconds since 1970
};

/// A part of a key that differs from the same part of another key.
struct KeyChange {
  std::string name;
  std::string before, now;  ///< the value, or the first line that differs
  std::size_t line = 0;     ///< its number; 0: the whole value
};

[[nodiscard]] std::string origin_path(const std::string& folder, const std::string& key);
[[nodiscard]] std::string written_origin(const std::string& kind, const KeyParts& parts);
/// Reads all records of a cache folder, the newest first.
[[nodiscard]] std::vector<ObjectOrigin> read_origins(const std::string& folder);

/// Returns the older origin that is most similar to `origins[index]`: of the same kind, if possible
/// with the same subject, and then with the fewest changes. Returns null if its kind has no other.
[[nodiscard]] const ObjectOrigin* predecessor(const std::vector<ObjectOrigin>& origins,
                                              std::size_t index);
[[nodiscard]] std::vector<KeyChange> changes(const ObjectOrigin& before, const ObjectOrigin& now);

}  // namespace pw
