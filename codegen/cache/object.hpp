// The file format of one compiled object: a header line, then its bytes. A file with any altered
// bit does not open.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pw {

/// Returns "piecewise-object 1 KIND KEY LENGTH SUM\n" and the payload. KIND consists of letters.
[[nodiscard]] std::string seal_object(std::string_view kind, std::string_view key,
                                      std::string_view payload);
struct OpenedObject {
  std::string kind, payload;
};
/// Returns the object if the file is complete and holds the object of that key.
[[nodiscard]] std::optional<OpenedObject> open_object(std::string_view file, std::string_view key);

}  // namespace pw
