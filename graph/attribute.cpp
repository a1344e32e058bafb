#include "graph/attribute.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/printable.hpp"

namespace pw {
namespace {

template <class T, class Print>
std::string print_list(const std::vector<T>& items, const Print& print_item) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + print_item(items[i]);
  return out + "]";
}

/// Returns the bits of a real, by which reals are compared: -0.0 prints and means something else
/// than 0.0, and a NaN equals itself.
std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

struct HashAttribute {
  std::uint64_t operator()(None) const { return 0; }
  std::uint64_t operator()(bool b) const { return b ? 1 : 0; }
  std::uint64_t operator()(std::int64_t i) const { return static_cast<std::uint64_t>(i); }
  std::uint64_t operator()(double x) const { return bits_of(x); }
  std::uint64_t operator()(const std::string& s) const { return hash_text(s); }
  std::uint64_t operator()(DType d) const { return static_cast<std::uint64_t>(d); }
  std::uint64_t operator()(DimId d) const { return d.index; }
  template <class T>
  std::uint64_t operator()(const std::vector<T>& items) const {
    std::uint64_t h = items.size();
    for (const T& item : items) h = combine(h, (*this)(item));
    return h;
  }
};

bool identical(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return bits_of(*x) == bits_of(std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(),
                      [](double p, double q) { return bits_of(p) == bits_of(q); });
  }
  return a == b;
}

bool identical(const AttributeList& a, const AttributeList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& p, const auto& q) {
    return p.first == q.first && identical(p.second, q.second);
  });
}

}  // namespace

std::string_view name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::int_: return "int";
    case AttributeKind::float_: return "float";
    case AttributeKind::bool_: return "bool";
    case AttributeKind::str: return "str";
    case AttributeKind::dtype: return "dtype";
    case AttributeKind::axis: return "axis";
    case AttributeKind::ints: return "ints";
    case AttributeKind::dims: return "dims";
    case AttributeKind::floats: return "floats";
    case AttributeKind::strs: return "strs";
  }
  return "?";
}

AttributesId Attributes::intern(AttributeList list) {
  std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) {
    return strings_.text(a.first) < strings_.text(b.first);
  });
  std::uint64_t hash = list.size();
  for (const auto& [name, value] : list)
    hash = combine(combine(hash, name.index),
                   combine(value.index(), std::visit(HashAttribute{}, value)));
  const std::uint32_t found =
      index_.find(hash, [&](std::uint32_t i) { return identical(lists_[AttributesId(i)], list); });
  if (found != HashIndex::kNone) return AttributesId(found);
  list.shrink_to_fit();
  const AttributesId id = lists_.push_back(std::move(list));
  index_.insert(hash, id.index);
  return id;
}

const Attribute* Attributes::find(AttributesId id, NameId name) const {
  for (const auto& [key, value] : lists_[id])
    if (key == name) return &value;
  return nullptr;
}

const Attribute* Attributes::find(AttributesId id, std::string_view name) const {
  NameId key = strings_.find(name);
  return key.valid() ? find(id, key) : nullptr;
}

std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

namespace {

std::string in_hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(c.length, 1));
    switch (bytes[0]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default: out += harmless(c) ? std::string(bytes) : in_hexadecimal(bytes);
    }
    text.remove_prefix(bytes.size());
  }
  return out + "\"";
}

std::string Attributes::print(const Attribute& value) const {
  struct Printer {
    const Dims& dims;
    std::string operator()(None) const { return "none"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double x) const { return print_real(x); }
    std::string operator()(const std::string& s) const { return quote(s); }
    std::string operator()(DType d) const { return std::string(pw::name(d)); }
    std::string operator()(DimId d) const { return dims.print(d); }
    std::string operator()(const std::vector<DimId>& v) const {
      return print_list(v, [&](DimId d) { return dims.print(d); });
    }
    std::string operator()(const std::vector<double>& v) const { return print_list(v, print_real); }
    std::string operator()(const std::vector<std::string>& v) const {
      return print_list(v, [](const std::string& s) { return quote(s); });
    }
  };
  return std::visit(Printer{dims_}, value);
}

std::string Attributes::print(AttributesId id) const {
  const AttributeList& list = lists_[id];
  if (list.empty()) return "";
  std::string out = "{";
  for (std::size_t i = 0; i < list.size(); ++i)
    out += fmt::format("{}{} = {}", i ? ", " : "", strings_.text(list[i].first),
                       print(list[i].second));
  return out + "}";
}

}  // namespace pw
