#include "dsl/build/row_lists.hpp"

#include <algorithm>
#include <map>

#include "dsl/editing/rename.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

const Op* op_of(const Context& context, const Expr& call) {
  if (call.kind != Expr::Kind::call) return nullptr;
  const OpId id = context.ops.find(call.text);
  return id.valid() && !context.ops[id].imported ? &context.ops[id] : nullptr;
}

template <class Visit>
void each_left_statement(ast::Rule& rule, const Visit& visit) {
  for (Statement& s : rule.body.statements) visit(s);
  for (ast::Clause& clause : rule.body.clauses)
    for (Statement& s : clause.statements) visit(s);
}

/// Names of the elements of lists, by list.
class ListNames {
 public:
  ListNames(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  void find(const Statement& s) {
    const Op* op = op_of(context_, s.value);
    if (op != nullptr && (op->results.empty() || !op->results.back().variadic)) {
      for (const Binder& b : s.binders)
        if (b.spread) note(b.name, b.span, op->results.size(), s.binders.size());
    }
    find(s.value);
  }

  void put(Statement& s) const {
    std::vector<Binder> binders;
    for (Binder& b : s.binders) {
      const auto names = b.spread ? elements_.find(b.name) : elements_.end();
      if (names == elements_.end()) {
        binders.push_back(std::move(b));
      } else {
        for (const std::string& name : names->second)
          binders.push_back({name, b.span, false, b.type});
      }
    }
    s.binders = std::move(binders);
    put(s.value);
  }

 private:
  static bool is_list(const Expr& arg) {
    return arg.kind == Expr::Kind::spread && arg.args.front().kind == Expr::Kind::path;
  }

  void find(const Expr& e) {
    const Op* op = op_of(context_, e);
    const bool fixed = op != nullptr && (op->operands.empty() || !op->operands.back().variadic);
    for (const Expr& arg : e.args) {
      if (fixed && is_list(arg))
        note(arg.args.front().text, arg.span, op->operands.size(), e.args.size());
      find(arg);
    }
  }

  /// Records the length of a list: with `written - 1` other names it takes the remaining `places`.
  void note(const std::string& list, Span span, std::size_t places, std::size_t written) {
    const std::size_t count = places + 1 < written ? 0 : places + 1 - written;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.push_back(count == 1 || list == "_" ? list : list + "#" + std::to_string(i));
    const auto [known, fresh] = elements_.emplace(list, names);
    if (!fresh && known->second.size() != count)
      out_.push_back(error_at(span, "PW0292",
                              in_ticks(list) + " stands for " + std::to_string(count) +
                                  " values here, and for " + std::to_string(known->second.size()) +
                                  " elsewhere"));
  }

  void put(Expr& e) const {
    std::vector<Expr> args;
    for (Expr& arg : e.args) {
      const auto names = e.kind == Expr::Kind::call && is_list(arg)
                             ? elements_.find(arg.args.front().text)
                             : elements_.end();
      if (names == elements_.end()) {
        put(arg);
        args.push_back(std::move(arg));
      } else {
        for (const std::string& name : names->second) {
          Expr element = arg.args.front();
          element.text = name;
          args.push_back(std::move(element));
        }
      }
    }
    e.args = std::move(args);
  }

  const Context& context_;
  Diagnostics& out_;
  std::map<std::string, std::vector<std::string>, std::less<>> elements_;
};

void collect_calls(Expr& e, std::vector<Expr*>& out) {
  if (e.kind == Expr::Kind::call) out.push_back(&e);
  for (Expr& arg : e.args) collect_calls(arg, out);
}

bool writes(const Expr& call, std::string_view attribute) {
  return std::any_of(call.attributes.begin(), call.attributes.end(),
                     [&](const AttributeArg& a) { return a.name == attribute; });
}

void write(Expr& call, const std::string& attribute, const std::string& variable) {
  call.attributes.push_back({attribute, call.span, {path_expr(variable, call.span)}});
}

}  // namespace

void name_list_elements(const Context& context, ast::Rule& rule, Diagnostics& out) {
  ListNames names(context, out);
  each_left_statement(rule, [&](const Statement& s) { names.find(s); });
  each_left_statement(rule, [&](Statement& s) { names.put(s); });
  for (Statement& s : rule.replacement) names.put(s);
}

void forward_attributes(const Context& context, ast::Rule& rule, Diagnostics& out) {
  std::vector<Expr*> left, right, sources;
  each_left_statement(rule, [&](Statement& s) { collect_calls(s.value, left); });
  for (Statement& s : rule.replacement) collect_calls(s.value, right);
  const auto only_right = [&](const Expr* call) {
    return call->open && op_of(context, *call) != nullptr &&
           std::none_of(left.begin(), left.end(),
                        [&](const Expr* other) { return other->text == call->text; });
  };
  std::erase_if(right, [&](const Expr* call) { return !only_right(call); });
  for (Expr* call : left)
    if (call->open && op_of(context, *call) != nullptr) sources.push_back(call);
  if (right.empty() || sources.size() != 1) return;
  Expr& source = *sources.front();
  for (const AttributeDecl& decl : op_of(context, source)->attributes) {
    if (writes(source, decl.name)) continue;
    for (Expr* call : right) {
      const Op& op = *op_of(context, *call);
      if (op.attribute(decl.name) != nullptr && !writes(*call, decl.name)) {
        write(*call, decl.name, decl.name + "#");
        continue;
      }
      out.push_back(error_at(call->span, "PW0278",
                             "`..` cannot copy " + in_ticks(decl.name) + " of " +
                                 in_ticks(source.text) + " in " + in_ticks(op.name),
                             "declare that attribute, or match a value of it on the left"));
    }
    write(source, decl.name, decl.name + "#");
  }
  source.open = false;
  for (Expr* call : right) call->open = false;
}

}  // namespace pw
