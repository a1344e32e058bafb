// What a file is by its first bytes, for messages about one that is not what it was named as.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

/// "a PNG picture", "a zip archive", "a page of HTML", …; empty for other text.
[[nodiscard]] std::string file_kind(std::string_view content);

/// What the member `format` of a JSON text says that it is: "piecewise.plan/1"; empty where it is
/// no JSON object, or has none at its beginning.
[[nodiscard]] std::string stated_format(std::string_view json);

/// The text of a file that is meant to be `wanted`: "a histogram". PW0001 as read_file, and PW0005
/// for what it is instead, where its first bytes or its `format` say so; `format`: the one of ours
/// that it may have.
Result<std::string> read_text_file(const std::string& path, std::string_view wanted,
                                   std::string_view format = {});

/// Returns what a text is that holds neither rules nor a graph: "an ONNX file", "MLIR", or what
/// file_kind() returns; empty if that is not clear.
[[nodiscard]] std::string known_as(std::string_view text);

}  // namespace pw
