#include "dsl/syntax/names.hpp"

#include <algorithm>
#include <span>

#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

NameKind kind_of(Place place) {
  switch (place) {
    case Place::binder:
    case Place::operand: return NameKind::value;
    case Place::dtype:
    case Place::callee: return NameKind::dtype;
    case Place::dim: return NameKind::dim;
    case Place::sequence: return NameKind::sequence;
    case Place::attribute:
    case Place::guard:
    case Place::function:
    case Place::property: return NameKind::attribute;
  }
  return NameKind::attribute;
}

class Collector {
 public:
  Collector(const Context& context, const OuterNames& outer, Diagnostics& out)
      : context_(context), outer_(outer), out_(out) {}

  RuleNames run(const ast::Rule& rule) {
    for (const PatternStatement& p : pattern_statements(rule.body)) {
      given_ = p.given;
      visit_statement(*p.statement, [&](const Occurrence& o) { left(o); });
    }
    for (const Statement& s : rule.body.statements) drop(s);
    for (const ast::Clause& clause : rule.body.clauses) {
      if (clause.kind != ast::Clause::Kind::unless) continue;
      for (const Statement& s : clause.statements)
        visit_statement(s, [&](const Occurrence& o) { absent(o); });
    }
    for (const ast::Clause& clause : rule.body.clauses) {
      for (const Expr& guard : clause.guards)
        visit_scalar(guard, Place::guard, [&](const Occurrence& o) { read(o, false); });
    }
    for (const Statement& s : rule.replacement) right(s);
    find_lists();
    return std::move(names_);
  }

 private:
  static bool anonymous(std::string_view name) { return name.empty() || name == "_"; }

  void left(const Occurrence& o) {
    if (anonymous(o.name) || !binds(o)) return;
    if (shadows(o)) return;
    auto [it, fresh] = names_.names.try_emplace(std::string(o.name));
    Name& name = it->second;
    ++name.left;
    if (fresh) {
      name.kind = kind_of(o.place);
      name.span = o.span;
      name.members = o.members;
    } else {
      merge(name, o);
      if (name.members != o.members) name.members = nullptr;
    }
    name.list = name.list || o.spread || (o.place == Place::binder && o.members != nullptr);
    if (o.place == Place::attribute) name.captured = true;
    if ((o.expr != nullptr && !o.expr->type.empty()) ||
        (o.binder != nullptr && !o.binder->type.empty()))
      name.typed = true;
    if (o.place == Place::binder) bind_result(name, o, fresh);
  }

  /// Handles a place in `unless`: it reads what the pattern binds, else binds a local name.
  void absent(const Occurrence& o) {
    if (anonymous(o.name)) return;
    const auto known = names_.names.find(o.name);
    if (known != names_.names.end()) {
      ++known->second.guards;
      return;
    }
    if (!binds(o) || shadows(o)) return;
    Name& name = names_.names[std::string(o.name)];
    name.kind = kind_of(o.place);
    name.span = o.span;
    name.left = 1;
    name.guards = 1;
    name.negated = true;
  }

  /// Finds lists: a name that only the members bind is a list if it is read with `...`, counted, or
  /// an operand of `relu(x)...`. All others are equal over the members.
  void find_lists() {
    for (auto& [text, name] : names_.names) {
      if (name.members == nullptr || name.list) continue;
      const bool operand = name.kind == NameKind::value && is_member_spread(*name.members);
      name.list = operand || spread_reads_.contains(text);
    }
  }

  /// Returns true if a place on the left can bind a name. Properties and functions only read.
  bool binds(const Occurrence& o) {
    if (o.place == Place::function || o.place == Place::guard) return false;
    if (o.place == Place::property) {
      if (auto it = names_.names.find(o.name); it != names_.names.end()) ++it->second.left;
      return false;
    }
    if (o.place == Place::callee)
      return !context_.ops.find(o.name).valid() && !dtype_named(o.name) &&
             names_.names.contains(o.name);
    if (o.place == Place::dtype && dtype_named(o.name)) return false;
    if (o.place == Place::attribute && dtype_named(o.name)) return false;
    return !reads_param(o);
  }

  /// Returns true if a place reads a param: inside an expression, or as an attribute's value; bare
  /// names bind.
  bool reads_param(const Occurrence& o) const {
    if (!outer_.params.contains(o.name)) return false;
    const bool scalar = o.place == Place::dim || o.place == Place::attribute;
    return scalar && (!o.bare || (o.place == Place::attribute && o.expr != nullptr));
  }

  bool shadows(const Occurrence& o) {
    std::string what;
    if (outer_.params.contains(o.name)) what = "a param";
    if (o.name == outer_.table_variable) what = "the table variable";
    if (dtype_named(o.name)) what = "a dtype";
    if (what.empty()) return false;
    if (shadowed_.insert(std::string(o.name)).second)
      out_.push_back(error_at(o.span, "PW0241",
                              in_ticks(o.name) + " is " + what + ", so it cannot be bound here",
                              "rename the variable"));
    return true;
  }

  void bind_result(Name& name, const Occurrence& o, bool fresh) {
    if (name.result) {
      Diagnostic d =
          error_at(o.span, "PW0242", in_ticks(o.name) + " is bound twice in the pattern",
                   "a pattern binds each result once; to require equality, use one name");
      d.secondary.push_back({name.span, "bound first here"});
      out_.push_back(std::move(d));
    } else if (!fresh && name.kind == NameKind::value) {
      Diagnostic d = error_at(name.span, "PW0243",
                              in_ticks(o.name) + " is read before the statement that binds it",
                              "move the statement that binds it up");
      d.secondary.push_back({o.span, "bound here"});
      out_.push_back(std::move(d));
    }
    name.result = true;
    name.given = given_;
    name.span = o.span;
  }

  void merge(Name& name, const Occurrence& o) {
    const NameKind kind = kind_of(o.place);
    if (name.kind == kind) return;
    if (name.kind == NameKind::attribute && kind != NameKind::value) {
      name.kind = kind;
      return;
    }
    if (kind == NameKind::attribute && name.kind != NameKind::value) return;
    const bool number =
        (name.kind == NameKind::value && !name.result && kind == NameKind::attribute) ||
        (name.kind == NameKind::attribute && o.place == Place::operand);
    if (number) {
      name.kind = NameKind::value;
      name.attribute_variable = true;
      return;
    }
    conflict(name, kind, o);
  }

  void conflict(const Name& name, NameKind kind, const Occurrence& o) {
    const auto described = [](NameKind k) {
      return std::string(k == NameKind::attribute ? "an " : "a ") + std::string(pw::name(k));
    };
    Diagnostic d = error_at(
        o.span, "PW0244",
        in_ticks(o.name) + " is used as " + described(kind) + ", but it is " + described(name.kind),
        "a rule has one namespace; rename one of them");
    d.secondary.push_back({name.span, described(name.kind) + " from here on"});
    out_.push_back(std::move(d));
  }

  /// Handles a read in a guard or on the right.
  void read(const Occurrence& o, bool right) {
    auto it = names_.names.find(o.name);
    if (it == names_.names.end()) return;
    Name& name = it->second;
    ++(right ? name.right : name.guards);
    if (o.spread || (o.element && name.kind == NameKind::value)) spread_reads_.emplace(o.name);
    const bool scalar =
        o.place == Place::attribute || o.place == Place::guard || o.place == Place::dim;
    if (name.kind == NameKind::value && scalar) {
      if (name.result)
        conflict(name, NameKind::attribute, o);
      else
        name.attribute_variable = true;
    } else if (o.place == Place::operand &&
               (name.kind == NameKind::dtype || name.kind == NameKind::sequence)) {
      conflict(name, NameKind::value, o);
    }
  }

  void right(const Statement& s) {
    if (drop(s)) return;
    visit_operand(s.value, [&](const Occurrence& o) { read(o, true); });
    for (const Binder& binder : s.binders) {
      for (const TypeExpr& type : binder.type)
        visit_type(type, [&](const Occurrence& o) { read(o, true); });
      if (auto it = names_.names.find(binder.name); it != names_.names.end())
        it->second.rebound = true;
    }
  }

  bool drop(const Statement& s) {
    if (!is_drop(s)) return false;
    if (auto it = names_.names.find(s.value.text); it != names_.names.end())
      it->second.dropped = true;
    return true;
  }

  const Context& context_;
  const OuterNames& outer_;
  Diagnostics& out_;
  RuleNames names_;
  bool given_ = false;
  std::set<std::string, std::less<>> shadowed_;
  std::set<std::string, std::less<>> spread_reads_;  // in guards and on the right
};

/// Orders statements: those from a shared pattern share one place, and its `given` ones then follow
/// the others. Each moves before those that read it.
void order_by_reads(std::span<PatternStatement> statements) {
  if (std::none_of(statements.begin(), statements.end(),
                   [](const PatternStatement& p) { return p.given; }))
    return;
  const auto reads = [](const PatternStatement& a, const PatternStatement& b) {
    bool found = false;
    visit_operand(a.statement->value, [&](const Occurrence& o) {
      for (const Binder& binder : b.statement->binders)
        found = found || (binder.name == o.name && binder.name != "_");
    });
    return found;
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const auto ready = std::find_if(
        statements.begin() + static_cast<std::ptrdiff_t>(i), statements.end(),
        [&](const PatternStatement& p) {
          return std::none_of(
              statements.begin() + static_cast<std::ptrdiff_t>(i), statements.end(),
              [&](const PatternStatement& q) { return q.statement != p.statement && reads(p, q); });
        });
    if (ready == statements.end()) return;
    std::rotate(statements.begin() + static_cast<std::ptrdiff_t>(i), ready, ready + 1);
  }
}

}  // namespace

std::string_view name(NameKind kind) {
  switch (kind) {
    case NameKind::value: return "value";
    case NameKind::dim: return "dim";
    case NameKind::dtype: return "dtype";
    case NameKind::sequence: return "sequence of dims";
    case NameKind::attribute: return "attribute";
  }
  return "name";
}

const Name* RuleNames::find(std::string_view name) const {
  auto it = names.find(name);
  return it == names.end() ? nullptr : &it->second;
}

bool is_member_spread(const Expr& expr) {
  return expr.kind == Expr::Kind::spread && expr.args.front().kind != Expr::Kind::path;
}

bool is_drop(const Statement& s) {
  return s.binders.size() == 1 && s.binders.front().name == "_" &&
         s.value.kind == Expr::Kind::path && s.value.text.find('.') == std::string::npos;
}

bool is_repetition(const Expr& expr) {
  return expr.kind == Expr::Kind::binary && expr.text == "*" &&
         expr.args[0].kind == Expr::Kind::list;
}

std::optional<std::int64_t> element_of(const Expr& index) {
  const Expr& at = index.args[1];
  if (at.kind == Expr::Kind::integer) return at.integer;
  if (at.kind == Expr::Kind::negate && at.args[0].kind == Expr::Kind::integer)
    return -at.args[0].integer;
  return std::nullopt;
}

std::vector<PatternStatement> pattern_statements(const ast::Body& body) {
  std::vector<PatternStatement> result;
  for (const Statement& s : body.statements) {
    if (!is_drop(s)) result.push_back({&s, false});
  }
  for (const ast::Clause& clause : body.clauses) {
    if (clause.kind != ast::Clause::Kind::given) continue;
    for (const Statement& s : clause.statements) result.push_back({&s, true});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const PatternStatement& a, const PatternStatement& b) {
                     return a.statement->span.begin < b.statement->span.begin;
                   });
  for (std::size_t begin = 0, end = 0; begin < result.size(); begin = end) {
    while (end < result.size() &&
           result[end].statement->span.begin == result[begin].statement->span.begin)
      ++end;
    order_by_reads({result.data() + begin, end - begin});
  }
  return result;
}

RuleNames collect_names(const Context& context, const ast::Rule& rule, const OuterNames& outer,
                        Diagnostics& out) {
  return Collector(context, outer, out).run(rule);
}

}  // namespace pw
