// Translates one function of a dump, statement by statement, into nodes: abstract interpretation
// over values that are tensors, sizes, numbers, or lists of them. The problem is that PyTorch
// programs mutate tensors and share memory, while the graph is in static single assignment. Each
// tensor name is therefore a handle of memory (memory.hpp), and its contents are looked up as a
// value when it is read.
//
//  * Names map to values in order; a later binding replaces an earlier one.
//  * A call goes through the table of targets (ops.hpp) and the items of rule files. If nothing
//    applies, it stays an opaque node with its arguments (opaque.cpp).
//  * Statements that equal an earlier one up to names are copied (calls/repeat.cpp).
//  * At the end, inputs whose contents changed become writes of the graph.
//
// Invariant: nodes are appended in the order of the statements, so that the order is topological.
// Cost: linear in the statements, apart from reads of views that were written many times
// (versions.cpp).
#include "import/fx/convert.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/type_text.hpp"

namespace pw::fx {
namespace {

constexpr std::int64_t kMaxItem = 4096;  // of a tuple

const std::map<std::string_view, DType> kTorchDTypes = {
    {"torch.bfloat16", DType::bf16},
    {"torch.float16", DType::f16},
    {"torch.half", DType::f16},
    {"torch.float32", DType::f32},
    {"torch.float", DType::f32},
    {"torch.float64", DType::f64},
    {"torch.double", DType::f64},
    {"torch.int8", DType::i8},
    {"torch.uint8", DType::u8},
    {"torch.int32", DType::i32},
    {"torch.int", DType::i32},
    {"torch.int64", DType::i64},
    {"torch.long", DType::i64},
    {"torch.bool", DType::b8},
    {"torch.float8_e4m3fn", DType::f8e4m3},
    {"torch.float8_e5m2", DType::f8e5m2},
};

// "dumps/qwen2-1.5b.fx.txt" → "qwen2_1_5b"
std::string graph_name(std::string file) {
  file = file.substr(file.rfind('/') + 1);
  for (std::string_view tail : {".txt", ".py", ".fx", ".pt2"})
    if (file.ends_with(tail)) file.resize(file.size() - tail.size());
  for (char& c : file)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return file.empty() || std::isdigit(static_cast<unsigned char>(file[0])) ? "graph" + file : file;
}

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
      options_(options),
      function_(function),
      typed_(std::any_of(function.parameters.begin(), function.parameters.end(),
                         [](const Parameter& p) { return !p.type.empty() && !p.given; })),
      signature_(signature),
      table_(context->foreign.get()),
      graph_(context, graph_name(options.file)),
      symbols_(*context),
      sizes_(graph_, report_),
      effects_(report_),
      emitter_(graph_, symbols_, names_, sizes_, effects_, report_),
      versions_(emitter_, !options.no_writes),
      memory_(versions_.memory()),
      read_names_(function) {}

Result<FxImport> Converter::convert() {
  PW_TRY(read_inputs());
  find_getitems();
  const std::size_t statements = function_.statements.size();
  graph_.expect(statements, statements, 2 * statements);
  std::size_t read = 0;
  for (const Statement& s : function_.statements) {
    tell(options_.progress, "building", read++, function_.statements.size(), "calls");
    Status done = statement(s);
    if (done) continue;
    if (options_.computed_types && s.kind == Statement::Kind::assign)
      for (Diagnostic& error : done.error()) name_node(error, s.targets.front().text);
    std::move(done.error().begin(), done.error().end(), std::back_inserter(errors_));
    if (errors_.size() >= kMaxDiagnostics) break;
    for (const Expr& target : s.targets) env_[target.text];  // one mistake, one message
  }
  take_time();
  if (errors_.empty()) PW_TRY(write_back());
  if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
  return finished();
}

Result<FxImport> Converter::finished() {
  if (graph_.outputs().empty())
    return fail(function_.span, "PW0513", "the function returns no value");
  for (const auto& [name, value] : env_)
    if (!(value.own_name && !emitter_.renamed()) && value.kind == Value::Kind::tensor &&
        value.tensor.valid() && graph_.named(value.tensor) &&
        graph_.value_name(value.tensor) != name)
      report_.aliases.emplace(name, graph_.value_name(value.tensor));
  PW_TRY(check_given_types());
  erase_buffers();
  classify_inputs();
  note_assumed_writes();
  note_untyped();
  copy_undeclared_writes(graph_);
  if (!effects_.layer_names().empty()) graph_ = without_layer_names();
  settle_numbers(graph_);
  report_.nodes = graph_.node_count();
  return FxImport{graph_.compact(), std::move(report_)};
}

ValueId Converter::attribute_input(const std::string& name) {
  std::string word = name.substr(std::string_view("self.").size());
  std::replace(word.begin(), word.end(), '.', '_');
  if (const Value* known = env_.find(name)) return known->tensor;
  effects_.once();
  if (names_.contains(word)) names_.set_not_distinct();
  ValueId v = graph_.add_input(word, given_type(word), InputKind::weight);
  env_[name] = versions_.input_tensor(v);
  return v;
}

// Erases buffers that only received results, and the views that led to them.
void Converter::erase_buffers() {
  std::vector<ValueId> work(effects_.dropped().begin(), effects_.dropped().end());
  while (!work.empty()) {
    ValueId v = work.back();
    work.pop_back();
    NodeId n = graph_.producer(v);
    if (!n.valid() || !graph_.alive(n)) continue;
    bool unused = graph_.op_of(n).traits.view ||
                  effects_.is_maker(v);  // nodes that compute stay, read or not
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      unused = unused && graph_.unused(graph_.result(n, i));
    if (!unused) continue;
    for (ValueId operand : graph_.operands(n))
      if (operand.valid()) work.push_back(operand);
    graph_.erase(n);
  }
  OpId constant = context_.ops.find(Primitive::constant);
  for (NodeId n : graph_.order())  // left by a mapping that did not apply
    if (graph_.op(n) == constant && graph_.unused(graph_.result(n))) graph_.erase(n);
}

// ---- statements

// Finds statements that name the parts of tuples, `a = t[0]`; their names and types belong to the
// results.
void Converter::find_getitems() {
  for (const Parameter& p : function_.parameters) names_.bind(p.name);
  for (const Statement& s : function_.statements) {
    for (const Expr& target : s.targets) find_names(target);
    if (!functional_) find_functional(s.value);
    if (s.kind != Statement::Kind::assign || s.targets.size() != 1) continue;
    const Expr& v = s.value;
    const Expr *tuple = nullptr, *index = nullptr;
    if (v.kind == Expr::Kind::index && v.args.size() == 2) tuple = &v.args[0], index = &v.args[1];
    if (v.kind == Expr::Kind::call && v.text == "operator.getitem" && v.args.size() == 2)
      tuple = &v.args[0], index = &v.args[1];
    if (!tuple || tuple->kind != Expr::Kind::name) continue;
    const std::optional<int> at = item_of(tuple->text, *index);
    if (!at) continue;
    Wanted wanted{s.targets[0].text, Types::unknown(), s.type_span};
    if (!s.type.empty())
      if (TextResult<TypeId> type = parse_fx_type(context_, s.type))
        wanted.type = symbols_.renamed(*type);
    getitems_[tuple->text].emplace(*at, std::move(wanted));
  }
}

// Returns the number of an item. Items taken by key are numbered in order of first use.
std::optional<int> Converter::item_of(const std::string& tuple, const Expr& index) {
  if (index.kind == Expr::Kind::integer && index.integer >= 0 && index.integer <= kMaxItem)
    return static_cast<int>(index.integer);
  if (index.kind != Expr::Kind::string) return std::nullopt;
  std::vector<std::string>& keys = item_keys_[tuple];
  auto known = std::find(keys.begin(), keys.end(), index.text);
  if (known == keys.end()) known = keys.insert(known, index.text);
  const auto at = static_cast<int>(known - keys.begin());
  return at > kMaxItem ? std::nullopt : std::optional(at);
}

void Converter::find_functional(const Expr& e) {
  if (e.kind == Expr::Kind::name || e.kind == Expr::Kind::call)
    functional_ = functional_ || e.text.find("auto_functionalized") != std::string::npos;
  for (const Expr& arg : e.args) find_functional(arg);
}

Status Converter::statement(const Statement& s) {
  emitter_.set_group(s.group);
  if (!statement_key(s)) return convert_statement(s);
  bool known = false;
  const Repeat<Value>* same = repeat_of(known);
  if (same != nullptr &&
      (same->opaque.empty() || same->read == read_names_.contains(s.targets[0].text))) {
    hurry();
    repeat(*same, s);
    return {};
  }
  if (known) return convert_statement(s);
  Repeats<Value, Wanted>::Entry entry{repeats_.key, {}};
  const std::uint64_t hash = repeats_.hash;
  const Before before = now();
  emitter_.begin_statement();
  auto done = convert_statement(s);
  if (done) keep_repeat(s, std::move(entry), hash, before);
  return done;
}

Status Converter::convert_statement(const Statement& s) {
  take_time();
  if (s.kind == Statement::Kind::return_) return outputs(s.value);
  Site site{s.span, s.source, s.kind == Statement::Kind::assign, {}, {}};
  if (s.kind == Statement::Kind::assign) {
    site.result = {s.targets.front().text, Types::unknown(), s.type_span};
    if (auto it = getitems_.find(site.result.name); it != getitems_.end()) site.items = it->second;
    if (auto it = item_keys_.find(site.result.name); it != item_keys_.end()) site.keys = it->second;
  }
  bool symbolic = s.type.starts_with("Sym(") || s.type.empty() || is_word(s.type);
  if (!symbolic) {
    Result<TypeId> type = stated_type(s.type, s.type_span);
    if (!type) return forward(type);
    site.result.type = *type;
  }
  Result<Value> value = evaluate(s.value, site);
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
  if (!symbolic) take_strides(*value, s.type);
  value = as_stated(std::move(*value), s);
  if (!value) return forward(value);
  for (const Expr& target : s.targets)
    if (auto ok = assign(target, *value, site); !ok) return ok;
  return {};
}

Status Converter::outputs(const Expr& e) {
  Site site{e.span, "", true, {}, {}};
  Value value = PW_TRY(evaluate(e, site));
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
  const Value* returned = env_.find(e.text);
  if (returned == nullptr || returned->kind != Value::Kind::tensor) return;
  const ValueId value = memory_.tensors[memory_.now(returned->handle)].value;
  if (graph_.value_name(value) == e.text || graph_.is_input(value)) return;
  emitter_.set_renamed();
  const ValueId held = graph_.find_value(e.text);
  if (held.valid() && (graph_.is_input(held) || graph_.is_output(held))) return;
  if (held.valid()) graph_.rename(held, names_.fresh(e.text));
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

std::optional<Value> Converter::torch_word(const std::string& text) {
  Value out;
  if (auto it = kTorchDTypes.find(text); it != kTorchDTypes.end()) {
    out.kind = Value::Kind::dtype;
    out.dtype = it->second;
  } else if (text == "inf" || text == "math.inf" || text == "nan" || text == "math.nan") {
    out.kind = Value::Kind::real;
    out.real = text.ends_with("inf") ? std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
  } else if (text.starts_with("torch.") || text == "Ellipsis" || text == "device" ||
             text == "self") {
    out.kind = Value::Kind::other;
    out.text = text;
  } else {
    return std::nullopt;
  }
  return out;
}

Result<Value> Converter::evaluate_name(const Expr& e) {
  if (const Value* known = env_.find(e.text)) {
    Value out = *known;
    if (out.kind == Value::Kind::integer) out.dim = symbols_.merged(out.dim);
    return out;
  }
  if (std::optional<Value> word = torch_word(e.text)) return *word;
  if (e.text.starts_with("self.")) {
    attribute_input(e.text);
    return *env_.find(e.text);
  }
  std::vector<std::string> known;
  for (const auto& [name, value] : env_) known.push_back(name);
  std::sort(known.begin(), known.end());  // among equally near names, the first
  std::string near = nearest(e.text, known);
  return fail(
      e.span, "PW0509", "unknown name `" + e.text + "`",
      near.empty() ? "define the name before its first use" : "did you mean `" + near + "`?");
}

Result<Value> Converter::evaluate(const Expr& e, const Site& site) {
  Value out;
  switch (e.kind) {
    case Expr::Kind::name: return evaluate_name(e);
    case Expr::Kind::integer: return integer(context_.dims, e.integer);
    case Expr::Kind::real:
      out.kind = Value::Kind::real;
      out.real = e.real;
      return out;
    case Expr::Kind::string:
      out.kind = Value::Kind::string;
      out.text = e.text;
      return out;
    case Expr::Kind::boolean:
      out.kind = Value::Kind::boolean;
      out.boolean = e.integer != 0;
      return out;
    case Expr::Kind::none: return out;
    case Expr::Kind::list:
    case Expr::Kind::tuple:
      out.kind = Value::Kind::list;
      for (const Expr& item : e.args) {
        Result<Value> v = evaluate(item, {site.span, site.source, true, {}, {}});
        if (!v) return v;
        out.items.push_back(std::move(*v));
      }
      return out;
    case Expr::Kind::call: return evaluate_call(e, site);
    case Expr::Kind::index: return evaluate_index(e, site);
    case Expr::Kind::binary: return evaluate_binary(e, site);
    case Expr::Kind::slice:
      out.kind = Value::Kind::other;
      out.text = "slice";
      return out;
  }
  return out;
}

Result<Value> Converter::element(const Value& tuple, const Value& at, const Site& site) {
  std::optional<std::int64_t> index = as_int(context_.dims, at);
  if (tuple.kind == Value::Kind::list && index) {
    auto count = static_cast<std::int64_t>(tuple.items.size());
    if (*index < -count || *index >= count)
      return fail(site.span, "PW0512",
                  fmt::format("there is no result {}: the op has {}", *index, count));
    Value item = tuple.items[static_cast<std::size_t>(*index < 0 ? *index + count : *index)];
    PW_TRY(versions_.resolve(item, site));
    return item;
  }
  if (tuple.kind == Value::Kind::tensor) {
    Value x = tuple, position = at;
    for (Value* v : {&x, &position}) PW_TRY(versions_.resolve(*v, site));
    return subscript(x, position, site);
  }
  if (tuple.kind == Value::Kind::list) return part_of(tuple, at, site);
  return fail(site.span, "PW0512", "this value cannot be indexed");
}

Result<Value> Converter::evaluate_index(const Expr& e, const Site& site) {
  Result<Value> out = evaluate(e.args[0], {site.span, site.source, true, {}, {}});
  for (std::size_t i = 1; out && i < e.args.size(); ++i) {
    Result<Value> at = evaluate(e.args[i], {site.span, site.source, true, {}, {}});
    if (!at) return at;
    out = element(*out, *at, site);
  }
  return out;
}

Result<Value> Converter::evaluate_binary(const Expr& e, const Site& site) {
  Site inner{site.span, site.source, true, {}, {}};
  Result<Value> a = evaluate(e.args[0], inner), b = evaluate(e.args[1], inner);
  if (!a) return a;
  if (!b) return b;
  for (Value* v : {&*a, &*b}) PW_TRY(versions_.resolve(*v, inner));
  return infix(e.text, *a, *b, e.span, site);
}

Result<Value> Converter::evaluate_call(const Expr& e, const Site& site) {
  Site inner{site.span, site.source, true, {}, {}};
  Arguments arguments;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    Result<Value> v = evaluate(e.args[i], inner);
    if (!v) return v;
    const bool item = i == 0 && e.text == "operator.getitem" && v->kind == Value::Kind::list;
    if (!item) PW_TRY(versions_.resolve(*v, inner));
    if (i < e.positional())
      arguments.positional.push_back(std::move(*v));
    else
      arguments.keywords.emplace_back(e.keywords[i - e.positional()], std::move(*v));
  }
  if (e.text == "operator.getitem" && arguments.positional.size() == 2)
    return element(arguments.positional[0], arguments.positional[1], site);
  if (e.text == "torch.Size" && arguments.positional.size() == 1) return arguments.positional[0];
  if (e.text == "device" || e.text == "torch.device") {
    Value out;
    out.kind = Value::Kind::other;
    out.text = e.text;
    return out;
  }
  std::optional<Value> done = PW_TRY(python(e.text, arguments, site));
  if (done) return *done;
  return call(e.text, arguments, site);
}

// The graph without the inputs that were only the names of layers.
Graph Converter::without_layer_names() const {
  Graph out(context_ptr_, graph_.name);
  out.facts = graph_.facts;
  std::vector<ValueId> map(graph_.value_bound());
  for (ValueId v : graph_.inputs())
    if (!effects_.layer_names().contains(v) || !graph_.unused(v))
      map[v.index] = out.add_input(graph_.value_name(v), graph_.type(v), graph_.input_kind(v));
  for (NodeId n : graph_.order()) {
    NodeSpec spec;
    spec.op = graph_.op(n);
    spec.attributes = graph_.attributes(n);
    spec.group = graph_.group(n);
    spec.source = graph_.source(n);
    for (ValueId v : graph_.operands(n)) spec.operands.push_back(v.valid() ? map[v.index] : v);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      const ValueId v = graph_.result(n, i);
      spec.results.push_back({graph_.type(v), std::string(graph_.value_name(v))});
    }
    const NodeId copy = out.add_node(spec);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      map[graph_.result(n, i).index] = out.result(copy, i);
  }
  const std::size_t returned = graph_.outputs().size() - graph_.written_inputs().size();
  for (std::size_t i = 0; i < returned; ++i) out.add_output(map[graph_.outputs()[i].index]);
  for (std::size_t i = 0; i < graph_.written_inputs().size(); ++i)
    out.add_write(map[graph_.written_inputs()[i].index], map[graph_.outputs()[returned + i].index]);
  return out;
}

}  // namespace pw::fx
