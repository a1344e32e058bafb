// Random sets of rules over a few ops, from a seed, and which constructs each rule has.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "tests/drawn_text.hpp"
#include "tests/rewriter/fixture.hpp"

namespace pw::test {

inline constexpr const char* kRandomOps = R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
op both(x: T[*s], z: T[*s]) -> (p: T[*s], q: T[*s])
op tag(x: T[*s]) {k: int = 0} -> T[*s]
)";

/// Features of a rule set beyond one tree of nodes.
enum class Construct : std::uint8_t {
  two_roots,
  three_roots,
  shared_node,
  commutative,
  given,
  over,
  attribute,
  types,
  where,
  assume,
  unless,
  optional_node,
  alternatives,
  recursion,
  many,
  two_lists,
  member_spread,
  rest,
  result_list,
  fuse,
  op_variable,
  typed_pattern,
  two_sequences,
  element,
  repetition,
  fused_lists,
};
inline constexpr std::array<const char*, 26> kConstructs{
    "two roots",    "three roots", "a shared node", "commutative ops", "given",         "over",
    "an attribute", "types",       "where",         "assume",          "unless",        "optional",
    "alternatives", "recursion",   "many",          "two lists",       "member spread", "rest...",
    "result list",  "fuse",        "f: trait",      "typed pattern",   "[*a, d, *b]",   "xs[0]",
    "[d] * k",      "y... = fuse"};
using Constructs = std::set<Construct>;

/// The ops that a set of rules and the graphs for it are made of: few, so that they often meet.
struct Alphabet {
  std::array<const char*, 3> unary{"relu", "neg", "abs"};
  std::array<const char*, 2> binary{"add", "sub"};

  explicit Alphabet(std::uint64_t seed) {
    Random random(combine(seed, 0xa1fabe7));
    std::array<const char*, 5> all{"relu", "neg", "abs", "sin", "cos"};
    for (std::size_t i = 0; i < unary.size(); ++i) {
      std::swap(all[i], all[i + random.below(all.size() - i)]);
      unary[i] = all[i];
    }
    binary = std::array<std::array<const char*, 2>, 3>{
        {{"add", "sub"}, {"add", "mul"}, {"sub", "mul"}}}[random.below(3)];
  }
};

struct RandomRules {
  Alphabet alphabet;
  std::string text;
  std::vector<Constructs> rules;  ///< of `r0`, `r1`, …
};

/// Rules that are matched once each, or with lists and choices too.
enum class Mix : std::uint8_t { plain, all };

/// Writes rules whose left sides are small connected graphs, and whose right sides make fewer
/// nodes, or other ones.
class RuleWriter {
 public:
  RuleWriter(const Alphabet& alphabet, std::uint64_t seed, Mix mix)
      : random_(seed * 7919 + 17), alphabet_(alphabet), mix_(mix), out_{alphabet, {}, {}} {}

  RandomRules run() {
    out_.text = kRandomOps;
    if (mix_ == Mix::all) patterns();
    std::string names;
    const std::size_t count = 1 + random_.below(5);
    for (std::size_t i = 0; i < count; ++i) {
      out_.rules.emplace_back();
      const std::string name = "r" + std::to_string(i);
      out_.text += "rule " + name;
      if (i > 0 && one_in(4)) {
        const std::size_t below = random_.below(i);
        out_.text += " over r" + std::to_string(below);
        has(Construct::over);
        out_.rules[below].insert(Construct::over);
      }
      out_.text += " {\n" + body() + "}\n";
      names += (i == 0 ? "" : ", ") + name;
    }
    for (const char* pass : {"fixpoint = greedy", "sweep = walk", "single = once"})
      out_.text += std::string("pass ") + pass + " { " + names + " } fuel 60\n";
    return std::move(out_);
  }

 private:
  std::string body() {
    if (mix_ == Mix::all && one_in(3)) return lists();
    if (mix_ == Mix::all && one_in(3)) return forms();
    return nodes();
  }

  struct Made {
    std::string name;
    bool read = false, given = false;
  };

  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  void has(Construct construct) { out_.rules.back().insert(construct); }
  template <class From>
  auto pick(const From& from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(random_.below(from.size())));
  }
  std::string pick(std::initializer_list<const char*> from) {
    return *(from.begin() + random_.below(from.size()));
  }
  std::string unary() { return pick(alphabet_.unary); }
  std::string binary() {
    const std::string op = pick(alphabet_.binary);
    if (op != "sub" && !out_.rules.empty()) has(Construct::commutative);
    return op;
  }
  /// An op that may be outside the alphabet, so that rewriting terminates more often.
  std::string other() { return pick({"relu", "neg", "abs", "sin", "cos"}); }

  // ---- shared patterns

  /// p takes one value, q two; d has two results; c calls itself.
  void patterns() {
    const auto one = [&]() -> std::string {
      switch (random_.below(5)) {
        case 0: return Text{"h = ", unary(), "(x)  y = ", unary(), "(h)"};
        case 1: return Text{"y = ", binary(), "(", unary(), "(x), x)"};
        case 2: return Text{"given { h = ", unary(), "(x) }  y = ", unary(), "(h)"};
        case 3: return Text{"y = ", unary(), "(", unary(), "?(x))"};
        default: return "y = " + unary() + "(x)";
      }
    };
    out_.text += Text{"pattern p(x) -> y { ", one(), " | ", one()};
    if (one_in(3)) out_.text += " | " + one();
    if (one_in(4)) out_.text += "  where size(x, 0) >= 2";
    out_.text += " }\npattern q(x, z) -> y { y = " + binary() + "(x, z)";
    out_.text += Text{" | y = ", binary(), "(", unary(), "(x), z) }\n"};
    out_.text += "pattern d(x) -> p, q { p, q = pair(x)";
    out_.text += Text{" | p = ", unary(), "(x)  q = ", unary(), "(p) }\n"};
    out_.text += "pattern t(x: T[n, *s], z: T[*r]) -> y: T[n, *s] { y = " + binary() + "(x, z)";
    out_.text += Text{" | y = ", binary(), "(z, ", unary(), "(x)) }\n"};
    out_.text += "pattern rec c(x) -> y { y = " + (one_in(3) ? unary() + "(x)" : "x");
    out_.text += " | y = " + unary() + "(c(x))";
    if (one_in(3)) out_.text += " | y = tag(c(x)){k = 1}";
    out_.text += " }\n";
  }

  // ---- rules whose nodes are matched once

  /// A value to read: an input or a result made before, the latest more often; in a wide rule
  /// mostly an input, so that many of its results are roots.
  std::string operand(bool fresh_allowed) {
    const bool old = !made_.empty() && (wide_ ? one_in(6) : !one_in(3) || !fresh_allowed);
    if (old) {
      Made& m = one_in(2) ? made_.back() : made_[random_.below(made_.size())];
      if (m.read) has(Construct::shared_node);
      m.read = true;
      return m.name;
    }
    if (!inputs_.empty() && (one_in(3) || (wide_ && !fresh_allowed))) return pick(inputs_);
    const std::string name = "x" + std::to_string(inputs_.size());
    inputs_.push_back(name);
    if (mix_ == Mix::plain || !one_in(6)) return name;
    has(Construct::types);
    typed_ = true;
    return name + (one_in(2) ? ": T[n, 4]" : ": T[n, *t]");
  }

  /// Every choice multiplies the variants of the rule.
  bool may_choose() { return mix_ == Mix::all && choices_ < 2; }

  /// Returns an operand, possibly after a node that is optional or one of several.
  std::string argument(bool fresh_allowed) {
    std::string x = operand(fresh_allowed);
    if (!may_choose()) return x;
    const std::uint64_t which = random_.below(10);
    choices_ += which < 3 ? 1 : 0;
    switch (which) {
      case 0: has(Construct::optional_node); return unary() + "?(" + x + ")";
      case 1: has(Construct::alternatives); return "p(" + x + ")";
      case 2: has(Construct::recursion); return unary() + "(c(" + x + "))";
      default: return x;
    }
  }

  std::string call(const std::string& a) {
    const std::uint64_t which = random_.below(may_choose() ? 11u : 8u);
    choices_ += which > 7 ? 1 : 0;
    switch (which) {
      case 0: has(Construct::attribute); return "tag(" + a + "){k = " + pick({"0", "1"}) + "}";
      case 1: has(Construct::attribute); return "tag(" + a + "){..}";
      case 2:
      case 3: return Text{binary(), "(", a, ", ", argument(true), ")"};
      case 4: return "sub(" + a + ", " + argument(true) + ")";
      case 5: return Text{unary(), "(", unary(), "(", a, "))"};
      case 8: has(Construct::alternatives); return "p(" + a + ")";
      case 9: has(Construct::alternatives); return "q(" + a + ", " + operand(true) + ")";
      case 10: has(Construct::recursion); return "c(" + unary() + "(" + a + "))";
      default: return unary() + "(" + a + ")";
    }
  }

  std::string nodes() {
    made_.clear();
    inputs_.clear();
    typed_ = false;
    choices_ = 0;
    wide_ = one_in(6);
    std::string body, given;
    const std::size_t count = wide_ ? 3 + random_.below(2) : 1 + random_.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "v" + std::to_string(made_.size());
      if (may_choose() && i + 1 == count && one_in(8)) {
        const std::string second = "v" + std::to_string(made_.size() + 1);
        has(Construct::alternatives);
        body += "  " + name + ", " + second + " = d(" + operand(i == 0) + ")\n";
        made_.push_back({name, false, false});
        made_.push_back({second, false, false});
        break;
      }
      const std::string statement = name + " = " + call(argument(i == 0));
      const bool is_given = count > 1 && i == 0 && one_in(4);
      if (is_given) has(Construct::given);
      (is_given ? given : body) += "  " + statement + "\n";
      made_.push_back({name, false, is_given});
    }
    const std::string clauses = mix_ == Mix::all ? guards() : std::string();
    return (given.empty() ? "" : "  given {\n" + given + "  }\n") + body + clauses + "  =>\n" +
           right_side();
  }

  std::string guards() {
    std::string out;
    const std::string x = inputs_.empty() ? made_.back().name : pick(inputs_);
    if (one_in(6)) {
      has(Construct::where);
      out += typed_ && one_in(2)
                 ? "  where n in 1..3\n"
                 : "  where size(" + x + ", 0) " + pick({"<= 2", "== 2", "% 2 == 1"}) + "\n";
    }
    if (one_in(10)) {
      has(Construct::assume);
      out += "  assume size(" + x + ", 0) >= 2\n";
    }
    if (one_in(5)) out += absence(one_in(2) ? made_.back().name : x, x);
    return out;
  }

  std::string absence(const std::string& value, const std::string& input) {
    has(Construct::unless);
    switch (random_.below(5)) {
      case 0: return "  unless { _ = " + binary() + "(" + value + ", other) }\n";
      case 1: return Text{"  unless { h = ", unary(), "(", value, ")  _ = ", unary(), "(h) }\n"};
      case 2: return "  unless { " + input + " = " + unary() + "(other) }\n";
      default: return "  unless { _ = " + unary() + "(" + value + ") }\n";
    }
  }

  /// Roots are rebound, sometimes an inner value too.
  std::string right_side() {
    std::string out;
    std::vector<std::string> outputs, from = inputs_;
    std::size_t roots = 0;
    for (const Made& m : made_) {
      if (m.given) from.push_back(m.name);
      if (m.given || (m.read && !one_in(5))) continue;
      outputs.push_back(m.name);
      roots += m.read ? 0 : 1;
    }
    if (roots == 2) has(Construct::two_roots);
    if (roots >= 3) has(Construct::three_roots);
    if (outputs.empty()) outputs.push_back(made_.back().name);
    if (mix_ == Mix::all && one_in(12)) {
      has(Construct::fuse);
      for (const std::string& o : outputs) out += (out.empty() ? "  " : ", ") + o;
      return out + " = fuse\n";
    }
    const auto value = [&]() -> std::string { return from.empty() ? "1.0" : pick(from); };
    if (outputs.size() == 2 && !inputs_.empty() && one_in(2))
      return "  " + outputs[0] + ", " + outputs[1] + " = both(" + inputs_.front() + ", " +
             inputs_.back() + ")\n";
    for (const std::string& o : outputs) {
      out += "  " + o + " = ";
      switch (random_.below(6)) {
        case 0: out += value(); break;
        case 1: out += Text{other(), "(", value(), ")"}; break;
        case 2: out += "tag(" + value() + "){k = 1}"; break;
        case 3: out += Text{"mul(", value(), ", ", value(), ")"}; break;
        case 4: out += Text{unary(), "(", value(), ")"}; break;
        default: out += "cos(neg(" + value() + "))"; break;
      }
      out += "\n";
      if (one_in(4)) from.push_back(o);
    }
    return out;
  }

  // ---- forms of which a rule has one

  /// Ops by their trait, types of a pattern's operands, shapes that may be split in several places,
  /// elements of lists, lists that are repeated, and one op for lists of any length.
  std::string forms() {
    const std::string u = unary(), b = binary(), o = other();
    switch (random_.below(10)) {
      case 0:
        has(Construct::op_variable);
        return Text{"  op f: associative\n  y = f(", u, "(x), z)\n  =>\n  y = f(x, z)\n"};
      case 1:
        has(Construct::op_variable);
        return Text{"  op f: pointwise\n  y = f(", u, "(f(x)))\n  =>\n  y = f(x)\n"};
      case 2:
        has(Construct::typed_pattern);
        return Text{"  y = t(", u, "(x), z)\n  =>\n  y = sub(x, z)\n"};
      case 3:
        has(Construct::two_sequences);
        return Text{"  y = ",
                    u,
                    "(x: T[*a, m, *e])\n  where ",
                    pick({"m == 4", "count(a) == 1", "count(e) >= 1", "m <= 4"}),
                    "\n  =>\n  y = ",
                    o,
                    "(x)\n"};
      case 4:
        has(Construct::two_sequences);
        return Text{"  h = ",
                    u,
                    "(x: [*a, m, *e])\n  y = ",
                    b,
                    "(h, z: [*a, m, *e])\n  where ",
                    pick({"m >= 2", "count(a) <= 1"}),
                    "\n  =>\n  y = sub(x, z)\n"};
      case 5:
        has(Construct::element);
        return Text{"  many y = ",
                    b,
                    "(x, w)\n",
                    counted("w"),
                    "  =>\n  z = ",
                    o,
                    pick({"(w[0])\n", "(w[-1])\n"}),
                    "  y... = sub(w, z)...\n"};
      case 6:
      case 7:
        has(Construct::repetition);
        return Text{"  p, q = split(", u, "(x)){dim, sizes = [m] * ",
                    pick({"2}\n", "k}\n  where k == 2\n"}),
                    "  =>\n  p, q = split(x){dim, sizes = [m] * 2}\n"};
      default:
        has(Construct::fused_lists);
        if (one_in(2)) return Text{"  y = cat(", u, "(x)...){dim = 0}\n  =>\n  y = fuse\n"};
        return Text{"  many y = ", b, "(x, ", u, "(w))\n", counted("w"), "  =>\n  y... = fuse\n"};
    }
  }

  // ---- rules with lists

  /// A name is a list if it is counted.
  std::string counted(const std::string& name) {
    has(Construct::where);
    return "  where count(" + name + ") >= " + pick({"1", "1", "2", "2", "3"}) + "\n";
  }

  struct Sides {
    std::string left, right;
    std::string reads = "x";  ///< a value that is one, to ask what else reads it
  };

  std::string lists() {
    Sides sides = one_in(3) ? spreads() : many();
    if (one_in(5)) sides.left += absence(sides.reads, sides.reads);
    return "  " + sides.left + "  =>\n  " + sides.right + "\n";
  }

  Sides many() {
    const std::string u = unary(), b = binary(), o = other();
    std::string type;
    if (one_in(4)) {
      has(Construct::types);
      type = ": T[n, 4]";
    }
    has(Construct::many);
    const std::string w = counted("w"), members = "many y = " + b + "(x" + type + ", w)\n";
    switch (random_.below(9)) {
      case 0:
        return {"h = " + u + "(x)\n  many y = " + b + "(h, w" + type + ")\n" + w,
                one_in(2) ? "y... = " + b + "(x, w)..." : "h = x\n  y... = " + o + "(w)..."};
      case 1:
        has(Construct::given);
        return {"given { g = " + u + "(x) }\n  many y = " + b + "(g, w" + type + ")\n" + w,
                "y... = " + b + "(w, " + pick({"g", "x"}) + ")..."};
      case 2:
        return {"many y = " + u + "(" + b + "(x, w" + type + "))\n" + w,
                "y... = " + b + "(x, " + o + "(w))..."};
      case 3:
        return {"many y = " + b + "(x, " + u + "(w" + type + "))\n" + w,
                "y... = " + b + "(x, w)..."};
      case 4:
        has(Construct::attribute);
        return {"many y = " + b + "(x, tag(w" + type + "){k})\n" + w,
                "y... = tag(" + o + "(w)){k}..."};
      case 5:
        has(Construct::two_roots);
        return {"r = " + u + "(x)\n  " + members + w,
                one_in(2) ? "r, z = both(x, x)\n  y... = sub(z, w)..."
                          : "r = x\n  y... = " + o + "(w)..."};
      case 6:
        has(Construct::rest);
        return {members + "  s = cat(y...){dim = 0}\n", "s = cat(w...){dim = 0}"};
      case 7:
        has(Construct::two_lists);
        return {Text{"many y = ", alphabet_.binary[0], "(x, w)\n  many z = ", alphabet_.binary[1],
                     "(x, e)\n", counted("w"), counted("e")},
                "y... = " + o + "(w)...\n  z... = sub(e, x)..."};
      default:
        return {members + w,
                one_in(2) ? "y... = sub(w, " + o + "(x))..." : "y... = " + o + "(w)..."};
    }
  }

  Sides spreads() {
    const std::string u = unary(), b = binary(), o = other();
    const std::string first = one_in(2) ? "a, " : "", one = first.empty() ? "y" : "a";
    switch (random_.below(5)) {
      case 0:
        has(Construct::member_spread);
        return {"y = cat(" + first + u + "(x)...){dim = 0}\n" + (one_in(2) ? "" : counted("x")),
                one_in(2) ? "y = cat(" + first + "x...){dim = 0}"
                          : "y = " + o + "(cat(" + first + "x...){dim = 0})",
                one};
      case 1:
        has(Construct::member_spread);
        return {Text{"y = cat(", b, "(x, w)...){dim}\n", counted("w"), counted("x")},
                one_in(2) ? "y = cat(" + o + "(w)...){dim}" : "y = cat(sub(w, x)...){dim}", "y"};
      case 2:
        has(Construct::rest);
        return {"y = " + u + "(cat(" + first + "xs...){dim = 0})\n" + counted("xs"),
                "y = cat(" + (first.empty() ? "" : other() + "(a), ") + o + "(xs)...){dim = 0}",
                one};
      case 3:
        has(Construct::result_list);
        has(Construct::rest);
        return {"y... = split(x){dim, sizes = [m...]}\n  r = cat(y...){dim}\n  _ = m\n",
                "r = " + pick({"x", "neg(x)", "cos(x)"})};
      default:
        has(Construct::result_list);
        return {"y... = split(" + u + "(x)){dim = 0, sizes = [m...]}\n",
                one_in(2) ? "y... = split(x){dim = 0, sizes = [m...]}"
                          : "y... = split(" + o + "(x)){dim = 0, sizes = [m...]}"};
    }
  }

  Random random_;
  const Alphabet& alphabet_;
  Mix mix_;
  RandomRules out_;
  std::vector<Made> made_;
  std::vector<std::string> inputs_;
  bool typed_ = false, wide_ = false;
  std::size_t choices_ = 0;
};

/// The first set from the seed on that the checks let through.
inline RandomRules random_rules(std::uint64_t seed, Mix mix = Mix::all) {
  const Alphabet alphabet(seed);
  for (std::uint64_t salt = 0;; ++salt) {
    RandomRules rules = RuleWriter(alphabet, seed * 1000 + salt, mix).run();
    const ContextPtr context = std::make_shared<Context>();
    if (load_rule_texts(context, {{"rules.pwr", rules.text}})) return rules;
    if (salt == 900) FAIL("no valid set of rules from seed " << seed << "\n" << rules.text);
  }
}

}  // namespace pw::test
