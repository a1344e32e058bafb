// Exports import_fx and the part of Converter that reads statements, names and inputs.
#include "graph/import/fx_convert.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

#include "graph/type_text.hpp"

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

bool is_word(std::string_view text) {
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), word);
}

// "dumps/qwen2-1.5b.fx.txt" → "qwen2_1_5b"
std::string graph_name(std::string file) {
  file = file.substr(file.rfind('/') + 1);
  for (std::string_view tail : {".txt", ".py", ".fx"})
    if (file.ends_with(tail)) file.resize(file.size() - tail.size());
  for (char& c : file)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return file.empty() || std::isdigit(static_cast<unsigned char>(file[0])) ? "graph" + file : file;
}

std::string_view head(std::string_view path) { return path.substr(0, path.find('.')); }

}  // namespace

Converter::Converter(const ContextPtr& context, const FxOptions& options, const Function& function)
    : context_ptr_(context),
      context_(*context),
      options_(options),
      function_(function),
      table_(context->foreign.get()),
      graph_(context, graph_name(options.file)),
      symbols_(*context) {}

Result<FxImport> Converter::convert() {
  find_getitems();
  if (auto ok = read_inputs(); !ok) return forward(ok);
  for (const Statement& s : function_.statements) {
    Result<std::monostate> done = statement(s);
    if (done) continue;
    std::move(done.error().begin(), done.error().end(), std::back_inserter(errors_));
    if (errors_.size() >= kMaxDiagnostics) break;
    for (const Expr& target : s.targets)
      env_.emplace(target.text, Value());  // one mistake, one message
  }
  if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
  if (graph_.outputs().empty())
    return fail(function_.span, "PW0513", "the function returns no value");
  erase_buffers();
  classify_inputs();
  report_.nodes = graph_.node_count();
  return FxImport{graph_.compact(), std::move(report_)};
}

Result<TypeId> Converter::stated_type(const std::string& text, Span span) {
  TextResult<TypeId> type = parse_fx_type(context_, text);
  if (type) return *type;
  auto at = static_cast<std::uint32_t>(
      std::min<std::size_t>(span.begin + type.error().offset, span.end > 0 ? span.end - 1 : 0));
  return fail(Span{span.source, at, at + 1}, "PW0505", type.error().message, type.error().help);
}

// ---- inputs and symbols

Result<std::monostate> Converter::read_symbols() {
  for (const auto& [name, places] : options_.symbols) {
    std::string place = "--symbol " + name;
    if (!is_word(name) || dtype_named(name))
      return fail(error_in(place, "PW0506", "`" + name + "` cannot name a symbol",
                           "a symbol is a word, such as n"));
    if (symbols_.counts().contains(name))
      return fail(error_in(place, "PW0506", "the symbol `" + name + "` is given twice"));
    std::optional<std::int64_t> count;
    for (const auto& [input, axis] : places) {
      auto parameter =
          std::find_if(function_.parameters.begin(), function_.parameters.end(),
                       [&, wanted = input](const Parameter& p) { return p.name == wanted; });
      if (parameter == function_.parameters.end()) {
        std::vector<std::string> names;
        for (const Parameter& p : function_.parameters) names.push_back(p.name);
        std::string near = nearest(input, names);
        return fail(error_in(place, "PW0506", "there is no input `" + input + "`",
                             near.empty() ? "" : "did you mean `" + near + "`?"));
      }
      Result<TypeId> type = stated_type(parameter->type, parameter->type_span);
      if (!type) return forward(type);
      std::size_t rank = *type == Types::unknown() ? 0 : context_.types[*type].shape.size();
      if (axis < 0 || static_cast<std::size_t>(axis) >= rank)
        return fail(error_in(place, "PW0506",
                             fmt::format("`{}` has type {}, which has no dim {}", input,
                                         context_.types.print(*type), axis)));
      std::optional<std::int64_t> value =
          context_.dims.value(context_.types[*type].shape[static_cast<std::size_t>(axis)]);
      if (!value || *value < 1)
        return fail(error_in(place, "PW0506",
                             fmt::format("dim {} of `{}` is not a positive count", axis, input)));
      if (count && count != value)
        return fail(error_in(
            place, "PW0506",
            fmt::format("dim {} of `{}` is {}, but another is {}", axis, input, *value, *count),
            "all dims of one symbol have one count"));
      count = value;
    }
    if (!count)
      return fail(error_in(place, "PW0506", "the symbol `" + name + "` stands for no dim",
                           "write n=arg0_1.0,arg6_1.0"));
    symbols_.add(name, *count);
    SymbolFact fact;
    fact.min = std::min(options_.symbol_min, *count);
    fact.max = *count;
    if (graph_.facts.tokens().empty()) fact.role = "tokens";
    graph_.facts.symbols[name] = fact;
  }
  return std::monostate();
}

Result<std::monostate> Converter::read_inputs() {
  if (auto ok = read_symbols(); !ok) return ok;
  std::string guess;  // of the tokens symbol: the leading dim of the first list of integers that
                      // has a symbolic one
  for (const Parameter& p : function_.parameters) {
    if (env_.contains(p.name)) return fail(p.span, "PW0507", "a second input `" + p.name + "`");
    constexpr std::string_view kSym = "Sym(";
    if (p.type.starts_with(kSym) && p.type.ends_with(")")) {
      TextResult<DimId> dim =
          parse_dim(context_.dims,
                    std::string_view(p.type).substr(kSym.size(), p.type.size() - kSym.size() - 1));
      if (!dim) return fail(p.type_span, "PW0505", dim.error().message, dim.error().help);
      Value value = integer(0);
      value.dim = *dim;
      env_[p.name] = value;
      continue;
    }
    TypeId type = Types::unknown();
    if (!p.type.empty()) {
      Result<TypeId> stated = stated_type(p.type, p.type_span);
      if (!stated) return forward(stated);
      type = *stated;
    }
    if (type != Types::unknown()) {
      Type changed = context_.types[type];
      for (const auto& [symbol, places] : options_.symbols)
        for (const auto& [input, axis] : places)
          if (input == p.name)
            changed.shape[static_cast<std::size_t>(axis)] = context_.dims.symbol(symbol);
      type = context_.types.get(changed.dtype, changed.shape);
      for (DimId dim : changed.shape)
        for (const std::string& s : context_.dims.symbols(dim))
          if (!graph_.facts.find(s))
            graph_.facts.symbols[s] = SymbolFact{options_.symbol_min, options_.symbol_max, 1, ""};
      if (guess.empty() && changed.shape.size() == 1 && is_integer(changed.dtype) &&
          context_.dims.is_symbol(changed.shape[0]))
        guess = context_.dims.print(changed.shape[0]);
    }
    env_[p.name] = tensor(graph_.add_input(p.name, type, InputKind::input));
  }
  if (graph_.facts.tokens().empty() && !graph_.facts.symbols.empty()) {
    if (guess.empty() && graph_.facts.symbols.size() == 1)
      guess = graph_.facts.symbols.begin()->first;
    if (!guess.empty()) graph_.facts.symbols[guess].role = "tokens";
  }
  return std::monostate();
}

ValueId Converter::attribute_input(const std::string& name) {
  std::string word = name.substr(std::string_view("self.").size());
  std::replace(word.begin(), word.end(), '.', '_');
  if (auto it = env_.find(name); it != env_.end()) return it->second.tensor;
  ValueId v = graph_.add_input(word, Types::unknown(), InputKind::weight);
  env_[name] = tensor(v);
  return v;
}

// What the dump does not say: which inputs are weights. In this order:
// read as a rotary table: buffer · symbolic dims, or not floating: input · the leading dims of a
// batch, which is an integer input of rank 2 or more: input · returned and otherwise unread: buffer
// · else: weight.
void Converter::classify_inputs() {
  std::vector<Shape> batches;
  for (ValueId v : graph_.inputs())
    if (const Type* t = type_of(v); t && !is_float(t->dtype) && t->shape.size() >= 2)
      batches.push_back(t->shape);
  for (ValueId v : graph_.inputs()) {
    const Type* t = type_of(v);
    InputKind kind = InputKind::weight;
    if (rope_caches_.contains(v)) {
      kind = InputKind::buffer;
    } else if (!t) {
      kind = graph_.input_kind(v);
    } else {
      auto symbolic = [&](DimId d) { return !context_.dims.value(d); };
      auto leads = [&](const Shape& s) {
        return t->shape.size() >= s.size() && std::equal(s.begin(), s.end(), t->shape.begin());
      };
      if (!is_float(t->dtype) || std::any_of(t->shape.begin(), t->shape.end(), symbolic) ||
          std::any_of(batches.begin(), batches.end(), leads))
        kind = InputKind::input;
      else if (graph_.output_count(v) > 0 && graph_.use_count(v) == 0)
        kind = InputKind::buffer;
    }
    graph_.set_input_kind(v, kind);
  }
}

// Buffers that only ever received results, and the views that led to them.
void Converter::erase_buffers() {
  std::vector<ValueId> work(dropped_.begin(), dropped_.end());
  while (!work.empty()) {
    ValueId v = work.back();
    work.pop_back();
    NodeId n = graph_.producer(v);
    if (!n.valid() || !graph_.alive(n)) continue;
    bool unused =
        graph_.op_of(n).traits.view || makers_.contains(v);  // what computes stays, read or not
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      unused = unused && graph_.unused(graph_.result(n, i));
    if (!unused) continue;
    for (ValueId operand : graph_.operands(n))
      if (operand.valid()) work.push_back(operand);
    graph_.erase(n);
  }
  OpId constant = context_.ops.find("constant");
  for (NodeId n : graph_.order())  // left by a mapping that did not apply
    if (graph_.op(n) == constant && graph_.unused(graph_.result(n))) graph_.erase(n);
}

// ---- statements

// Parts of tuples are named by statements of their own, `a = t[0]`; their names and types belong to
// the results.
void Converter::find_getitems() {
  for (const Parameter& p : function_.parameters) names_.insert(p.name);
  for (const Statement& s : function_.statements) {
    for (const Expr& target : s.targets) names_.insert(target.text);
    if (s.kind != Statement::Kind::assign || s.targets.size() != 1) continue;
    const Expr& v = s.value;
    const Expr *tuple = nullptr, *index = nullptr;
    if (v.kind == Expr::Kind::index && v.args.size() == 2) tuple = &v.args[0], index = &v.args[1];
    if (v.kind == Expr::Kind::call && v.text == "operator.getitem" && v.args.size() == 2)
      tuple = &v.args[0], index = &v.args[1];
    if (!tuple || tuple->kind != Expr::Kind::name || index->kind != Expr::Kind::integer ||
        index->integer < 0 || index->integer > kMaxItem)
      continue;
    Wanted wanted{s.targets[0].text, Types::unknown(), s.type_span};
    if (!s.type.empty())
      if (TextResult<TypeId> type = parse_fx_type(context_, s.type)) wanted.type = *type;
    getitems_[tuple->text].emplace(static_cast<int>(index->integer), std::move(wanted));
  }
}

Result<std::monostate> Converter::statement(const Statement& s) {
  if (s.kind == Statement::Kind::return_) return outputs(s.value);
  Site site{s.span, s.source, s.kind == Statement::Kind::assign, {}, {}};
  if (s.kind == Statement::Kind::assign) {
    for (const Expr& target : s.targets)
      if (target.kind != Expr::Kind::name || !is_word(target.text))
        return fail(target.span, "PW0508", "only a name can be assigned to here",
                    "item assignment belongs to Dynamo's level; dump the graph after AOT autograd");
    site.result = {s.targets.front().text, Types::unknown(), s.type_span};
    if (auto it = getitems_.find(site.result.name); it != getitems_.end()) site.items = it->second;
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
    // An attribute of the module has no type; a plain copy of it, or the name it is given here,
    // may.
    ValueId v = value->tensor;
    NodeId producer = graph_.producer(v);
    if (producer.valid() && graph_.op_of(producer).name == "detach")
      v = graph_.operand(producer, 0);
    if (graph_.is_input(v) && !type_of(v)) graph_.set_type(v, site.result.type);
  }
  for (const Expr& target : s.targets) env_[target.text] = *value;
  return std::monostate();
}

Result<std::monostate> Converter::outputs(const Expr& e) {
  Site site{e.span, "", true, {}, {}};
  Result<Value> value = evaluate(e, site);
  if (!value) return forward(value);
  std::vector<Value> work = {*value};
  while (!work.empty()) {
    Value v = std::move(work.back());
    work.pop_back();
    if (v.kind == Value::Kind::list) work.insert(work.end(), v.items.rbegin(), v.items.rend());
    if (v.kind == Value::Kind::tensor) graph_.add_output(v.tensor);
  }
  return std::monostate();
}

Result<Value> Converter::evaluate_name(const Expr& e) {
  if (auto it = env_.find(e.text); it != env_.end()) return it->second;
  Value out;
  if (auto it = kTorchDTypes.find(e.text); it != kTorchDTypes.end()) {
    out.kind = Value::Kind::dtype;
    out.dtype = it->second;
    return out;
  }
  if (e.text == "inf" || e.text == "math.inf" || e.text == "nan" || e.text == "math.nan") {
    out.kind = Value::Kind::real;
    out.real = e.text.ends_with("inf") ? std::numeric_limits<double>::infinity()
                                       : std::numeric_limits<double>::quiet_NaN();
    return out;
  }
  if (e.text.starts_with("self.")) return tensor(attribute_input(e.text));
  if (e.text.starts_with("torch.") || e.text == "Ellipsis" || e.text == "device") {
    out.kind = Value::Kind::other;
    out.text = e.text;
    return out;
  }
  std::vector<std::string> known;
  for (const auto& [name, value] : env_) known.push_back(name);
  std::string near = nearest(e.text, known);
  return fail(e.span, "PW0509", "unknown name `" + e.text + "`",
              near.empty() ? "names are defined above their use" : "did you mean `" + near + "`?");
}

Result<Value> Converter::evaluate(const Expr& e, const Site& site) {
  Value out;
  switch (e.kind) {
    case Expr::Kind::name: return evaluate_name(e);
    case Expr::Kind::integer: return integer(e.integer);
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
  std::optional<std::int64_t> index = as_int(at);
  if (tuple.kind == Value::Kind::list && index) {
    auto count = static_cast<std::int64_t>(tuple.items.size());
    if (*index < -count || *index >= count)
      return fail(site.span, "PW0512",
                  fmt::format("there is no item {}: the op has {}", *index, count));
    return tuple.items[static_cast<std::size_t>(*index < 0 ? *index + count : *index)];
  }
  if (tuple.kind == Value::Kind::tensor) {
    return opaque("getitem", {{tuple, at}, {}}, site);
  }
  return fail(site.span, "PW0512", "this cannot be indexed");
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
  Dims& dims = context_.dims;
  if (a->kind == Value::Kind::integer && b->kind == Value::Kind::integer) {
    DimId d;
    if (e.text == "+") d = dims.add(a->dim, b->dim);
    if (e.text == "-") d = dims.sub(a->dim, b->dim);
    if (e.text == "*") d = dims.mul(a->dim, b->dim);
    if (e.text == "//") d = dims.div(a->dim, b->dim);
    if (e.text == "%") d = dims.mod(a->dim, b->dim);
    if (!d.valid()) return fail(e.span, "PW0512", "`" + e.text + "` of these numbers is not a dim");
    Value out = integer(0);
    out.dim = d;
    return out;
  }
  static const std::map<std::string_view, std::string_view> kTargets = {
      {"+", "aten.add.Tensor"},         {"-", "aten.sub.Tensor"},
      {"*", "aten.mul.Tensor"},         {"/", "aten.div.Tensor"},
      {"**", "aten.pow.Tensor_Scalar"}, {"==", "aten.eq.Tensor"},
      {"!=", "aten.ne.Tensor"},         {"<", "aten.lt.Tensor"},
      {"<=", "aten.le.Tensor"},         {">", "aten.gt.Tensor"},
      {">=", "aten.ge.Tensor"},         {"&", "aten.bitwise_and.Tensor"},
      {"|", "aten.bitwise_or.Tensor"}};
  auto it = kTargets.find(e.text);
  if (it == kTargets.end() || (a->kind != Value::Kind::tensor && b->kind != Value::Kind::tensor))
    return fail(e.span, "PW0512", "`" + e.text + "` cannot be applied here");
  return call(it->second, {{*a, *b}, {}}, site);
}

Result<Value> Converter::evaluate_call(const Expr& e, const Site& site) {
  Site inner{site.span, site.source, true, {}, {}};
  Arguments arguments;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    Result<Value> v = evaluate(e.args[i], inner);
    if (!v) return v;
    if (i < e.positional())
      arguments.positional.push_back(std::move(*v));
    else
      arguments.keywords.emplace_back(e.keywords[i - e.positional()], std::move(*v));
  }
  if (e.text == "operator.getitem" && arguments.positional.size() == 2)
    return element(arguments.positional[0], arguments.positional[1], site);
  if (e.text == "torch.Size" && arguments.positional.size() == 1) return arguments.positional[0];
  if (e.text == "device" || e.text == "slice" || e.text == "torch.device") {
    Value out;
    out.kind = Value::Kind::other;
    out.text = e.text;
    return out;
  }
  if (auto it = env_.find(head(e.text)); it != env_.end() && head(e.text) != e.text)
    return fail(e.span, "PW0508", "a method call belongs to Dynamo's level",
                "dump the graph after AOT autograd");
  return call(e.text, arguments, site);
}

}  // namespace pw::fx

namespace pw {

Result<FxImport> import_fx(const ContextPtr& context, std::string_view text,
                           const FxOptions& options) {
  SourceId source = context->sources.add(options.file.empty() ? "<fx>" : options.file,
                                         std::string(text.substr(0, fx::kMaxText + 1)));
  Result<fx::Function> function = fx::parse(context->sources.text(source), source);
  if (!function) return forward(function);
  return fx::Converter(context, options, *function).convert();
}

}  // namespace pw
