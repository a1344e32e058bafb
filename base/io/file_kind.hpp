// Detects the kind of a file by its first bytes, for messages about a file of the wrong kind.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

/// Returns "a PNG picture", "a zip archive", "a page of HTML", …; empty for other text.
[[nodiscard]] std::string file_kind(std::string_view content);

/// Returns the value of the member `format` of a JSON text: "piecewise.plan/1". Empty if the text
/// is not a JSON object or does not begin with such a member.
[[nodiscard]] std::string stated_format(std::string_view json);

/// Reads a text file that should be `wanted`: "a histogram". Fails with PW0001 as read_file does,
/// and with PW0005 if the first bytes or `format` show another kind. `format`: the project's own
/// format that the file may have.
Result<std::string> read_text_file(const std::string& path, std::string_view wanted,
                                   std::string_view format = {});

/// Returns what a text is that holds neither rules nor a graph: "an ONNX file", "MLIR", or what
/// file_kind() returns; empty if that is not clear.
[[nodiscard]] std::string known_as(std::string_view text);

}  // namespace pw
