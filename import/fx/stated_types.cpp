#include "import/fx/stated_types.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/trim.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

// dtypes of torch, as it prints them, that the library lacks.
constexpr std::string_view kOtherDTypes[] = {
    "i16",       "u16",        "u32",        "u64",       "c32",        "c64",    "c128",   "b16",
    "b1x8",      "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu", "f4e2m1fnx2", "qi8",    "qu8",    "qi32",
    "complex32", "complex64",  "complex128", "int16",     "uint16",     "uint32", "uint64", "f6",
    "i4",        "u4",         "i1",         "u1",        "u2",         "i2",     "u3",     "u5",
    "u6",        "u7",         "i3",         "i5",        "i6",         "i7",
};

// Returns true for an annotation that is not the type of a tensor: torch.Tensor, LayerName,
// List[Tensor].
bool says_no_type(std::string_view text) {
  const std::string_view word = trimmed(text.substr(0, text.find('[')));
  if (text == "?") return true;
  if (text.find('[') == std::string_view::npos)
    return !dtype_named(word) && is_word(word.substr(word.rfind('.') + 1));
  return word.find('.') != std::string_view::npos ||
         (!word.empty() && word[0] >= 'A' && word[0] <= 'Z');
}

}  // namespace

Result<TypeId> StatedTypes::read(const std::string& text, Span span) {
  if (changes_ != symbols_.changes()) known_.clear();
  changes_ = symbols_.changes();
  if (const auto known = known_.find(text); known != known_.end()) return known->second;
  if (says_no_type(text)) return Types::unknown();
  const std::string_view word = trimmed(std::string_view(text).substr(0, text.find('[')));
  if (std::find(std::begin(kOtherDTypes), std::end(kOtherDTypes), word) != std::end(kOtherDTypes)) {
    std::string line =
        fmt::format("{} is not a supported dtype: its values stay without a type", word);
    if (std::ranges::find(report_.notes, line) == report_.notes.end())
      report_.notes.push_back(std::move(line));
    return Types::unknown();
  }
  TextResult<TypeId> type = parse_fx_type(context_, text);
  if (type) return known_[text] = symbols_.renamed(*type);
  auto at = static_cast<std::uint32_t>(
      std::min<std::size_t>(span.begin + type.error().offset, span.end > 0 ? span.end - 1 : 0));
  return fail(Span{span.source, at, at + 1}, "PW0505", type.error().message, type.error().help);
}

}  // namespace pw::fx
