#include "graph/op.hpp"

#include "base/assert.hpp"

namespace pw {

PW_DEFAULT_SPECIAL_MEMBERS(Op);

namespace {

bool same_signature(const Op& a, const Op& b) {
  if (a.operands.size() != b.operands.size() || a.attributes.size() != b.attributes.size() ||
      a.results.size() != b.results.size())
    return false;
  for (std::size_t i = 0; i < a.operands.size(); ++i)
    if (a.operands[i].name != b.operands[i].name) return false;
  for (std::size_t i = 0; i < a.attributes.size(); ++i)
    if (a.attributes[i].name != b.attributes[i].name ||
        a.attributes[i].kind != b.attributes[i].kind)
      return false;
  return a.has_body() == b.has_body();
}

template <class Decls>
int index_named(const Decls& decls, std::string_view name) {
  for (std::size_t i = 0; i < decls.size(); ++i)
    if (decls[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

bool Op::does_work() const {
  return !traits.view && !is_literal() && primitive != Primitive::empty;
}

std::string_view name(Capturable capturable) {
  switch (capturable) {
    case Capturable::never: return "";
    case Capturable::decode: return "capturable_decode";
    case Capturable::uniform: return "capturable_uniform";
    case Capturable::always: return "capturable";
  }
  return "";
}

int Op::operand_index(std::string_view operand) const { return index_named(operands, operand); }
int Op::result_index(std::string_view result) const { return index_named(results, result); }
const AttributeDecl* Op::attribute(std::string_view attribute_name) const {
  int i = index_named(attributes, attribute_name);
  return i < 0 ? nullptr : &attributes[static_cast<std::size_t>(i)];
}

Result<OpId> OpTable::declare(Op op) {
  if (OpId known = find(op.name); known.valid()) {
    if (same_signature(ops_[known], op)) return known;
    Diagnostic d = error_at(op.span, "PW0203",
                            "op `" + op.name + "` is already declared with a different signature",
                            "an op is declared once; rename one of them");
    if (ops_[known].span.valid()) d.secondary.push_back({ops_[known].span, "first declared here"});
    return fail(std::move(d));
  }
  if (!op.imported) op.primitive = primitive_named(op.name);
  const auto primitive = static_cast<std::size_t>(op.primitive);
  std::string name = op.name;
  OpId id = ops_.push_back(std::move(op));
  primitives_[primitive] = id;
  ids_.emplace(std::move(name), id);
  return id;
}

OpId OpTable::find(std::string_view name) const {
  auto it = ids_.find(name);
  return it == ids_.end() ? OpId() : it->second;
}

OpId OpTable::find(Primitive primitive) const {
  PW_ASSERT(primitive != Primitive::none, "an op that is not a primitive has no row");
  return primitives_[static_cast<std::size_t>(primitive)];
}

std::vector<std::string> OpTable::names() const {
  std::vector<std::string> out;
  for (const auto& [name, id] : ids_) out.push_back(name);
  return out;
}

}  // namespace pw
