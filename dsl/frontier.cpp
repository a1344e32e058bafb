#include <algorithm>
#include <numeric>

#include "dsl/build/inline_pattern.hpp"
#include "dsl/build/patterns.hpp"
#include "dsl/rule_stage.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

/// Partition of statements by shared names, directly or through others.
class Clusters {
 public:
  explicit Clusters(const std::vector<Statement>& statements) : parent_(statements.size()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    std::map<std::string, std::size_t> first;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      visit_statement(statements[i], [&](const Occurrence& o) {
        if (o.name.empty() || o.name == "_") return;
        if (o.place != Place::binder && o.place != Place::operand) return;
        const auto [it, fresh] = first.emplace(std::string(o.name), i);
        if (!fresh) parent_[root(i)] = root(it->second);
      });
    }
  }
  [[nodiscard]] std::size_t root(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }

 private:
  std::vector<std::size_t> parent_;
};

/// Substitution of free values for calls that leave a choice.
class Skeleton {
 public:
  explicit Skeleton(const Program& program) : program_(program) {}

  ast::Rule of(ast::Rule rule) {
    resolve_aliases(rule);
    collect(rule);
    keep_around_open_calls();
    rule.body.clauses.clear();
    rule.body.statements = std::move(statements_);
    rule.replacement.clear();
    return rule;
  }

 private:
  void collect(ast::Rule& rule) {
    std::vector<Statement*> all;
    for (Statement& s : rule.body.statements) all.push_back(&s);
    for (ast::Clause& clause : rule.body.clauses) {
      if (clause.kind != ast::Clause::Kind::given) continue;
      for (Statement& s : clause.statements) all.push_back(&s);
    }
    for (Statement* s : all) {
      if (is_drop(*s)) continue;
      if (is_choice(s->value)) {
        for (const Binder& binder : s->binders) note(s->value, binder.name);
      } else if (s->value.kind != Expr::Kind::path) {
        close(s->value);
        statements_.push_back(std::move(*s));
      }
    }
  }

  [[nodiscard]] bool is_choice(const Expr& e) const {
    return e.kind == Expr::Kind::call && (e.optional || program_.patterns.contains(e.text));
  }

  void note(const Expr& call, const std::string& value) {
    const auto it = program_.patterns.find(call.text);
    if (it != program_.patterns.end() && it->second->recursive) open_.push_back(value);
  }

  void close(Expr& e) {
    for (Expr& arg : e.args) {
      if (is_choice(arg)) {
        Expr any = path_expr("_closed#" + std::to_string(made_++), arg.span);
        note(arg, any.text);
        any.type = std::move(arg.type);
        arg = std::move(any);
      } else {
        close(arg);
      }
    }
  }

  /// Keeps the statements that read the first open call whose value is read; if there is none, the
  /// largest connected set.
  void keep_around_open_calls() {
    const Clusters clusters(statements_);
    std::vector<std::size_t> sizes(statements_.size());
    for (std::size_t i = 0; i < statements_.size(); ++i) ++sizes[clusters.root(i)];
    if (sizes.empty()) return;
    auto keep =
        static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      for (std::size_t i = 0; i < statements_.size(); ++i) {
        visit_operand(statements_[i].value, [&](const Occurrence& o) {
          if (o.place == Place::operand && o.name == *open) keep = clusters.root(i);
        });
      }
    }
    std::vector<Statement> kept;
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      if (clusters.root(i) == keep) kept.push_back(std::move(statements_[i]));
    }
    statements_ = std::move(kept);
  }

  const Program& program_;
  std::vector<Statement> statements_;
  std::vector<std::string> open_;  ///< values of recursive calls, in text order
  std::size_t made_ = 0;
};

}  // namespace

ast::Rule frontier_pattern(const Program& program, const ast::Rule& rule) {
  return Skeleton(program).of(rule);
}

}  // namespace pw
