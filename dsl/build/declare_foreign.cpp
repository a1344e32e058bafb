#include "dsl/build/declare_foreign.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "dsl/check/call.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/foreign.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr std::array<std::string_view, 5> kPlainKinds{"number", "int", "float", "bool", "str"};
constexpr std::string_view kAll = "=";  // bound by `= expression`

/// Returns `_` or `number` in the place of a type; empty for a type.
std::string_view word_of(const TypeExpr& type) {
  if (!type.any_shape || type.dtype.size() != 1 || type.dtype[0].kind != Expr::Kind::path)
    return {};
  const std::string& text = type.dtype[0].text;
  if (text == "_") return "_";
  const auto* kind = std::find(kPlainKinds.begin(), kPlainKinds.end(), text);
  return kind == kPlainKinds.end() ? std::string_view() : *kind;
}

std::optional<Binding> literal(Context& context, const Expr& expr) {
  if (expr.kind == Expr::Kind::none) return Absent{};
  if (expr.kind == Expr::Kind::path && !dtype_named(expr.text)) return std::nullopt;
  Result<Attribute> value = evaluate(context, nullptr, expr, {});
  if (!value) return std::nullopt;
  return Binding(std::move(*value));
}

class ForeignCheck {
 public:
  ForeignCheck(Context& context, const Program& program, const ast::ForeignItem& item,
               Diagnostics& out)
      : context_(context), program_(program), item_(item), out_(out) {}

  std::shared_ptr<const ForeignOp> run() {
    const std::size_t before = out_.size();
    op_->target = foreign_target(item_.target);
    op_->span = item_.name_span;
    op_->text = context_.sources.text(item_.span.source)
                    .substr(item_.span.begin, item_.span.end - item_.span.begin);
    op_->where = item_.where;
    op_->body = item_.body;
    if (op_->target.find('.') == std::string::npos)
      error(item_.name_span, "PW0260",
            in_ticks(item_.target) + " does not name the library of the op",
            "write its full name, as in `aten.relu`");
    for (const auto& parameter : item_.parameters) declare(parameter);
    for (const Expr& guard : item_.where) check_guard(guard);
    for (const Statement& statement : item_.body) check(statement);
    returns();
    check_written();
    check_used();
    if (out_.size() != before) return nullptr;
    return std::move(op_);
  }

 private:
  void error(Span span, std::string_view code, std::string message, std::string help = {}) {
    out_.push_back(error_at(span, code, std::move(message), std::move(help)));
  }

  void declare(const ast::ForeignItem::Parameter& parameter) {
    ForeignParameter p;
    p.span = parameter.span;
    p.mut = parameter.mut;
    p.out = parameter.out;
    for (const auto& [name, span] : parameter.names) {
      if (!names_.insert(name).second)
        error(span, "PW0261", in_ticks(name) + " is already an argument of this op",
              "give it another name");
      p.names.push_back(name);
    }
    known_.insert(p.names.front());
    if (parameter.type) {
      const std::string_view word = word_of(*parameter.type);
      p.ignored = word == "_";
      if (word.empty()) {
        p.type = parameter.type;
        visit_type(*parameter.type, [&](const Occurrence& o) {
          if (o.place != Place::function) known_.insert(std::string(o.name));
        });
      } else if (!p.ignored) {
        p.kind = word;
      }
      if (p.written() && !p.type)
        error(parameter.span, "PW0262", "an argument that is written must be a tensor",
              "write `mut " + p.names.front() + "`, or add its type after the name");
    }
    if (parameter.value) {
      p.default_value = literal(context_, *parameter.value);
      if (!p.default_value)
        error(parameter.value->span, "PW0217", "this is not a literal",
              "a default is a number, a string, true, false, a dtype, none, or a list of them");
    }
    op_->parameters.push_back(std::move(p));
  }

  void use(const Occurrence& o) {
    for (ForeignParameter& p : op_->parameters) {
      if (p.names.front() != o.name) continue;
      if (p.out && o.place != Place::property && !bound_.contains(o.name))
        error(o.span, "PW0263", in_ticks(o.name) + " is write-only, so it has no contents to read",
              "declare an argument that is read and written as `mut`; `x.dtype` and `x.shape` are "
              "known");
      if (p.ignored)
        error(o.span, "PW0264", in_ticks(o.name) + " is declared as ignored, but used here",
              "remove its `: _`");
      p.used = true;
    }
  }

  void check_guard(const Expr& guard) {
    visit_scalar(guard, Place::guard, [&](const Occurrence& o) {
      if (o.place == Place::function) {
        const auto& functions = known_functions();
        if (std::find(functions.begin(), functions.end(), o.name) == functions.end() &&
            !program_.externs.contains(o.name))
          error(o.span, "PW0271", "unknown function " + in_ticks(o.name),
                did_you_mean(o.name, functions));
        return;
      }
      name(o);
    });
  }

  void check(const Statement& statement) {
    visit_operand(statement.value, [&](const Occurrence& o) {
      if (o.place == Place::function) return;
      if (o.place == Place::callee) {
        const auto& functions = known_functions();  // `size(x, 0)` is a number
        if (!known_.contains(o.name) && !dtype_named(o.name) &&
            std::find(functions.begin(), functions.end(), o.name) == functions.end() &&
            !context_.ops.find(o.name).valid())
          out_.push_back(unknown_op(context_, o.name, o.span));
        return use(o);
      }
      name(o);
    });
    visit_calls(statement, [&](const Expr& call) {
      const OpId id = context_.ops.find(call.text);
      if (id.valid()) check_call(context_, context_.ops[id], call, Side::build, out_);
    });
    const Expr& value = statement.value;
    op_->op.clear();
    if (value.kind == Expr::Kind::negate) op_->op = "neg";
    if (value.kind == Expr::Kind::binary) op_->op = primitive_of_infix(value.text);
    if (value.kind == Expr::Kind::call) op_->op = value.text;
    const bool all = statement.binders.size() == 1 && statement.binders[0].name == kAll;
    if (const OpId id = context_.ops.find(op_->op); id.valid() && !all) {
      const bool spread = std::any_of(statement.binders.begin(), statement.binders.end(),
                                      [](const Binder& b) { return b.spread; });
      check_result_count(context_.ops[id], statement.binders.size(), spread, statement.span, out_);
    }
    for (const Binder& binder : statement.binders) bind(binder);
  }

  void name(const Occurrence& o) {
    if (!known_.contains(o.name) && !dtype_named(o.name)) {
      error(o.span, "PW0265", in_ticks(o.name) + " is not bound in this foreign op",
            did_you_mean(o.name, {known_.begin(), known_.end()}));
      known_.insert(std::string(o.name));  // report it once
    }
    use(o);
  }

  void bind(const Binder& binder) {
    if (binder.name == "_") return;
    const auto argument =
        std::find_if(op_->parameters.begin(), op_->parameters.end(),
                     [&](const ForeignParameter& p) { return p.names.front() == binder.name; });
    const bool read_only = argument != op_->parameters.end() && !argument->written();
    if (read_only || bound_.contains(binder.name))
      error(binder.span, "PW0266",
            in_ticks(binder.name) +
                (read_only ? " is an argument that is not written" : " is bound twice"),
            read_only ? "write `mut` or `out` before the argument, or rename the value"
                      : "rename one of them");
    bound_.insert(binder.name);
    known_.insert(binder.name);
  }

  void returns() {
    if (!item_.block) op_->returns = {std::string(kAll)};
    for (const auto& [name, span] : item_.returns) {
      if (!bound_.contains(name) && !known_.contains(name))
        error(span, "PW0267", "the body does not bind " + in_ticks(name) + ", which is returned",
              "add a statement `" + name + " = …`");
      op_->returns.push_back(name);
    }
    if (item_.block && op_->returns.empty() &&
        std::none_of(op_->parameters.begin(), op_->parameters.end(),
                     [](const ForeignParameter& p) { return p.written(); }))
      error(item_.name_span, "PW0267", "this op neither returns nor writes anything",
            "name the result, as in `-> y { y = … }`, or mark the arguments that it writes as "
            "`mut` or `out`");
  }

  void check_written() {
    for (const ForeignParameter& p : op_->parameters)
      if (p.written() && !bound_.contains(p.names.front()))
        error(p.span, "PW0268",
              "the body does not say what " + in_ticks(p.names.front()) + " holds afterwards",
              "add a statement `" + p.names.front() + " = …`");
  }

  void check_used() {
    for (const ForeignParameter& p : op_->parameters)
      if (!p.used && !p.ignored && !p.written() && !p.default_value)
        error(p.span, "PW0269", "nothing uses argument " + in_ticks(p.names.front()),
              "write `" + p.names.front() +
                  ": _` to ignore it, or `= …` after it to require one value");
  }

  Context& context_;
  const Program& program_;
  const ast::ForeignItem& item_;
  Diagnostics& out_;
  std::shared_ptr<ForeignOp> op_ = std::make_shared<ForeignOp>();
  std::set<std::string, std::less<>> names_, known_, bound_;
};

}  // namespace

void declare_foreign(Context& context, const Program& program, Diagnostics& out) {
  const std::size_t before = out.size();
  ForeignOps::Items items;
  for (const ast::ForeignItem* item : program.foreigns)
    if (auto op = ForeignCheck(context, program, *item, out).run()) items.push_back(std::move(op));
  if (items.empty() || out.size() != before) return;
  if (!context.foreign) context.foreign = std::make_shared<ForeignOps>();
  context.foreign->add(std::move(items));
}

}  // namespace pw
