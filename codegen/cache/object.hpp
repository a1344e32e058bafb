// The file of one compiled object: a line that says what it is, then its bytes. A file in which any
// bit is not what was written does not open.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pw {

/// "piecewise-object 1 KIND KEY LENGTH SUM\n" and the payload. KIND is letters.
[[nodiscard]] std::string seal_object(std::string_view kind, std::string_view key,
                                      std::string_view payload);
struct OpenedObject {
  std::string kind, payload;
};
/// Nothing unless the file is whole and holds the object of that key.
[[nodiscard]] std::optional<OpenedObject> open_object(std::string_view file, std::string_view key);

}  // namespace pw
