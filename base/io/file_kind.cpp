#include "base/io/file_kind.hpp"

#include <algorithm>
#include <array>

#include "base/io/file.hpp"

namespace pw {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t at;
  std::string_view bytes;
  std::string_view kind;
};

constexpr auto kSignatures = std::to_array<Signature>({
    {0, "\x89PNG\r\n"sv, "a PNG picture"},
    {0, "\xff\xd8\xff"sv, "a JPEG picture"},
    {0, "GIF8"sv, "a GIF picture"},
    {8, "WEBP"sv, "a WebP picture"},
    {0, "%PDF-"sv, "a PDF document"},
    {0, "PK\x03\x04"sv, "a zip file: torch.export's .pt2, or torch.save's?"},
    {0, "\x1f\x8b"sv, "a gzip file"},
    {0, "BZh"sv, "a bzip2 file"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "an xz file"},
    {0, "\x28\xb5\x2f\xfd"sv, "a Zstandard file"},
    {257, "ustar"sv, "a tar archive"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or shared library (ELF)"},
    {0, "\x89HDF\r\n"sv, "an HDF5 file"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "GGUF"sv, "a GGUF file: weights without a graph"},
    {0, "SQLite format 3"sv, "an SQLite database"},
    {0, "<!DOCTYPE html"sv, "a page of HTML"},
    {0, "<!doctype html"sv, "a page of HTML"},
    {0, "<html"sv, "a page of HTML"},
    {0, "<svg"sv, "an SVG picture"},
    {0, "#!"sv, "a script"},
});

}  // namespace

std::string file_kind(std::string_view content) {
  const auto byte = [&](std::size_t i) {
    return i < content.size() ? static_cast<unsigned char>(content[i]) : 0;
  };
  for (const Signature& known : kSignatures)
    if (content.size() >= known.at && content.substr(known.at).starts_with(known.bytes))
      return std::string(known.kind);
  if (byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5) return "a pickle, as written by torch.save";
  if (content.size() > 9 && byte(8) == '{' && byte(9) == '"' && byte(7) == 0 && byte(6) == 0)
    return "safetensors: weights without a graph";
  // A ModelProto begins with ir_version, followed by the producer's name, the graph or opsets.
  if (byte(0) == 0x08 && byte(1) > 0 && byte(1) < 32 &&
      (byte(2) == 0x12 || byte(2) == 0x3a || byte(2) == 0x42))
    return "an ONNX file";
  if (content.substr(0, 4096).find('\0') != std::string_view::npos) return "a binary file";
  return "";
}

std::string stated_format(std::string_view json) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto skip = [&] {
    json.remove_prefix(std::min(json.find_first_not_of(kSpace), json.size()));
  };
  const auto take = [&](std::string_view word) {
    skip();
    if (!json.starts_with(word)) return false;
    json.remove_prefix(word.size());
    return true;
  };
  if (!take("{") || !take("\"format\"") || !take(":") || !take("\"")) return "";
  return std::string(json.substr(0, json.find('"')));
}

Result<std::string> read_text_file(const std::string& path, std::string_view wanted,
                                   std::string_view format) {
  Result<std::string> text = read_file(path);
  if (!text) return text;
  std::string kind = file_kind(*text);
  const std::string stated = stated_format(*text);
  if (kind.empty() && stated.starts_with("piecewise.") && stated != format)
    kind = "a JSON document of the format " + stated;
  if (kind.empty()) return text;
  return fail(error_in(path, "PW0005", "this is " + kind, "expected: " + std::string(wanted)));
}

std::string known_as(std::string_view text) {
  if (std::string kind = file_kind(text); !kind.empty()) return kind;
  const std::string_view head = text.substr(0, std::size_t{1} << 16);
  auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (head.starts_with("# ") && (has("\n## ") || has("\n```")) && !has("\ndef ") &&
      !has("torch.ops."))
    return "a Markdown document";
  if (has("= aten::") || has("= prim::")) return "TorchScript's graph";
  if (has("HloModule ")) return "XLA's HLO";
  if (has("func.func ") || has("stablehlo.")) return "MLIR";
  // A model as it was written, not as it was traced.
  if (has("super().__init__(") && text.find("torch.ops.") == std::string_view::npos &&
      text.find(" = None") == std::string_view::npos)
    return "Python source, not a dump of a graph";
  if (!has("def forward(") && (has("import torch") || (has("def ") && has("):"))))
    return "Python source, not a dump of a graph";
  return "";
}

}  // namespace pw
