// Builds each body on symbolic instances of its signature's variables, and compares the inferred
// types with the declared ones. Dims are fresh symbols. Bodies that symbols cannot decide are built
// again on numbers, and only a failure both ways is an error.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "dsl/build/declare_op.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/build.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

using DTypes = std::map<std::string, DType, std::less<>>;

/// Choice of sizes: symbols; distinct numbers; or one number for all dims and one for all
/// attributes, which meets conditions that a signature leaves implicit.
struct Sizes {
  enum class Kind : std::uint8_t { symbols, distinct, alike } kind = Kind::symbols;
  std::int64_t attribute = 0;
};

/// Choice of what a signature leaves open without restricting the op: one that fits is enough.
struct Choice {
  std::size_t rank = 2;  ///< of a sequence
  bool present = true;   ///< operands that may be none
  std::int64_t axis = -1;
  bool flag = false;
};

/// Reason why a body does not fit its signature: a result of another type, or an op that it cannot
/// call.
struct Misfit {
  std::size_t result = 0;
  std::string declared, given;  ///< empty: the body could not be built
  bool same_shape = false;
  std::string sizes;        ///< "n = 192": where these had to be numbers
  bool other_kind = false;  ///< another dtype or rank: no size makes it fit
  Diagnostic why;
};

/// Result of a check; with neither a fit nor a misfit it is undecided.
struct Outcome {
  bool fits = false;
  std::optional<Misfit> misfit;
};

/// Returns a separate op table, so that interning leaves no trace in the context's order.
std::unique_ptr<Context> copy_of(const Context& context) {
  auto out = std::make_unique<Context>();
  out->natives = context.natives;
  for (std::size_t i = 0; i < context.ops.size(); ++i) {
    Op op = context.ops[OpId(i)];
    for (AttributeDecl& attribute : op.attributes) {
      if (!attribute.default_value) continue;
      auto* dims = std::get_if<std::vector<DimId>>(&*attribute.default_value);
      if (dims == nullptr) continue;
      for (DimId& d : *dims) d = out->dims.constant(context.dims.value(d).value_or(0));
    }
    auto declared = out->ops.declare(std::move(op));
    if (!declared) return nullptr;
  }
  return out;
}

class BodyTypes {
 public:
  BodyTypes(Context& context, OpId id) : context_(context), id_(id), op_(context.ops[id]) {
    for (const OperandDecl& operand : op_.operands) {
      if (operand.type) collect(*operand.type);
      loose_ = loose_ || !operand.type || operand.type->any_shape;
    }
    for (const AttributeDecl& attribute : op_.attributes) {
      const bool open = !attribute.default_value && !attribute.nullable;
      if (open && attribute.kind == AttributeKind::dtype) dtypes_.insert(attribute.name);
      sized_ = sized_ || attribute.kind == AttributeKind::int_ ||
               attribute.kind == AttributeKind::dims || attribute.kind == AttributeKind::ints;
    }
  }

  /// Checks one op. A signature with dtype variables covers floats, integers, or both: the body
  /// must fit one of these kinds throughout.
  std::optional<Diagnostic> run() {
    std::optional<Diagnostic> first;
    for (const std::vector<DTypes>& kind : kinds()) {
      std::optional<Diagnostic> wrong;
      for (const DTypes& dtypes : kind) {
        if (std::optional<Misfit> misfit = misfit_of(dtypes)) {
          wrong = diagnose(std::move(*misfit), dtypes);
          break;
        }
      }
      if (!wrong) return {};
      if (!first) first = std::move(wrong);
    }
    return first;
  }

 private:
  void collect(const TypeExpr& type) {
    visit_type(type, [&](const Occurrence& o) {
      const std::string text(o.name);
      if (op_.attribute(text) != nullptr || text == "_") return;
      if (o.place == Place::dtype && !dtype_named(text)) dtypes_.insert(text);
      if (o.place == Place::dim) dims_.insert(text);
      if (o.place == Place::sequence) sequences_.insert(text);
    });
  }

  [[nodiscard]] std::vector<std::vector<DTypes>> kinds() const {
    if (dtypes_.empty()) return {{DTypes()}};
    const auto filled = [&](DType even, DType odd) {
      DTypes out;
      for (const std::string& name : dtypes_) out.emplace(name, out.size() % 2 == 0 ? even : odd);
      return out;
    };
    const auto kind = [&](const std::vector<DType>& members) {
      std::vector<DTypes> out;
      for (DType d : members) out.push_back(filled(d, d));
      if (dtypes_.size() < 2) return out;
      out.push_back(filled(members.front(), members.back()));
      out.push_back(filled(members.back(), members.front()));
      return out;
    };
    return {kind({DType::bf16, DType::f32}), kind({DType::i32, DType::i64})};
  }

  /// Returns the misfit; nothing if the body fits, or if it is undecided.
  std::optional<Misfit> misfit_of(const DTypes& dtypes) {
    Outcome symbols = build(dtypes, {});
    if (symbols.fits) return {};
    Outcome numbers = build(dtypes, {Sizes::Kind::distinct, 0});
    if (!numbers.misfit) return {};
    // Numbers decide a dtype and a rank that symbols leave open.
    if (!symbols.misfit && !numbers.misfit->other_kind) return {};
    Misfit& first = symbols.misfit ? *symbols.misfit : *numbers.misfit;
    if (!symbols.misfit) first.sizes = print_sizes();
    if (!sized_) return std::move(first);
    // Sizes given by attributes may have to agree with those of the operands.
    for (const std::int64_t attribute : {8, 64, 1})
      if (!build(dtypes, {Sizes::Kind::alike, attribute}).misfit) return {};
    return std::move(first);
  }

  /// Builds over all choices until one fits or is undecided.
  Outcome build(const DTypes& dtypes, Sizes sizes) {
    Outcome first;
    bool open = false;
    for (const Choice& choice : choices()) {
      Outcome outcome = try_at(dtypes, sizes, choice);
      if (outcome.fits) return outcome;
      open = open || !outcome.misfit;
      if (!first.misfit) first = std::move(outcome);
    }
    return open ? Outcome() : first;
  }

  [[nodiscard]] std::vector<Choice> choices() const {
    std::vector<Choice> out{{}};
    const auto also = [&](bool open, auto change) {
      if (!open) return;
      const std::size_t before = out.size();
      for (std::size_t i = 0; i < before; ++i) {
        Choice other = out[i];
        change(other);
        out.push_back(other);
      }
    };
    const auto lacks = [&](AttributeKind kind) {
      return std::any_of(op_.attributes.begin(), op_.attributes.end(), [&](const auto& a) {
        return a.kind == kind && !a.default_value && !a.nullable;
      });
    };
    also(!sequences_.empty(), [](Choice& c) { c.rank = 1; });
    also(std::any_of(op_.operands.begin(), op_.operands.end(),
                     [](const OperandDecl& o) { return o.optional; }),
         [](Choice& c) { c.present = false; });
    also(lacks(AttributeKind::axis), [](Choice& c) { c.axis = 0; });
    also(lacks(AttributeKind::bool_), [](Choice& c) { c.flag = true; });
    return out;
  }

  // ---- one symbolic instance

  Outcome try_at(const DTypes& dtypes, Sizes sizes, const Choice& choice) {
    AttributeList given;
    Env env = stand_ins(dtypes, sizes, choice);
    for (const AttributeDecl& attribute : op_.attributes) {
      if (attribute.default_value || attribute.nullable) continue;
      const std::optional<Attribute> value = stand_in(attribute, dtypes, sizes, choice);
      if (!value) return {};
      given.emplace_back(context_.strings.intern(attribute.name), *value);
      env.insert_or_assign(attribute.name, *value);
    }
    const std::optional<std::vector<TypeId>> operands = operand_types(env, choice);
    if (!operands) return {};
    auto attributes = complete_attributes(context_, op_, std::move(given), *operands);
    if (!attributes) return {};
    auto types = body_types(context_, id_, *operands, *attributes);
    if (!types) return not_built(types.error());
    return compare(*operands, *attributes, *types);
  }

  Env stand_ins(const DTypes& dtypes, Sizes sizes, const Choice& choice) {
    Env env;
    std::size_t at = 0;
    for (const auto& [name, dtype] : dtypes) env.emplace(name, DTypeBinding{dtype, false});
    for (const std::string& name : dims_) env.emplace(name, size(name, at++, sizes));
    for (const std::string& name : sequences_) {
      Shape shape;
      for (std::size_t i = 0; i < choice.rank; ++i)
        shape.push_back(size(fmt::format("{}.{}", name, i), at++, sizes));
      env.emplace(name, std::move(shape));
    }
    return env;
  }

  /// Returns a size. Numbers are multiples of 64 by primes: no sum or product of few equals another
  /// by chance.
  DimId size(const std::string& name, std::size_t at, Sizes sizes) {
    constexpr std::int64_t kPrimes[] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41};
    switch (sizes.kind) {
      case Sizes::Kind::symbols: break;
      case Sizes::Kind::distinct:
        return context_.dims.constant(64 * kPrimes[at % std::size(kPrimes)]);
      case Sizes::Kind::alike: return context_.dims.constant(64);
    }
    return context_.dims.symbol(name);
  }

  std::optional<Attribute> stand_in(const AttributeDecl& decl, const DTypes& dtypes, Sizes sizes,
                                    const Choice& choice) {
    switch (decl.kind) {
      case AttributeKind::int_:
        if (sizes.kind == Sizes::Kind::symbols) return context_.dims.symbol(decl.name);
        return Attribute(sizes.kind == Sizes::Kind::alike ? sizes.attribute : power_of(decl));
      case AttributeKind::float_: return Attribute(0.5);
      case AttributeKind::bool_: return Attribute(choice.flag);
      case AttributeKind::str: return Attribute(std::string("any"));
      case AttributeKind::axis: return Attribute(choice.axis);
      case AttributeKind::dtype: return Attribute(dtypes.find(decl.name)->second);
      case AttributeKind::ints:
      case AttributeKind::dims:
      case AttributeKind::floats:
      case AttributeKind::strs: break;
    }
    return {};
  }

  std::string print_sizes() {
    const Sizes sizes{Sizes::Kind::distinct, 0};
    std::string out;
    std::size_t at = 0;
    for (const std::string& name : dims_)
      out += fmt::format(", {} = {}", name, context_.dims.print(size(name, at++, sizes)));
    for (const AttributeDecl& attribute : op_.attributes)
      if (attribute.kind == AttributeKind::int_ && !attribute.default_value && !attribute.nullable)
        out += fmt::format(", {} = {}", attribute.name, power_of(attribute));
    return out;
  }

  /// Returns 2, 4, 8, … by the attribute's place: divisors of all sizes.
  [[nodiscard]] std::int64_t power_of(const AttributeDecl& decl) const {
    return std::int64_t{2} << std::min<std::ptrdiff_t>(&decl - op_.attributes.data(), 5);
  }

  std::optional<std::vector<TypeId>> operand_types(const Env& env, const Choice& choice) {
    std::vector<TypeId> out;
    for (const OperandDecl& operand : op_.operands) {
      TypeId type = Types::unknown();
      if (operand.optional && !choice.present) {
        type = {};
      } else if (operand.type) {
        const std::optional<TypeId> known = type_of(*operand.type, env);
        if (!known) return {};
        type = *known;
      }
      out.push_back(type);
      if (operand.variadic) out.push_back(type);
    }
    return out;
  }

  std::optional<TypeId> type_of(TypeExpr type, const Env& env) {
    Env here = env;
    if (type.dtype.empty()) type.dtype.push_back(path_expr("f32"));
    if (type.any_shape) {
      here.insert_or_assign("shape", Shape{context_.dims.constant(64), context_.dims.constant(64)});
      type.any_shape = false;
      type.dims.push_back(path_expr("shape"));
    }
    auto known = instantiate_type(context_, type, here);
    if (!known) return {};
    return *known;
  }

  /// Reports only calls that cannot be valid for these operands. An error that depends on numbers
  /// of elements, or on a number's value, may be an implicit condition of the signature.
  [[nodiscard]] Outcome not_built(const Diagnostics& errors) const {
    constexpr std::string_view kCertain[] = {"PW0305", "PW0306", "PW0309", "PW0329"};
    const Diagnostic& why = errors.front();
    if (loose_ ||
        std::find(std::begin(kCertain), std::end(kCertain), why.code) == std::end(kCertain))
      return {};
    Misfit misfit;
    misfit.why = why;
    return {false, std::move(misfit)};
  }

  Outcome compare(const std::vector<TypeId>& operands, AttributesId attributes,
                  const std::vector<TypeId>& types) {
    Env env;
    for (const auto& [name, value] : context_.attributes[attributes])
      env.emplace(std::string(context_.strings.text(name)), value);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandDecl& decl = op_.operands[std::min(i, op_.operands.size() - 1)];
      if (operands[i].valid() && decl.type && !unify(context_, *decl.type, operands[i], env))
        return {};
    }
    bool open = false;
    for (std::size_t i = 0; i < op_.results.size() && i < types.size(); ++i) {
      const ResultDecl& result = op_.results[i];
      if (result.variadic || !result.type) continue;
      Outcome outcome = compare(*result.type, env, operands, types[i]);
      if (outcome.misfit) outcome.misfit->result = i;
      if (outcome.misfit) return outcome;
      open = open || !outcome.fits;
    }
    return {!open, {}};
  }

  Outcome compare(TypeExpr declared, const Env& env, const std::vector<TypeId>& operands,
                  TypeId given) {
    if (given == Types::unknown()) return {};
    const Type is = context_.types[given];
    const bool only_dtype = loose_ || declared.any_shape;
    if (only_dtype) {
      declared.any_shape = false;
      declared.dims.clear();
    }
    auto stated = instantiate_type(context_, declared, env, operands);
    if (!stated) return {};
    const Type wanted = context_.types[*stated];
    const bool shapes = only_dtype || same_shape(wanted.shape, is.shape);
    if (wanted.dtype == is.dtype && shapes) return {true, {}};
    Misfit out;
    out.declared = only_dtype ? std::string(name(wanted.dtype)) : context_.types.print(*stated);
    out.given = only_dtype ? std::string(name(is.dtype)) : context_.types.print(given);
    out.same_shape = shapes;
    out.other_kind = wanted.dtype != is.dtype || wanted.shape.size() != is.shape.size();
    return {false, std::move(out)};
  }

  bool same_shape(const Shape& a, const Shape& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (context_.dims.prove(Compare::eq, a[i], b[i], {}) != Truth::yes) return false;
    return true;
  }

  // ---- messages

  Diagnostic diagnose(Misfit misfit, const DTypes& dtypes) const {
    std::string with;
    for (const auto& [name, dtype] : dtypes)
      with += fmt::format(", {} = {}", name, pw::name(dtype));
    with += misfit.sizes;
    Diagnostic d = misfit.declared.empty() ? unbuilt(std::move(misfit)) : another_type(misfit);
    if (!with.empty()) d.notes.push_back("with " + with.substr(2));
    return d;
  }

  [[nodiscard]] Diagnostic another_type(const Misfit& misfit) const {
    const ResultDecl& result = op_.results[misfit.result];
    Diagnostic d = error_at(
        binder_of(result), "PW0225",
        fmt::format("the body of `{}` has type {}, but its signature declares {}", op_.name,
                    misfit.given, misfit.declared),
        misfit.same_shape
            ? "cast the value, as in `T(x)`, or declare the dtype that the body has"
            : "declare the shape that the body has, or reshape to the declared one in the body");
    d.label = "is " + misfit.given;
    d.secondary.push_back({result.span, "declared here"});
    return d;
  }

  [[nodiscard]] Diagnostic unbuilt(Misfit misfit) const {
    Diagnostic d = std::move(misfit.why);
    d.code = "PW0226";
    d.message = fmt::format("the body of `{}` does not fit its signature: {}", op_.name, d.message);
    if (d.help.empty()) d.help = "change the call, or declare the operands as the body needs them";
    d.secondary.push_back({op_.span, "for operands as declared here"});
    return d;
  }

  [[nodiscard]] Span binder_of(const ResultDecl& result) const {
    for (const Statement& statement : op_.body)
      for (const Binder& binder : statement.binders)
        if (binder.name == result.name) return binder.span;
    return result.span;
  }

  Context& context_;
  OpId id_;
  const Op op_;  // copied: building a body may declare ops
  std::set<std::string> dtypes_, dims_, sequences_;
  bool loose_ = false;  ///< an operand of any shape: statements about shapes depend on it
  bool sized_ = false;  ///< attributes give sizes
};

/// Returns true if the op calls one of these, directly or indirectly.
class Callers {
 public:
  Callers(const Context& context, const std::set<OpId>& of) : context_(context), of_(of) {}

  bool reaches(OpId id) {
    const auto [it, fresh] = known_.emplace(id, of_.contains(id));
    if (!fresh || it->second) return it->second;
    bool found = false;
    for (const Statement& statement : context_.ops[id].body) {
      visit_calls(statement, [&](const Expr& call) {
        if (OpId callee = context_.ops.find(call.text); callee.valid() && !found)
          found = reaches(callee);
      });
    }
    return known_[id] = found;
  }

 private:
  const Context& context_;
  const std::set<OpId>& of_;
  std::map<OpId, bool> known_;
};

}  // namespace

void check_body_types(const Context& context, const std::vector<OpId>& ops,
                      const std::set<OpId>& unsound, Diagnostics& out) {
  const bool any =
      std::any_of(ops.begin(), ops.end(), [&](OpId id) { return context.ops[id].has_body(); });
  const std::unique_ptr<Context> scratch = any ? copy_of(context) : nullptr;
  if (!scratch) return;
  std::map<OpId, Diagnostic> wrong;
  Callers skip(context, unsound);
  for (OpId id : ops) {
    if (!context.ops[id].has_body() || skip.reaches(id)) continue;
    if (auto misfit = BodyTypes(*scratch, id).run()) wrong.emplace(id, std::move(*misfit));
  }
  for (auto& [id, diagnostic] : wrong) {  // a caller of a wrong op is not a second mistake
    std::set<OpId> others;
    for (const auto& [other, d] : wrong)
      if (other != id) others.insert(other);
    if (!Callers(context, others).reaches(id)) out.push_back(diagnostic);
  }
}

}  // namespace pw
