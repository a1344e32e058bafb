// Attributes that a pattern leaves open. An integer becomes a symbol or, where sizes of results are
// computed from its number, one case for each value from 1 to 3. Where the pattern matches any
// number, constants of several signs and magnitudes that no rule contains stand for it, one case
// each. Numbers are the only attributes that cases do not cover completely. Two different functions
// rarely agree on all four stand-ins. An identity that fails only at single points, such as c = 0,
// is not noticed.
#include "proof/sketch/case_attributes.hpp"

#include <algorithm>

namespace pw::proof {

/// An attribute without a text keeps its default, unless the pattern is open (`..`). Then the
/// default and any other value are two cases.
void CaseAttributes::add(const PatternNode& node, const Op& op, NodeRequest& request) {
  std::set<std::string> written;
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    written.insert(attribute.name);
    request.attributes.emplace_back(context_.strings.intern(attribute.name),
                                    written_value(attribute, decl, request, node.results.size()));
  }
  for (const AttributeDecl& decl : op.attributes) {
    if (written.contains(decl.name)) continue;
    if (decl.default_value && !node.open) continue;
    if (decl.default_value && decl.kind != AttributeKind::bool_ &&
        ask(fmt::format("default {} {}", decl.name, site_), 2) == 0)
      continue;
    request.attributes.emplace_back(
        context_.strings.intern(decl.name),
        any_attribute(fmt::format("{}_{}", decl.name, site_), decl, request, node.results.size()));
  }
}

/// An unbound name alone is any attribute of its kind. Within an expression it is a size.
Attribute CaseAttributes::written_value(const PatternAttribute& attribute,
                                        const AttributeDecl* decl, const NodeRequest& request,
                                        std::size_t results) {
  std::vector<std::string> names;
  collect_paths(attribute.value, names);
  const bool alone = attribute.value.kind == Expr::Kind::path;
  for (const std::string& name : names) {
    if (env_.count(name) != 0) continue;
    if (decl != nullptr && is_step(decl->name)) {
      env_.emplace(name, any_step(name, decl->name));
    } else if (!alone || decl == nullptr) {
      const DimId dim = symbol(name);
      if (decl != nullptr && decl->kind == AttributeKind::int_) {
        may_be_zero(attribute.name, dim);
        env_.emplace(name, Attribute(dim));
      } else {
        env_.emplace(name, dim);
      }
    } else {
      env_.emplace(name, any_attribute(name, *decl, request, results));
    }
  }
  bind_list(attribute, request);
  sequences_.bind_names(attribute.value, env_, true);
  auto value = evaluate(context_, &graph_, attribute.value, env_);
  if (!value) throw Mistyped{value.error().front().message};
  return *value;
}

/// A sequence in the shape of an `expand` may repeat axes of the operand; any other is bound as
/// usual.
void CaseAttributes::bind_list(const PatternAttribute& attribute, const NodeRequest& request) {
  for (const Expr& element : attribute.value.args) {
    if (element.kind != Expr::Kind::star || element.text.empty() || env_.count(element.text) != 0)
      continue;
    const bool grows = attribute.name == "shape" && !sequences_.is_expanded(element.text) &&
                       !request.operands.empty() && request.operands[0].valid() &&
                       context_.ops[request.op].primitive == Primitive::expand &&
                       !context_.types[graph_.type(request.operands[0])].shape.empty();
    if (!grows) {
      sequences_.bind(element.text);
      continue;
    }
    Shape shape = context_.types[graph_.type(request.operands[0])].shape;
    const std::size_t others = attribute.value.args.size() - 1;
    if (shape.size() < others) throw Mistyped{"a shape of fewer axes"};
    shape.resize(shape.size() - others);
    env_.emplace(element.text, sequences_.expanded(shape, element.text));
  }
}

/// 1 to 3: an attribute that the sizes of results are computed with as a number.
Attribute CaseAttributes::any_step(const std::string& name, std::string_view attribute) {
  granted_.insert("steps of slices and convolutions are 1 to 3, paddings 0 to 2");
  const std::size_t least = attribute == "padding" ? 0 : 1;
  return static_cast<std::int64_t>(least + ask("step " + name, 3));
}

bool CaseAttributes::is_step(std::string_view attribute) {
  return attribute == "step" || attribute == "stride" || attribute == "dilation" ||
         attribute == "padding";
}

/// Integers become symbols, flags and axes become cases, and texts become a text that occurs
/// nowhere else.
Attribute CaseAttributes::any_attribute(const std::string& name, const AttributeDecl& decl,
                                        const NodeRequest& request, std::size_t results) {
  const Shape first = !request.operands.empty() && request.operands[0].valid()
                          ? context_.types[graph_.type(request.operands[0])].shape
                          : Shape();
  const std::string key = fmt::format("attribute {} {}", name, site_);
  switch (decl.kind) {
    case AttributeKind::float_: return any_number();
    case AttributeKind::bool_: return ask(key, 2) == 1;
    case AttributeKind::str: return "\"" + name + "\"";
    case AttributeKind::dtype: return kDTypes[dtypes_.ask_dtype(key, name)];
    case AttributeKind::axis:
      if (first.empty()) throw Mistyped{"no axis"};
      return static_cast<std::int64_t>(ask(key, first.size()));
    case AttributeKind::int_: {
      if (decl.nullable && ask(key, 2) == 0) return None{};
      if (decl.name == "step") return any_step(key, decl.name);
      const DimId dim = symbol(name);
      may_be_zero(decl.name, dim);
      return dim;
    }
    case AttributeKind::ints:
    case AttributeKind::dims: {
      std::vector<DimId> list;
      // A split has one size for each result.
      if (decl.name == "sizes") {
        for (std::size_t i = 0; i < results; ++i)
          list.push_back(symbol(fmt::format("{}_{}", name, i)));
        return list;
      }
      DimId product = context_.dims.constant(1);
      for (DimId dim : first) product = context_.dims.mul(product, dim);
      if (decl.name == "shape" && !request.operands.empty() &&
          context_.ops[request.op].primitive == Primitive::expand)
        return sequences_.expanded(first, name);
      if (decl.name == "shape" && !request.operands.empty()) {
        granted_.insert("a shape without a constraint is one axis");
        return std::vector<DimId>{product};
      }
      return std::vector<DimId>{symbol(name + "_0")};
    }
    case AttributeKind::floats: return std::vector<double>(results, any_number());
    case AttributeKind::strs: return std::vector<std::string>(results, "x");
  }
  return None{};
}

/// Returns the lower bound of a size: 0 for slice bounds; negative values are allowed for padding
/// and plain numbers.
void CaseAttributes::may_be_zero(const std::string& attribute, DimId dim) {
  if (attribute == "low" || attribute == "high" || attribute == "value") {
    if (!context_.dims.is_symbol(dim)) return;
    const std::string name = context_.dims.symbols(dim).front();
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    graph_.facts.symbols.try_emplace(name, SymbolFact{-kFar, kFar, 1, ""});
    integers_.free(name);
    state_.any.insert(name);
    return;
  }
  if (attribute == "interior") {
    if (!context_.dims.is_symbol(dim)) return;
    const std::string name = context_.dims.symbols(dim).front();
    state_.zero.insert(name);
    graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
    integers_.free(name);
    integers_.assume(integers_.symbol(name));
    return;
  }
  if (attribute != "start" && attribute != "end" && attribute.find("first") != 0 &&
      attribute.find("last") != 0)
    return;
  if (context_.dims.is_symbol(dim)) {
    const std::string name = context_.dims.symbols(dim).front();
    state_.zero.insert(name);
    graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
    integers_.free(name);
    integers_.assume(integers_.symbol(name));
  }
  granted_.insert("bounds of slices count from the front and lie inside the axis");
}

/// Signatures may compute sizes from integers, so these are bound before the operands.
void CaseAttributes::bind_attributes(const PatternNode& node, const Op& op, Env& local) {
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    if (decl == nullptr || decl->kind != AttributeKind::int_ || is_step(decl->name)) continue;
    bind_attribute_names(attribute.value, attribute.name);
    if (const auto dim = dim_of(attribute.value, env_))
      local.insert_or_assign(attribute.name, *dim);
  }
}

void CaseAttributes::bind_attribute_names(const Expr& value, const std::string& attribute) {
  std::vector<std::string> names;
  collect_paths(value, names);
  for (const std::string& name : names) {
    if (env_.count(name) != 0) continue;
    const DimId dim = symbol(name);
    may_be_zero(attribute, dim);
    env_.emplace(name, Attribute(dim));
  }
}

/// Returns a stand-in for any number: constants of several signs, magnitudes, and orders that no
/// rule contains.
double CaseAttributes::any_number() {
  const int n = ++numbers_;
  switch (ask("numbers", 4)) {
    case 0: return 0.0173205080756887729 + 0.00271828182845904 * n;
    case 1: return 17.320508075688773 / n - 0.0271828182845904;
    case 2: return -3.1622776601683795 + 0.0271828182845904 * n;
    default: return (n % 2 == 0 ? 2.23606797749979 : -1.4142135623730951) / n;
  }
}

}  // namespace pw::proof
