#include "import/fx/evaluator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/type_text.hpp"

namespace pw::fx {

void Evaluator::add_attribute_input(const std::string& name) {
  std::string word = name.substr(std::string_view("self.").size());
  std::replace(word.begin(), word.end(), '.', '_');
  if (env_.contains(name)) return;
  effects_.once();
  if (names_.contains(word)) names_.set_not_distinct();
  ValueId v = graph_.add_input(word, inputs_.given_type(word), InputKind::weight);
  env_[name] = versions_.input_tensor(v);
}

Result<Value> Evaluator::evaluate_name(const Expr& e) {
  if (const Value* known = env_.find(e.text)) {
    Value out = *known;
    if (out.kind == Value::Kind::integer) out.dim = symbols_.merged(out.dim);
    return out;
  }
  if (std::optional<Value> word = torch_word(e.text)) return *word;
  if (e.text.starts_with("self.")) {
    add_attribute_input(e.text);
    return *env_.find(e.text);
  }
  std::vector<std::string> known;
  for (const auto& [name, value] : env_) known.push_back(name);
  std::ranges::sort(known);  // among equally near names, the first
  std::string near = nearest(e.text, known);
  return fail(
      e.span, "PW0509", "unknown name `" + e.text + "`",
      near.empty() ? "define the name before its first use" : "did you mean `" + near + "`?");
}

Result<Value> Evaluator::evaluate(const Expr& e, const Site& site) {
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

Result<Value> Evaluator::element(const Value& tuple, const Value& at, const Site& site) {
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
    return subscripts_.get(x, position, site);
  }
  if (tuple.kind == Value::Kind::list) return part_of(tuple, at, site);
  return fail(site.span, "PW0512", "this value cannot be indexed");
}

Result<Value> Evaluator::evaluate_index(const Expr& e, const Site& site) {
  Result<Value> out = evaluate(e.args[0], {site.span, site.source, true, {}, {}});
  for (std::size_t i = 1; out && i < e.args.size(); ++i) {
    Result<Value> at = evaluate(e.args[i], {site.span, site.source, true, {}, {}});
    if (!at) return at;
    out = element(*out, *at, site);
  }
  return out;
}

Result<Value> Evaluator::evaluate_binary(const Expr& e, const Site& site) {
  Site inner{site.span, site.source, true, {}, {}};
  Result<Value> a = evaluate(e.args[0], inner), b = evaluate(e.args[1], inner);
  if (!a) return a;
  if (!b) return b;
  for (Value* v : {&*a, &*b}) PW_TRY(versions_.resolve(*v, inner));
  return python_.infix(e.text, *a, *b, e.span, site);
}

Result<Value> Evaluator::evaluate_call(const Expr& e, const Site& site) {
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
  std::optional<Value> done = PW_TRY(python_.call(e.text, arguments, site));
  if (done) return *done;
  return calls_.call(e.text, arguments, site);
}

// size[1:] and d["key"].
Result<Value> Evaluator::part_of(const Value& list, const Value& at, const Site& site) {
  if (at.kind == Value::Kind::string)
    for (std::size_t i = 0; i < list.keys.size(); ++i)
      if (list.keys[i] == at.text) return list.items[i];
  const auto count = static_cast<std::int64_t>(list.items.size());
  auto bound = [&](const Value& v, std::int64_t left_out) {
    const std::int64_t i = as_int(context_.dims, v).value_or(left_out);
    return std::clamp<std::int64_t>(i < 0 ? i + count : i, 0, count);
  };
  if (at.kind != Value::Kind::other || at.text != "slice" || at.items.size() != 3 ||
      as_int(context_.dims, at.items[2]).value_or(1) != 1)
    return fail(site.span, "PW0512", "this value cannot be indexed");
  Value out = list;
  const std::int64_t from = bound(at.items[0], 0), to = bound(at.items[1], count);
  out.items.clear();
  for (std::int64_t i = from; i < to; ++i)
    out.items.push_back(list.items[static_cast<std::size_t>(i)]);
  return out;
}

}  // namespace pw::fx
