// Finds guards that no match satisfies. A guard on one variable is evaluated on values around all
// numbers that it names. Comparisons of the same dims are intersected as intervals of their
// difference. Guards that read types are evaluated on symbolic instances of the left side, for
// every dtype.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "dsl/build/declare_op.hpp"
#include "dsl/build/stand_ins.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostPeriod = 4096;  // of remainders together
constexpr std::size_t kMostTries = 20000;   // values of one variable

void split(const Expr& e, std::vector<const Expr*>& out) {
  if (e.kind != Expr::Kind::binary || e.text != "and") return out.push_back(&e);
  for (const Expr& part : e.args) split(part, out);
}

std::set<std::string> names_of(const Expr& e) {
  std::set<std::string> out;
  visit_scalar(e, Place::guard, [&](const Occurrence& o) {
    if (o.place == Place::function || !dtype_named(o.name)) out.emplace(o.name);
  });
  return out;
}

/// Numbers in an expression, and whether trying values around them is complete: no variable is
/// multiplied by another, or divides.
struct Numbers {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::set<std::string> texts;
  std::int64_t period = 1;
  bool simple = true;

  void read(const Expr& e) {
    if (e.kind == Expr::Kind::integer) integers.push_back(e.integer);
    if (e.kind == Expr::Kind::real) reals.push_back(e.real);
    if (e.kind == Expr::Kind::string) texts.insert(e.text);
    if (e.kind == Expr::Kind::call || e.kind == Expr::Kind::index) simple = false;
    if (e.kind == Expr::Kind::binary && (e.text == "*" || e.text == "/" || e.text == "%"))
      product(e);
    for (const Expr& arg : e.args) read(arg);
  }

 private:
  void product(const Expr& e) {
    const bool left = !names_of(e.args[0]).empty(), right = !names_of(e.args[1]).empty();
    if (e.text == "*") {
      simple = simple && !(left && right);
      return;
    }
    const Expr& by = e.args[1];
    simple = simple && !right && by.kind == Expr::Kind::integer && by.integer > 0 &&
             by.integer <= kMostPeriod;
    if (simple) period = std::min(std::lcm(period, by.integer), kMostPeriod + 1);
    simple = simple && period <= kMostPeriod;
  }
};

class Never {
 public:
  Never(const CheckedRule& checked, Diagnostics& out) : checked_(checked), out_(out) {
    for (const auto* guards : {&checked.rule->where, &checked.rule->assume})
      for (const Expr& guard : *guards) split(guard, guards_);
  }

  void run() {
    for (const auto& [name, info] : checked_.names.names)
      if (!info.list && !info.negated && one_variable(name, info)) return;
    if (!compared()) by_types();
  }

 private:
  // ---- one variable

  bool one_variable(const std::string& name, const Name& info) {
    std::vector<const Expr*> mine;
    for (const Expr* guard : guards_)
      if (names_of(*guard) == std::set<std::string>{name} && !is_dotted(*guard))
        mine.push_back(guard);
    if (mine.empty()) return false;
    const std::optional<std::vector<Binding>> values = values_of(name, info, mine);
    if (!values) return false;
    const auto fails = [&](const std::vector<const Expr*>& guards) {
      return std::none_of(values->begin(), values->end(), [&](const Binding& value) {
        return std::all_of(guards.begin(), guards.end(),
                           [&](const Expr* g) { return may_hold(*g, name, value); });
      });
    };
    return report(mine, fails);
  }

  static bool is_dotted(const Expr& e) {
    if (e.kind == Expr::Kind::path) return e.text.find('.') != std::string::npos;
    return std::any_of(e.args.begin(), e.args.end(), is_dotted);
  }

  bool may_hold(const Expr& guard, const std::string& name, const Binding& value) {
    const Env env{{name, value}};
    const auto truth = evaluate_guard(scratch_, nullptr, guard, env, {});
    return !truth || *truth != Truth::no;
  }

  /// Returns all values that can make a difference; nothing if that is unknown.
  std::optional<std::vector<Binding>> values_of(const std::string& name, const Name& info,
                                                const std::vector<const Expr*>& guards) {
    std::vector<Binding> out;
    if (info.kind == NameKind::dtype) {
      for (int i = 0; i < kDTypeCount; ++i)
        out.emplace_back(DTypeBinding{static_cast<DType>(i), false});
      return out;
    }
    Numbers numbers;
    for (const Expr* guard : guards) numbers.read(*guard);
    const std::optional<AttributeKind> kind = attribute_kind(name);
    if (info.kind == NameKind::dim) return integers(numbers, 0);
    if (info.kind != NameKind::attribute || !kind) return {};
    switch (*kind) {
      case AttributeKind::int_:
      case AttributeKind::axis: return integers(numbers, INT64_MIN);
      case AttributeKind::float_: return reals(numbers);
      case AttributeKind::bool_:
        return std::vector<Binding>{Binding(Attribute(false)), Binding(Attribute(true))};
      case AttributeKind::dtype:
        for (int i = 0; i < kDTypeCount; ++i) out.emplace_back(Attribute(static_cast<DType>(i)));
        return out;
      case AttributeKind::str:
        for (const std::string& text : numbers.texts) out.emplace_back(Attribute(text));
        out.emplace_back(Attribute(std::string("\n")));  // any other
        return out;
      case AttributeKind::ints:
      case AttributeKind::dims:
      case AttributeKind::floats:
      case AttributeKind::strs: break;
    }
    return {};
  }

  /// Returns the kind of an attribute; nothing if it may be none.
  [[nodiscard]] std::optional<AttributeKind> attribute_kind(const std::string& name) const {
    for (const PatternNode& node : checked_.rule->nodes)
      for (const PatternAttribute& attribute : node.attributes) {
        if (attribute.value.kind != Expr::Kind::path || attribute.value.text != name) continue;
        const AttributeDecl* decl = checked_.context.ops[node.op].attribute(attribute.name);
        if (decl == nullptr || decl->nullable) return {};
        return decl->kind;
      }
    return {};
  }

  /// Returns integers to try. Between two numbers where a guard changes, its value is periodic.
  static std::optional<std::vector<Binding>> integers(const Numbers& numbers, std::int64_t least) {
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    if (!numbers.simple || !numbers.reals.empty() || numbers.integers.size() > 12) return {};
    std::set<std::int64_t> near{0}, sums, bases;
    for (std::int64_t n : numbers.integers) {
      if (n > kFar || n < -kFar) return {};
      near.insert(n);
    }
    for (std::int64_t a : near)
      for (std::int64_t b : near) sums.insert({a + b, a - b});
    for (std::int64_t sum : sums) {
      bases.insert(sum);
      for (std::int64_t n : near) {
        if (n != 0) bases.insert(sum / n);
        std::int64_t product = 0;
        if (!__builtin_mul_overflow(sum, n, &product) && std::abs(product) <= kFar * 2)
          bases.insert(product);
      }
    }
    std::set<std::int64_t> values;
    for (std::int64_t base : bases)
      for (std::int64_t v = base - 1; v <= base + numbers.period + 1; ++v) {
        if (v >= least) values.insert(v);
        if (values.size() > kMostTries) return {};
      }
    std::vector<Binding> out;
    for (std::int64_t v : values) out.emplace_back(Attribute(v));
    return out;
  }

  static std::optional<std::vector<Binding>> reals(const Numbers& numbers) {
    if (!numbers.simple || numbers.period > 1) return {};
    std::set<double> points(numbers.reals.begin(), numbers.reals.end());
    for (std::int64_t n : numbers.integers) points.insert(static_cast<double>(n));
    std::set<double> values{0.0};
    for (double a : points)
      for (double b : points) values.insert({a, a - b, a + b, b != 0 ? a / b : a});
    std::vector<double> sorted(values.begin(), values.end());
    for (std::size_t i = 0; i + 1 < sorted.size(); ++i)
      values.insert(sorted[i] + (sorted[i + 1] - sorted[i]) / 2);
    values.insert({sorted.front() - 1, sorted.back() + 1});
    std::vector<Binding> out;
    for (double v : values) out.emplace_back(Attribute(v));
    return out;
  }

  // ---- dims compared with dims

  struct Comparisons {
    std::vector<const Expr*> guards;
    std::vector<Bounds> bounds;  // one a guard
  };

  bool compared() {
    std::map<std::string, Comparisons> by_difference;
    Env env;
    for (const auto& [name, info] : checked_.names.names) {
      const auto kind = attribute_kind(name);
      if (!info.list && (info.kind == NameKind::dim || (kind && *kind == AttributeKind::int_)))
        env.emplace(name, scratch_.dims.symbol(name));
    }
    for (const Expr* guard : guards_) note(*guard, env, by_difference);
    for (const auto& [difference, interval] : by_difference) {
      const auto fails = [&](const std::vector<const Expr*>& guards) {
        std::optional<std::int64_t> min, max;
        for (std::size_t i = 0; i < interval.guards.size(); ++i) {
          if (std::find(guards.begin(), guards.end(), interval.guards[i]) == guards.end()) continue;
          const Bounds& b = interval.bounds[i];
          if (b.min) min = std::max(min.value_or(*b.min), *b.min);
          if (b.max) max = std::min(max.value_or(*b.max), *b.max);
        }
        return min && max && *min > *max;
      };
      if (report(interval.guards, fails)) return true;
    }
    return false;
  }

  /// Adds `a < b` as an interval of a - b without its constant.
  void note(const Expr& guard, const Env& env, std::map<std::string, Comparisons>& out) {
    if (guard.kind == Expr::Kind::in_range && guard.args.size() == 3) {
      note(guard, guard.args[0], guard.args[1], ">=", env, out);
      note(guard, guard.args[0], guard.args[2], "<=", env, out);
    } else if (guard.kind == Expr::Kind::binary && guard.text != "!=" && guard.text != "or") {
      note(guard, guard.args[0], guard.args[1], guard.text, env, out);
    }
  }

  void note(const Expr& guard, const Expr& left, const Expr& right, const std::string& op,
            const Env& env, std::map<std::string, Comparisons>& out) {
    Dims& dims = scratch_.dims;
    const DimId a = dim(left, env), b = dim(right, env);
    const DimId difference = dims.sub(a, b);
    if (!difference || dims.value(difference)) return;
    std::map<std::string, DimId, std::less<>> zero;
    for (const std::string& name : dims.symbols(difference)) zero.emplace(name, dims.constant(0));
    const DimId rest = dims.substitute(difference, zero);
    const auto constant = rest ? dims.value(rest) : std::nullopt;
    if (!constant || *constant == INT64_MIN) return;
    DimId varies = dims.sub(difference, rest);
    const DimId opposite = dims.sub(dims.constant(0), varies);
    const bool turned = opposite && dims.print(opposite) < dims.print(varies);
    const std::int64_t at = turned ? *constant : -*constant;
    const bool strict = op == "<" || op == ">";
    const bool upper = (op.front() == '<') != turned;
    Bounds bounds;
    if (op == "==" || upper) bounds.max = strict ? at - 1 : at;
    if (op == "==" || (!upper && op.front() != '=')) bounds.min = strict ? at + 1 : at;
    if (op.front() != '<' && op.front() != '>' && op != "==") return;
    Comparisons& interval = out[dims.print(turned ? opposite : varies)];
    interval.guards.push_back(&guard);
    interval.bounds.push_back(bounds);
  }

  DimId dim(const Expr& e, const Env& env) {
    if (is_dotted(e)) return {};
    return dim_value(scratch_, nullptr, e, env).value_or(DimId());
  }

  // ---- types of the pattern

  void by_types() {
    const Rule& rule = *checked_.rule;
    if (!rule.lists.empty() || !rule.members.empty()) return;
    std::vector<const Expr*> mine;
    std::set<std::string> dtypes;
    for (const Expr* guard : guards_) {
      if (!reads_types(*guard, dtypes)) continue;
      mine.push_back(guard);
    }
    if (mine.empty() || dtypes.size() > 2) return;
    std::map<const Expr*, std::string> refuted;
    std::set<const Expr*> narrowed;
    for (const DTypeChoice& choice : choices({dtypes.begin(), dtypes.end()}, mine)) {
      if (excluded(choice, mine, narrowed)) continue;
      StandIns left(checked_, rule, 1);
      if (!left.build_left(choice)) return;
      if (left.dtypes_agree() && !refutes(left, mine, refuted)) return;
    }
    for (const Expr* guard : mine) {
      if (const auto it = refuted.find(guard); it != refuted.end())
        return out_.push_back(
            never(*guard, "the types of the pattern make it " + in_ticks(it->second)));
    }
    for (const Expr* guard : mine) {
      if (narrowed.contains(guard))
        return out_.push_back(
            never(*guard, "no dtype that satisfies it fits the types of the pattern"));
    }
  }

  /// Returns true if symbolic instances can decide: dims, dtypes, and types of values with a known
  /// rank.
  bool reads_types(const Expr& guard, std::set<std::string>& dtypes) const {
    bool fits = true;
    std::set<std::string> found;
    const bool ranks =
        std::any_of(checked_.names.names.begin(), checked_.names.names.end(),
                    [](const auto& name) { return name.second.kind == NameKind::sequence; });
    visit_scalar(guard, Place::guard, [&](const Occurrence& o) {
      if (o.place == Place::function) {
        fits = fits && !ranks && (o.name == "size" || o.name == "rank");
        return;
      }
      if (dtype_named(o.name)) return;
      const Name* name = checked_.names.find(o.name);
      const bool plain = name != nullptr && !name->list && !name->attribute_variable &&
                         name->kind != NameKind::attribute && name->kind != NameKind::sequence;
      const bool shape = o.expr != nullptr && o.expr->text.ends_with(".shape");
      fits = fits && plain && !(ranks && shape);
      if (plain && name->kind == NameKind::dtype) found.emplace(o.name);
      if (o.expr != nullptr && o.expr->text.ends_with(".dtype"))
        for (const auto& [text, other] : checked_.names.names)
          if (other.kind == NameKind::dtype) found.insert(text);
    });
    if (fits) dtypes.insert(found.begin(), found.end());
    return fits;
  }

  /// Returns all dtypes of these variables; those that guards name come first, as the likely ones.
  static std::vector<DTypeChoice> choices(const std::vector<std::string>& names,
                                          const std::vector<const Expr*>& guards) {
    std::vector<DType> order;
    const auto add = [&](DType dtype) {
      if (std::find(order.begin(), order.end(), dtype) == order.end()) order.push_back(dtype);
    };
    for (const Expr* guard : guards)
      visit_scalar(*guard, Place::guard, [&](const Occurrence& o) {
        if (auto dtype = dtype_named(o.name)) add(*dtype);
      });
    for (int i = 0; i < kDTypeCount; ++i) add(static_cast<DType>(i));
    std::vector<DTypeChoice> out{{}};
    for (const std::string& name : names) {
      std::vector<DTypeChoice> next;
      for (const DTypeChoice& choice : out)
        for (DType dtype : order) {
          next.push_back(choice);
          next.back().emplace(name, dtype);
        }
      out = std::move(next);
    }
    return out;
  }

  /// Returns true if a guard on dtypes alone is false for these.
  bool excluded(const DTypeChoice& choice, const std::vector<const Expr*>& guards,
                std::set<const Expr*>& narrowed) {
    Env env;
    for (const auto& [name, dtype] : choice) env.emplace(name, DTypeBinding{dtype, false});
    return std::any_of(guards.begin(), guards.end(), [&](const Expr* guard) {
      const auto truth = evaluate_guard(scratch_, nullptr, *guard, env, {});
      if (!truth || *truth != Truth::no) return false;
      narrowed.insert(guard);
      return true;
    });
  }

  /// Returns "4 == 3" of "`d == 3` is false: 4 == 3".
  static std::string after_false(std::string why) {
    constexpr std::string_view kFalse = "is false: ";
    if (const std::size_t at = why.find(kFalse); at != std::string::npos)
      why.erase(0, at + kFalse.size());
    return why;
  }

  /// Returns true if a guard is false on these for all sizes; stores the reason.
  static bool refutes(StandIns& left, const std::vector<const Expr*>& guards,
                      std::map<const Expr*, std::string>& refuted) {
    Facts facts = left.graph.facts;
    for (const auto& [text, name] : left.checked.names.names)
      if (name.kind == NameKind::dim) facts.symbols[text].min = 0;
    for (const Expr* guard : guards) {
      std::string why;
      const auto truth = evaluate_guard(left.context, &left.graph, *guard, left.env, facts, &why);
      if (!truth || *truth != Truth::no) continue;
      refuted.emplace(guard, after_false(why));
      return true;
    }
    return false;
  }

  // ---- messages

  /// Names the guard that first leaves nothing, and the one that it contradicts.
  template <class Fails>
  bool report(const std::vector<const Expr*>& guards, const Fails& fails) {
    std::vector<const Expr*> before;
    for (const Expr* guard : guards) {
      before.push_back(guard);
      if (!fails(before)) continue;
      before.pop_back();
      contradiction(*guard, before, fails);
      return true;
    }
    return false;
  }

  template <class Fails>
  void contradiction(const Expr& guard, const std::vector<const Expr*>& before,
                     const Fails& fails) {
    if (fails({&guard})) return out_.push_back(never(guard, "nothing meets it"));
    const auto other = std::find_if(before.begin(), before.end(),
                                    [&](const Expr* b) { return fails({b, &guard}); });
    Diagnostic d = never(guard, other == before.end()
                                    ? "the earlier guards leave nothing that satisfies it"
                                    : "nothing satisfies it and " + in_ticks(print(**other)));
    for (const Expr* b : before)
      if (other == before.end() || b == *other)
        d.secondary.push_back({b->span, "must hold as well"});
    out_.push_back(std::move(d));
  }

  static Diagnostic never(const Expr& guard, const std::string& why) {
    return warning_at(guard.span, "PW0280", in_ticks(print(guard)) + " never holds: " + why,
                      "the rule never matches; widen the guard, or remove the rule");
  }

  const CheckedRule& checked_;
  Diagnostics& out_;
  std::vector<const Expr*> guards_;
  Context scratch_;
};

}  // namespace

void check_never(const CheckedRule& checked, Diagnostics& out) {
  if (checked.rule->where.empty() && checked.rule->assume.empty()) return;
  Never(checked, out).run();
}

}  // namespace pw
