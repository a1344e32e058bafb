#include <algorithm>
#include <map>
#include <set>

#include "dsl/build/declare_op.hpp"
#include "dsl/check/call.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class BodyCheck {
 public:
  BodyCheck(const Context& context, const Op& op, Diagnostics& out)
      : context_(context), op_(op), out_(out) {}

  void run() {
    bind_signature();
    for (const Statement& statement : op_.body) check(statement);
    for (const ResultDecl& result : op_.results) {
      if (!result.name.empty() && !bound_here_.contains(result.name))
        out_.push_back(error_at(result.span, "PW0222",
                                "result " + in_ticks(result.name) + " is not bound by the body",
                                "add a statement `" + result.name + " = …`"));
    }
  }

 private:
  void bind_signature() {
    for (const OperandDecl& operand : op_.operands) {
      known_.insert(operand.name);
      if (operand.type) bind_type(*operand.type);
    }
    for (const AttributeDecl& attribute : op_.attributes) known_.insert(attribute.name);
  }

  void bind_type(const TypeExpr& type) {
    visit_type(type, [&](const Occurrence& o) {
      if (o.place != Place::function) known_.insert(std::string(o.name));
    });
  }

  void check(const Statement& statement) {
    visit_operand(statement.value, [&](const Occurrence& o) { check_name(o); });
    visit_calls(statement, [&](const Expr& call) {
      const OpId id = context_.ops.find(call.text);
      if (id.valid()) check_call(context_, context_.ops[id], call, Side::build, out_);
    });
    check_results(statement);
    for (const Binder& binder : statement.binders) bind(binder);
  }

  void check_results(const Statement& statement) {
    if (statement.value.kind != Expr::Kind::call) return;
    const OpId id = context_.ops.find(statement.value.text);
    if (!id.valid()) return;
    const bool spread = std::any_of(statement.binders.begin(), statement.binders.end(),
                                    [](const Binder& b) { return b.spread; });
    check_result_count(context_.ops[id], statement.binders.size(), spread, statement.span, out_);
  }

  void check_name(const Occurrence& o) {
    if (o.place == Place::function) return;
    if (known_.contains(o.name) || dtype_named(o.name)) return;
    if (o.place == Place::callee) {
      if (!context_.ops.find(o.name).valid()) out_.push_back(unknown_op(context_, o.name, o.span));
      return;
    }
    out_.push_back(error_at(o.span, "PW0221",
                            in_ticks(o.name) + " is not bound in the body of " + in_ticks(op_.name),
                            did_you_mean_name(o.name, {known_.begin(), known_.end()})));
    known_.insert(std::string(o.name));  // report it once
  }

  void bind(const Binder& binder) {
    if (binder.name == "_") return;
    if (bound_here_.contains(binder.name) || op_.operand_index(binder.name) >= 0)
      out_.push_back(error_at(binder.span, "PW0223", in_ticks(binder.name) + " is bound twice",
                              "rename one of them"));
    bound_here_.insert(binder.name);
    known_.insert(binder.name);
  }

  const Context& context_;
  const Op& op_;
  Diagnostics& out_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> bound_here_;
};

/// Depth-first search over "the body of a calls b"; reaching an open op again closes a cycle.
class RecursionCheck {
 public:
  RecursionCheck(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  void visit(OpId id) {
    auto [it, fresh] = state_.emplace(id, State::open);
    if (!fresh) {
      if (it->second == State::open) report(id);
      return;
    }
    for (OpId callee : callees(id)) visit(callee);
    state_[id] = State::done;
  }

 private:
  enum class State : std::uint8_t { open, done };

  [[nodiscard]] std::vector<OpId> callees(OpId id) const {
    std::vector<OpId> result;
    for (const Statement& statement : context_.ops[id].body) {
      visit_calls(statement, [&](const Expr& call) {
        if (OpId callee = context_.ops.find(call.text); callee.valid()) result.push_back(callee);
      });
    }
    return result;
  }

  void report(OpId id) {
    out_.push_back(
        error_at(context_.ops[id].span, "PW0224",
                 "the body of " + in_ticks(context_.ops[id].name) + " calls itself",
                 "define an op by simpler ones; remove one of the bodies to make that op opaque"));
  }

  const Context& context_;
  Diagnostics& out_;
  std::map<OpId, State> state_;
};

}  // namespace

void check_bodies(const Context& context, const std::vector<OpId>& ops, Diagnostics& out) {
  std::set<OpId> unsound;
  for (OpId id : ops) {
    const std::size_t before = out.size();
    if (context.ops[id].has_body()) check_op_body(context, context.ops[id], out);
    if (out.size() != before) unsound.insert(id);
  }
  const std::size_t before = out.size();
  check_op_recursion(context, ops, out);
  if (out.size() == before) check_body_types(context, ops, unsound, out);
}

void check_op_body(const Context& context, const Op& op, Diagnostics& out) {
  BodyCheck(context, op, out).run();
}

void check_op_recursion(const Context& context, const std::vector<OpId>& ops, Diagnostics& out) {
  RecursionCheck check(context, out);
  for (OpId id : ops) check.visit(id);
}

}  // namespace pw
