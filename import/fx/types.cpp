#include "import/fx/types.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/trim.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/emit/values.hpp"

namespace pw::fx {
namespace {

constexpr std::string_view kLoadArgs = "def load_args(", kTensor = "reader.tensor(",
                           kSymbol = "reader.symint(", kDType = "dtype=";

/// Returns the position after the bracket that closes the one at `open`.
std::size_t behind_bracket(std::string_view line, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < line.size(); ++at) {
    depth += line[at] == '(' ? 1 : line[at] == ')' ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

/// Returns `bf16` for `torch.bfloat16`; the text unchanged if the library has no such dtype.
std::string dtype_text(std::string_view torch) {
  const std::optional<Value> word = torch_word(std::string(torch));
  if (word && word->kind == Value::Kind::dtype) return std::string(name(word->dtype));
  return std::string(torch.substr(torch.rfind('.') + 1));
}

/// Returns `bf16[4, 8]` for `buf0, (4, 8), dtype=torch.bfloat16, is_leaf=True`. Nothing if it has
/// no shape.
std::optional<std::string> tensor_text(std::string_view arguments) {
  const std::size_t open = arguments.find('(');
  const std::size_t end = open == std::string_view::npos ? open : behind_bracket(arguments, open);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view dims = trimmed(arguments.substr(open + 1, end - open - 2));
  if (dims.ends_with(",")) dims.remove_suffix(1);
  std::string dtype = "f32";  // the default of the script's reader
  if (const std::size_t at = arguments.find(kDType, end); at != std::string_view::npos) {
    const std::string_view rest = arguments.substr(at + kDType.size());
    dtype = dtype_text(rest.substr(0, rest.find_first_of(", )")));
  }
  return fmt::format("{}[{}]", dtype, dims);
}

/// Returns the type that a line of the script states of an argument, by its name, which is the
/// comment.
std::optional<std::pair<std::string, std::string>> stated_in(std::string_view line) {
  const std::size_t comment = line.rfind('#');
  if (comment == std::string_view::npos) return std::nullopt;
  std::string_view name = trimmed(line.substr(comment + 1));
  name = name.substr(0, name.find_first_of(", "));
  for (const std::string_view call : {kTensor, kSymbol}) {
    const std::size_t at = line.find(call);
    const std::size_t open = at + call.size() - 1;
    const std::size_t end = at < comment ? behind_bracket(line, open) : std::string_view::npos;
    if (end == std::string_view::npos || end > comment) continue;
    const std::string_view arguments = line.substr(open + 1, end - open - 2);
    const std::optional<std::string> type =
        call == kSymbol ? fmt::format("Sym({})", trimmed(arguments)) : tensor_text(arguments);
    if (type) return std::pair(std::string(name), *type);
  }
  return std::nullopt;
}

void give(Parameter& parameter, const std::string& type) {
  parameter.type = type;
  parameter.type_span = parameter.span;
  parameter.given = true;
}

std::map<std::string, std::string, std::less<>> stated_types(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  const std::size_t begin = text.find(kLoadArgs);
  for (std::size_t at = std::min(text.find('\n', begin), text.size());
       begin != std::string_view::npos && at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    const std::string_view line = text.substr(at + 1, end - at - 1);
    if (!trimmed(line).empty() && line.front() != ' ' && line.front() != '\t') break;
    if (auto stated = stated_in(line)) out.insert(std::move(*stated));
    at = end;
  }
  return out;
}

}  // namespace

bool names_input(std::string_view given, std::string_view input) {
  return given == input ||
         (given.starts_with("L_") && input.starts_with("l_") && given.substr(1) == input.substr(1));
}

std::size_t take_load_args(std::string_view text, Function& function) {
  const auto stated = stated_types(text);
  std::size_t taken = 0;
  for (Parameter& p : function.parameters) {
    const auto found = stated.find(p.name);
    if (!p.type.empty() || found == stated.end()) continue;
    give(p, found->second);
    ++taken;
  }
  return taken;
}

Status take_given_types(Context& context, const FxOptions& options, Function& function) {
  for (const auto& [name, text] : options.types) {
    const std::string place = fmt::format("--type {}={}", name, text);
    const TextResult<TypeId> type = parse_fx_type(context, text);
    if (!type || *type == Types::unknown())
      return fail(error_in(place, "PW0505", type ? "`?` is not a type" : type.error().message,
                           type ? "write it like x=bf16[n,64]" : type.error().help));
    for (Parameter& p : function.parameters) {
      if (!names_input(name, p.name)) continue;
      const TextResult<TypeId> before = parse_fx_type(context, p.type);
      const bool stated = before && *before != Types::unknown();
      if (p.type.starts_with("Sym(") || (stated && *before != *type))
        return fail(error_in(place, "PW0506",
                             fmt::format("the dump already states `{}` as {}", p.name, p.type),
                             "leave the option out: it applies only to inputs without a type"));
      if (stated) continue;
      give(p, text);
    }
  }
  return {};
}

}  // namespace pw::fx
