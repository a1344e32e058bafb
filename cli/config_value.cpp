// Exports parse_config and read_config.
#include <stdexcept>

namespace {
[[noreturn]] void give_up(const char* expected) { throw std::logic_error(expected); }
}  // namespace

// Some assertions of toml++ 3.3 do not hold for wrong texts, and a release build would assume them.
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : give_up(#expr))
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/file.hpp"
#include "cli/config_value.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

/// TOML's places are lines and code points, from 1.
std::uint32_t offset_of(std::string_view text, const toml::source_position& place) {
  std::size_t at = 0;
  for (auto line = place.line; line > 1 && at < text.size(); --line) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U;
  };
  for (auto column = place.column; column > 1 && at < text.size() && text[at] != '\n'; --column) {
    ++at;
    while (at < text.size() && continues(at)) ++at;
  }
  return static_cast<std::uint32_t>(at);
}

std::optional<std::string> scalar_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

class Reader {
 public:
  Reader(const SourceMap& sources, SourceId source)
      : text_(sources.text(source)), source_(source) {}

  std::vector<ConfigValue> table(const toml::table& from) const {
    std::vector<ConfigValue> out;
    for (const auto& [key, node] : from) out.push_back(value(key, node));
    std::ranges::stable_sort(out, {}, [](const ConfigValue& v) { return v.span.begin; });
    return out;
  }
  [[nodiscard]] Span span(const toml::source_region& region, std::size_t least) const {
    const std::uint32_t begin = offset_of(text_, region.begin);
    const std::uint32_t end = offset_of(text_, region.end);
    const std::size_t least_end = std::min(text_.size(), begin + least);
    return {source_, begin, std::max(end, static_cast<std::uint32_t>(least_end))};
  }

 private:
  ConfigValue value(const toml::key& key, const toml::node& node) const {
    ConfigValue out{std::string(key.str()), span(key.source(), key.str().size())};
    if (const auto scalar = scalar_of(node)) {
      out.kind = ConfigValue::Kind::scalar;
      out.scalar = *scalar;
    } else if (const auto* flag = node.as_boolean()) {
      out.kind = ConfigValue::Kind::flag;
      out.flag = flag->get();
    } else if (const auto* below = node.as_table()) {
      out.kind = ConfigValue::Kind::table;
      out.table = table(*below);
    } else if (const auto* list = node.as_array()) {
      fill(out, *list);
    }
    return out;
  }
  static void fill(ConfigValue& out, const toml::array& list) {
    for (const toml::node& item : list) {
      const auto scalar = scalar_of(item);
      if (!scalar) return;
      out.list.push_back(*scalar);
    }
    out.kind = ConfigValue::Kind::list;
  }

  std::string_view text_;
  SourceId source_;
};

tl::unexpected<Diagnostics> no_toml(Span span, const std::string& reason) {
  return fail(error_at(span, "PW1501", "this is no TOML: " + reason,
                       "a line is `option = value` or `[command]`; see docs/configuration.md"));
}

/// TOML takes none but tabs and line ends.
std::optional<std::size_t> control_character(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return at;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<ConfigValue>> parse_config(SourceMap& sources, std::string text,
                                              const std::string& file) {
  const SourceId source = sources.add(file, std::move(text));
  const std::string_view kept = sources.text(source);
  if (const auto at = control_character(kept)) {
    const auto begin = static_cast<std::uint32_t>(*at);
    return no_toml({source, begin, begin + 1}, "a control character");
  }
  const Reader reader(sources, source);
  try {
    const toml::parse_result parsed = toml::parse(kept, file);
    if (parsed) return reader.table(parsed.table());
    return no_toml(reader.span(parsed.error().source(), 1),
                   std::string(parsed.error().description()));
  } catch (const std::logic_error&) {
    return no_toml({source, 0, 0}, "a text that its parser gives up on");
  }
}

Result<std::vector<ConfigValue>> read_config(SourceMap& sources, const std::string& path) {
  auto text = read_file(path, kMostBytes);
  if (!text) return forward(text);
  return parse_config(sources, std::move(*text), path);
}

}  // namespace pw::cli
