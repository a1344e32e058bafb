#include "graph/text/attribute_json.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "graph/text/type_text.hpp"

namespace pw {

using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

bool AttributeReader::read(const Tree& tree, const Pointer& pointer, AttributesId& out) {
  out = Attributes::empty();
  const Tree* given = tree.find("attributes");
  if (!given) return true;
  const Pointer at = pointer / "attributes";
  if (!check_.expect(*given, Kind::object, at)) return false;
  const std::uint64_t hash = std::hash<std::string_view>{}(given->text);
  const std::uint32_t known =
      read_index_.find(hash, [&](std::uint32_t i) { return read_[i].text == given->text; });
  if (known != HashIndex::kNone) {
    out = read_[known].attributes;
    return true;
  }
  bool ok = true;
  AttributeList list;
  for (std::size_t i = 0; i < given->keys.size(); ++i) {
    Attribute value;
    ok = attribute(given->items[i], at / given->keys[i], value) && ok;
    list.emplace_back(context_.strings.intern(given->keys[i]), std::move(value));
  }
  if (!ok) return false;
  if (!list.empty()) out = context_.attributes.intern(std::move(list));
  read_index_.insert(hash, static_cast<std::uint32_t>(read_.size()));
  read_.push_back({given->text, out});
  return true;
}

bool AttributeReader::dim(const Tree& tree, const Pointer& pointer, DimId& out) {
  if (tree.kind == Kind::integer) {
    out = context_.dims.constant(tree.integer);
    return true;
  }
  if (!check_.expect(tree, Kind::object, pointer) || !check_.known_keys(tree, {"dim"}, pointer))
    return false;
  const Tree* text = tree.find("dim");
  if (!text) return check_.error(pointer, "PW1005", "the member `dim` is missing");
  const Pointer at = pointer / "dim";
  return check_.expect(*text, Kind::string, at) && dim_text(text->text, at, out);
}

bool AttributeReader::dim_text(std::string_view text, const Pointer& at, DimId& out) {
  TextResult<DimId> parsed = parse_dim(context_.dims, text);
  if (!parsed) return check_.error(at, "PW1007", parsed.error().message, parsed.error().help);
  out = *parsed;
  for (const std::string& symbol : context_.dims.symbols(out))
    if (!symbols_.contains(symbol)) symbols_.emplace(symbol, at.text());
  return true;
}

bool AttributeReader::real(const Tree& tree, const Pointer& pointer, double& out) {
  if (tree.kind == Kind::real) {
    out = tree.real;
  } else if (tree.kind == Kind::integer) {
    out = static_cast<double>(tree.integer);
  } else {
    if (!check_.expect(tree, Kind::object, pointer) || !check_.known_keys(tree, {"float"}, pointer))
      return false;
    const Tree* word = tree.find("float");
    const std::string_view value = word && word->kind == Kind::string ? word->text : "";
    if (value != "inf" && value != "-inf" && value != "nan")
      return check_.error(pointer, "PW1005", "{\"float\": …} is \"inf\", \"-inf\" or \"nan\"");
    out = value == "nan" ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity() * (value == "inf" ? 1 : -1);
  }
  return true;
}

bool AttributeReader::list(const Tree& tree, const Pointer& pointer, Attribute& out) {
  auto is = [&](Kind kind) {
    return std::any_of(tree.items.begin(), tree.items.end(), [&](const Tree& t) {
      return t.kind == kind || (kind == Kind::real && t.find("float"));
    });
  };
  std::vector<DimId> dims;
  std::vector<double> reals;
  std::vector<std::string> texts;
  bool strings = is(Kind::string), floats = is(Kind::real);
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    const Pointer at = pointer / i;
    DimId d;
    double x = 0;
    if (strings  ? !check_.expect(tree.items[i], Kind::string, at)
        : floats ? !real(tree.items[i], at, x)
                 : !dim(tree.items[i], at, d))
      return false;
    if (strings) texts.emplace_back(tree.items[i].text);
    if (floats) reals.push_back(x);
    if (!strings && !floats) dims.push_back(d);
  }
  if (strings)
    out = std::move(texts);
  else if (floats)
    out = std::move(reals);
  else
    out = std::move(dims);
  return true;
}

bool AttributeReader::attribute(const Tree& tree, const Pointer& pointer, Attribute& out) {
  switch (tree.kind) {
    case Kind::null: out = None(); return true;
    case Kind::boolean: out = tree.boolean; return true;
    case Kind::integer: out = tree.integer; return true;
    case Kind::real: out = tree.real; return true;
    case Kind::string: out = std::string(tree.text); return true;
    case Kind::array: return list(tree, pointer, out);
    case Kind::object: return object(tree, pointer, out);
  }
  return false;
}

bool AttributeReader::object(const Tree& tree, const Pointer& pointer, Attribute& out) {
  if (!check_.known_keys(tree, {"dim", "dtype", "float", "floats", "strs"}, pointer)) return false;
  if (tree.keys.size() != 1)
    return check_.error(
        pointer, "PW1005",
        "an attribute object must have one member: dim, dtype, float, floats or strs");
  const Tree& value = tree.items[0];
  if (tree.keys[0] == "dim") {
    DimId d;
    if (!dim(tree, pointer, d)) return false;
    if (auto v = context_.dims.value(d))
      out = *v;
    else
      out = d;
  } else if (tree.keys[0] == "dtype") {
    const Pointer at = pointer / "dtype";
    if (!check_.expect(value, Kind::string, at)) return false;
    std::optional<DType> dtype = dtype_named(value.text);
    if (!dtype)
      return check_.error(at, "PW1007",
                          fmt::format("unknown dtype `{}`", value.text.substr(0, 40)));
    out = *dtype;
  } else if (tree.keys[0] == "float") {
    double x = 0;
    if (!real(tree, pointer, x)) return false;
    out = x;
  } else {
    const Pointer at = pointer / tree.keys[0];
    if (!check_.expect(value, Kind::array, at)) return false;
    if (!value.items.empty()) return list(value, at, out);
    if (tree.keys[0] == "floats")
      out = std::vector<double>();
    else
      out = std::vector<std::string>();
  }
  return true;
}

}  // namespace pw
