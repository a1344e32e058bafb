// Dumps every field of every node, so that two trees are equal exactly when their dumps are.
// Independent of the printers.
#include "tests/dsl/ast_dump.hpp"

#include <bit>

namespace pw {
namespace {

std::string dump(const std::string& s) { return "'" + s + "'"; }
std::string dump(bool b) { return b ? "yes" : "no"; }
std::string dump(std::int64_t i) { return std::to_string(i); }
std::string dump(int i) { return std::to_string(i); }
std::string dump(double d) { return std::to_string(std::bit_cast<std::uint64_t>(d)); }
std::string dump(const Span&) { return ""; }
std::string dump(const Binder& b);
std::string dump(const AttributeArg& a);
std::string dump(const OperandDecl& o);
std::string dump(const ResultDecl& r);
std::string dump(const SymbolFact& f);
std::string dump(const ast::AttributeDecl& a);
std::string dump(const ast::Clause& c);
std::string dump(const ast::OpVariable& v);
std::string dump(const ast::Body& b);
std::string dump(const ast::Table::Row& r);
std::string dump(const ast::Strategy& s);
std::string dump(const ast::Split::At& a);
std::string dump(const ast::Capture::Sizes& s);
std::string dump(const ast::GraphItem::Input& i);
std::string dump(const ast::GraphItem::Write& w);
std::string dump(const ast::GraphItem::Node& n);
std::string dump(const ast::Expectation& e);
std::string dump(const ast::Use& i);
std::string dump(const ast::Param& i);
std::string dump(const ast::Extern& i);
std::string dump(const ast::OpItem& i);
std::string dump(const ast::ForeignItem::Parameter& p);
std::string dump(const ast::ForeignItem& i);
std::string dump(const ast::Table& i);
std::string dump(const ast::Pattern& i);
std::string dump(const ast::Rule& i);
std::string dump(const ast::Group& i);
std::string dump(const ast::Pass& i);
std::string dump(const ast::Pipeline& i);
std::string dump(const ast::Split& i);
std::string dump(const ast::Capture& i);
std::string dump(const ast::Explore::Clause& c);
std::string dump(const ast::Explore& i);
std::string dump(const ast::Test& i);
std::string dump(const ast::GraphItem& i);

template <class T>
std::string dump(const std::optional<T>& x);
template <class A, class B>
std::string dump(const std::pair<A, B>& x);
template <class T>
std::string dump(const std::vector<T>& list) {
  std::string out = "[";
  for (const auto& x : list) out += dump(x) + " ";
  return out + "]";
}
template <class T>
std::string dump(const std::optional<T>& x) {
  return x ? dump(*x) : "absent";
}
template <class A, class B>
std::string dump(const std::pair<A, B>& x) {
  return dump(x.first) + ":" + dump(x.second);
}

template <class... Fields>
std::string node(const char* kind, const Fields&... fields) {
  std::string out = std::string("(") + kind;
  ((out += " " + dump(fields)), ...);
  return out + ")";
}
template <class E>
int number(E e) {
  return static_cast<int>(e);
}

std::string dump(const Binder& b) { return node("binder", b.name, b.spread, b.type); }
std::string dump(const AttributeArg& a) { return node("setting", a.name, a.value); }
std::string dump(const OperandDecl& o) {
  return node("operand", o.name, o.mut, o.out, o.variadic, o.optional, o.type);
}
std::string dump(const ResultDecl& r) { return node("result", r.name, r.variadic, r.type, r.from); }
std::string dump(const SymbolFact& f) { return node("fact", f.min, f.max, f.multiple, f.role); }
std::string dump(const ast::AttributeDecl& a) {
  return node("attribute", a.name, a.kind, a.nullable, a.value);
}
std::string dump(const ast::Clause& c) {
  return node("clause", number(c.kind), c.guards, c.statements);
}
std::string dump(const ast::OpVariable& v) { return node("op", v.name, v.trait); }
std::string dump(const ast::Body& b) { return node("body", b.clauses, b.statements, b.ops); }
std::string dump(const ast::Table::Row& r) { return node("row", r.name, r.cells); }
std::string dump(const ast::Strategy& s) {
  return node("strategy", number(s.kind), s.references, s.parts, s.fuel, s.nodes, s.rounds, s.when,
              s.ensures, s.by, s.cost);
}
std::string dump(const ast::Split::At& a) { return node("at", a.ops, a.when); }
std::string dump(const ast::Capture::Sizes& s) { return node("sizes", s.first, s.last, s.step); }
std::string dump(const ast::GraphItem::Input& i) { return node("input", i.name, i.type, i.kind); }
std::string dump(const ast::GraphItem::Node& n) {
  return node("node", n.statement, n.group, n.source);
}
std::string dump(const ast::GraphItem::Write& w) { return node("write", w.input, w.value); }
std::string dump(const ast::Expectation& e) {
  return node("expect", number(e.kind), e.guard, e.graph, e.within, e.error, e.because_code,
              e.because_text);
}
std::string dump(const ast::Use& i) { return node("use", i.path); }
std::string dump(const ast::Param& i) { return node("param", i.name, i.kind, i.value); }
std::string dump(const ast::Extern& i) {
  return node("extern", i.predicate, i.name, i.parameters, i.result);
}
std::string dump(const ast::OpItem& i) {
  return node("op", i.name, i.operands, i.attributes, i.results, i.result_from, i.traits, i.body,
              i.imported);
}
std::string dump(const ast::ForeignItem::Parameter& p) {
  return node("argument", p.names, p.mut, p.out, p.type, p.value);
}
std::string dump(const ast::ForeignItem& i) {
  return node("foreign", i.target, i.parameters, i.returns, i.where, i.block, i.body);
}
std::string dump(const ast::Table& i) {
  return node("table", i.name, i.columns, i.rows, i.factors);
}
std::string dump(const ast::Pattern& i) {
  return node("pattern", i.recursive, i.name, i.operands, i.operand_types, i.attributes, i.results,
              i.result_types, i.alternatives);
}
std::string dump(const ast::Rule& i) {
  return node("rule", i.name, i.variant, i.table, i.over, i.body, i.equivalence, i.replacement);
}
std::string dump(const ast::Group& i) { return node("group", i.name, i.rules); }
std::string dump(const ast::Pass& i) { return node("pass", i.name, i.strategy); }
std::string dump(const ast::Pipeline& i) {
  return node("pipeline", i.name, i.strategy, i.ranges, i.ranges_symbol);
}
std::string dump(const ast::Split& i) { return node("split", i.name, i.at); }
std::string dump(const ast::Capture& i) { return node("capture", i.sizes, i.mode); }
std::string dump(const ast::Explore::Clause& c) {
  return node("clause", number(c.kind), c.names, c.values, c.numbers);
}
std::string dump(const ast::Explore& i) { return node("explore", i.name, i.clauses); }
std::string dump(const ast::Test& i) {
  return node("test", i.name, i.graph, i.file, i.apply, i.with, i.expectations);
}
std::string dump(const ast::GraphItem& i) {
  return node("graph", i.name, i.inputs, i.nodes, i.outputs, i.writes, i.symbols, i.ops);
}

}  // namespace

std::string dump(const Expr& e) {
  return node("expr", number(e.kind), e.integer, e.real, e.text, e.args, e.attributes, e.braces,
              e.open, e.optional, e.type);
}
std::string dump(const TypeExpr& type) {
  return node("type", type.dtype, type.any_shape, type.dims);
}
std::string dump(const Statement& s) { return node("statement", s.many, s.binders, s.value); }
std::string dump(const ast::File& file) {
  std::string out;
  for (const ast::Item& item : file.items)
    out += std::visit([](const auto& i) { return dump(i); }, item) + "\n";
  for (const ast::Comment& c : file.comments) out += node("comment", c.text) + "\n";
  return out;
}

}  // namespace pw
