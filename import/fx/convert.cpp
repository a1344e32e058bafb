// Translates one function of a dump, statement by statement, into nodes: abstract interpretation
// over values that are tensors, sizes, numbers, or lists of them. The problem is that PyTorch
// programs mutate tensors and share memory, while the graph is in static single assignment. Each
// tensor name is therefore a handle of memory (emit/memory.hpp), and its contents are looked up as
// a value when it is read.
//
//  * Names map to values in order; a later binding replaces an earlier one.
//  * A call goes through the table of targets (ops.hpp) and the items of rule files. If nothing
//    applies, it stays an opaque node with its arguments (calls/unknown_calls.cpp).
//  * Statements that equal an earlier one up to names are copied (repeater.hpp).
//  * At the end, inputs whose contents changed become writes of the graph.
//
// Invariant: nodes are appended in the order of the statements, so that the order is topological.
// Cost: linear in the statements, apart from reads of views that were written many times
// (emit/versions.hpp).
#include "import/fx/convert.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/type_text.hpp"

namespace pw::fx {
namespace {

// Objects have no text in which an error could be.
void name_node(Diagnostic& error, std::string_view node) {
  error.span = {};
  error.place = fmt::format("node {}", node);
}

}  // namespace

Converter::Converter(const ContextPtr& context, const FxOptions& options, const Function& function,
                     std::string_view signature)
    : context_ptr_(context),
      context_(*context),
      function_(function),
      parts_(context, options, function, signature),
      graph_(parts_.graph),
      emitter_(parts_.emitter),
      versions_(parts_.versions),
      memory_(versions_.memory()),
      names_(parts_.names),
      torch_(emitter_, versions_, parts_.calls),
      subscripts_(emitter_, parts_.calls, parts_.unknown),
      python_(emitter_, parts_.calls, parts_.known, parts_.unknown, torch_, subscripts_,
              parts_.report),
      evaluator_(parts_.env, names_, emitter_, versions_, parts_.inputs, parts_.calls, python_,
                 subscripts_),
      repeater_(emitter_, versions_, names_, parts_.env, items_, parts_.read_names,
                options.one_by_one) {}

Result<FxImport> Converter::convert() {
  PW_TRY(parts_.inputs.read());
  find_getitems();
  const std::size_t statements = function_.statements.size();
  graph_.expect(statements, statements, 2 * statements);
  std::size_t read = 0;
  Diagnostics errors;
  for (const Statement& s : function_.statements) {
    tell(parts_.options.progress, "building", read++, function_.statements.size(), "calls");
    emitter_.set_group(s.group);
    Status done = repeater_.convert(s, [&] { return convert_statement(s); });
    if (done) continue;
    if (parts_.options.computed_types && s.kind == Statement::Kind::assign)
      for (Diagnostic& error : done.error()) name_node(error, s.targets.front().text);
    std::move(done.error().begin(), done.error().end(), std::back_inserter(errors));
    if (errors.size() >= kMaxDiagnostics) break;
    for (const Expr& target : s.targets) parts_.env[target.text];  // one mistake, one message
  }
  repeater_.take_time();
  if (errors.empty()) PW_TRY(write_back());
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return finish(parts_, context_ptr_);
}

// ---- statements

// Finds statements that name the parts of tuples, `a = t[0]`; their names and types belong to the
// results.
void Converter::find_getitems() {
  for (const Parameter& p : function_.parameters) names_.bind(p.name);
  for (const Statement& s : function_.statements) {
    for (const Expr& target : s.targets) find_names(target);
    if (!parts_.unknown.functional()) find_functional(s.value);
    if (s.kind != Statement::Kind::assign || s.targets.size() != 1) continue;
    const Expr& v = s.value;
    const Expr *tuple = nullptr, *index = nullptr;
    if (v.kind == Expr::Kind::index && v.args.size() == 2) tuple = &v.args[0], index = &v.args[1];
    if (v.kind == Expr::Kind::call && v.text == "operator.getitem" && v.args.size() == 2)
      tuple = &v.args[0], index = &v.args[1];
    if (!tuple || tuple->kind != Expr::Kind::name) continue;
    const std::optional<int> at = items_.number(tuple->text, *index);
    if (!at) continue;
    Wanted wanted{s.targets[0].text, Types::unknown(), s.type_span};
    if (!s.type.empty())
      if (TextResult<TypeId> type = parse_fx_type(context_, s.type))
        wanted.type = parts_.symbols.renamed(*type);
    items_.add(tuple->text, *at, std::move(wanted));
  }
}

void Converter::find_functional(const Expr& e) {
  if (e.kind == Expr::Kind::name || e.kind == Expr::Kind::call)
    if (e.text.find("auto_functionalized") != std::string::npos)
      parts_.unknown.set_functional(true);
  for (const Expr& arg : e.args) find_functional(arg);
}

Status Converter::convert_statement(const Statement& s) {
  repeater_.take_time();
  if (s.kind == Statement::Kind::return_) return outputs(s.value);
  Site site{s.span, s.source, s.kind == Statement::Kind::assign, {}, {}, {}, s.first_of};
  if (s.kind == Statement::Kind::assign) {
    site.result = {s.targets.front().text, Types::unknown(), s.type_span};
    if (const TupleItems::Items* items = items_.items(site.result.name)) site.items = *items;
    if (const TupleItems::Keys* keys = items_.keys(site.result.name)) site.keys = *keys;
  }
  bool symbolic = s.type.starts_with("Sym(") || s.type.empty() || is_word(s.type);
  if (!symbolic) {
    site.result.type = PW_TRY(parts_.types.read(s.type, s.type_span));
  }
  Result<Value> value = evaluator_.evaluate(s.value, site);
  if (!value) return forward(value);
  if (value->kind == Value::Kind::tensor && site.result.type != Types::unknown()) {
    // An attribute of the module has no type; a plain copy of it, or its name here, may have one.
    ValueId v = value->tensor;
    NodeId producer = graph_.producer(v);
    if (producer.valid() &&
        (graph_.op_of(producer).name == "detach" || graph_.op_of(producer).name == "clone"))
      v = graph_.operand(producer, 0);
    if (graph_.is_input(v) && !emitter_.type_of(v)) graph_.set_type(v, site.result.type);
  }
  if (!symbolic) parts_.inputs.take_strides(*value, s.type);
  value = as_stated(std::move(*value), s);
  if (!value) return forward(value);
  for (const Expr& target : s.targets)
    if (auto ok = assign(target, *value, site); !ok) return ok;
  return {};
}

Status Converter::outputs(const Expr& e) {
  Site site{e.span, "", true, {}, {}};
  Value value = PW_TRY(evaluator_.evaluate(e, site));
  if (auto done = versions_.resolve(value, site); !done) return done;
  std::vector<std::pair<const Expr*, std::size_t>> named;
  const auto add = [&](const Value& v, const Expr* from, auto&& self) -> void {
    if (v.kind == Value::Kind::tensor) {
      if (from != nullptr && from->kind == Expr::Kind::name)
        named.emplace_back(from, graph_.outputs().size());
      graph_.add_output(v.tensor);
    }
    const bool listed = from != nullptr && from->args.size() == v.items.size();
    for (std::size_t i = 0; i < v.items.size(); ++i)
      self(v.items[i], listed ? &from->args[i] : nullptr, self);
  };
  add(value, &e, add);
  for (const auto& [from, at] : named) name_output(*from, at);
  return {};
}

// Names an output as the dump returns it, even if a later write made its contents.
void Converter::name_output(const Expr& e, std::size_t at) {
  const Value* returned = parts_.env.find(e.text);
  if (returned == nullptr || returned->kind != Value::Kind::tensor) return;
  const ValueId value = memory_.tensors[memory_.now(returned->handle)].value;
  if (graph_.value_name(value) == e.text || graph_.is_input(value)) return;
  emitter_.set_renamed();
  const ValueId held = graph_.find_value(e.text);
  if (held.valid() && (graph_.is_input(held) || graph_.is_output(held))) return;
  if (held.valid()) graph_.rename(held, emitter_.fresh(e.text));
  if (names_.generated(graph_.value_name(value))) return graph_.rename(value, e.text);
  Site site{e.span, "", true, {}, {}};  // one value under two names
  Result<Results> alias =
      emitter_.emit("detach", {value}, {}, {{e.text, Types::unknown(), {}}}, site);
  if (alias) graph_.set_output(at, alias->front());
}

// Declares the final contents of inputs that differ from their initial ones.
Status Converter::write_back() {
  Site site{function_.span, "", true, {}, {}};
  for (std::size_t i = 0; i < memory_.storages.size(); ++i) {
    const ValueId input = memory_.storages[i].input;
    if (!input.valid() || memory_.storages[i].writes.empty()) continue;
    ValueId contents = PW_TRY(versions_.read(memory_.storages[i].root, site));
    if (contents != input) graph_.add_write(input, contents);
  }
  return {};
}

// `a, b = f(x)` gives each name its item.
Status Converter::assign(const Expr& target, const Value& value, const Site& site) {
  if (target.kind == Expr::Kind::name && is_word(target.text)) {
    Value& bound = parts_.env[target.text];
    bound = value;
    bound.own_name = false;
    return {};
  }
  if (target.kind != Expr::Kind::tuple && target.kind != Expr::Kind::list)
    return fail(target.span, "PW0508", "only a name can be assigned here");
  if (value.kind == Value::Kind::list && value.items.size() != target.args.size())
    return fail(target.span, "PW0512",
                fmt::format("{} names for {} items", target.args.size(), value.items.size()));
  for (std::size_t i = 0; i < target.args.size(); ++i) {
    Value item = PW_TRY(
        evaluator_.element(value, integer(context_.dims, static_cast<std::int64_t>(i)), site));
    if (auto ok = assign(target.args[i], item, site); !ok) return ok;
  }
  return {};
}

void Converter::find_names(const Expr& target) {
  if (target.kind == Expr::Kind::name) names_.bind(target.text);
  for (const Expr& part : target.args) find_names(part);
}

// `item: "Sym(u0)" = x.item()`: only the stated type is known.
Result<Value> Converter::as_stated(Value value, const Statement& s) {
  constexpr std::string_view kSym = "Sym(";
  if (value.kind == Value::Kind::integer || !s.type.starts_with(kSym) || !s.type.ends_with(")"))
    return value;
  const std::string text = s.type.substr(kSym.size(), s.type.size() - kSym.size() - 1);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() + text.size() && text.find_first_of(".e") != std::string::npos) {
    Value out;
    out.kind = Value::Kind::real;
    out.real = number;
    return out;
  }
  TextResult<DimId> dim = parse_dim(context_.dims, text);
  if (!dim || text.starts_with("z")) return value;  // zf0 and the like are not integers
  Value out = integer(context_.dims, 0);
  out.dim = parts_.symbols.renamed(*dim);
  return out;
}

}  // namespace pw::fx
