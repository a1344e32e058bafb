#include <fmt/format.h>

#include "graph/build.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

class Unifier {
 public:
  Unifier(Context& context, Env& env, std::string* why) : context_(context), env_(env), why_(why) {}

  bool dtype(const Expr& e, const Type& type) {
    if (e.kind != Expr::Kind::path)
      return say("`" + print(e) + "` cannot be matched against a dtype");
    if (auto literal = dtype_named(e.text); literal && !env_.contains(e.text))
      return *literal == type.dtype ||
             say(fmt::format("dtype {} is not {}", name(type.dtype), e.text));
    DTypeBinding found{type.dtype, type.shape.empty()};
    auto it = env_.find(e.text);
    if (it == env_.end()) {
      env_.emplace(e.text, found);
      return true;
    }
    if (auto known = std::get_if<DTypeBinding>(&it->second))
      return known->dtype == type.dtype ||
             say(fmt::format("with {} = {}", e.text, name(known->dtype)));
    if (auto a = std::get_if<Attribute>(&it->second))
      if (auto d = std::get_if<DType>(a))
        return *d == type.dtype || say(fmt::format("with {} = {}", e.text, name(*d)));
    return say("`" + e.text + "` is not a dtype here");
  }

  bool shape(const std::vector<Expr>& pattern, const Shape& shape) {
    std::size_t fixed = 0;
    const Expr* open = nullptr;  // the first sequence that is not bound yet
    bool several = false;
    for (const Expr& e : pattern) {
      if (e.kind != Expr::Kind::star) {
        ++fixed;
      } else if (const Shape* known = sequence(e)) {
        fixed += known->size();
      } else if (open) {
        several = true;
      } else {
        open = &e;
      }
    }
    if (several && fixed <= shape.size()) return first_split(pattern, shape, fixed);
    if (open ? shape.size() < fixed : shape.size() != fixed)
      return say(fmt::format("rank {} does not fit", shape.size()));
    std::size_t at = 0;
    for (const Expr& e : pattern) {
      if (e.kind == Expr::Kind::star) {
        std::size_t n = shape.size() - fixed;
        if (const Shape* known = sequence(e)) {
          for (DimId d : *known)
            if (d != shape[at++])
              return say(fmt::format("with *{} = {}", e.text, context_.types.print(*known)));
          continue;
        }
        if (!e.text.empty())
          env_.insert_or_assign(e.text, Shape(shape.begin() + static_cast<std::ptrdiff_t>(at),
                                              shape.begin() + static_cast<std::ptrdiff_t>(at + n)));
        at += n;
        continue;
      }
      if (!dim(e, shape[at++])) return false;
    }
    return true;
  }

 private:
  /// Splits several sequences of unknown lengths so that the first one is as short as possible.
  bool first_split(const std::vector<Expr>& pattern, const Shape& shape, std::size_t fixed) {
    const auto open = std::find_if(pattern.begin(), pattern.end(), [&](const Expr& e) {
      return e.kind == Expr::Kind::star && sequence(e) == nullptr;
    });
    std::size_t begin = 0;
    for (auto e = pattern.begin(); e != open; ++e)
      begin += e->kind == Expr::Kind::star ? sequence(*e)->size() : 1;
    for (std::size_t length = 0; length <= shape.size() - fixed; ++length) {
      const Env before = env_;
      std::vector<Expr> left = pattern;
      Expr& first = left[static_cast<std::size_t>(open - pattern.begin())];
      if (first.text.empty()) first.text = "*";  // no name, but the same in all tries
      const auto from = shape.begin() + static_cast<std::ptrdiff_t>(begin);
      const std::string name = first.text;
      env_.insert_or_assign(name, Shape(from, from + static_cast<std::ptrdiff_t>(length)));
      const bool fits = this->shape(left, shape);
      if (name == "*") env_.erase(name);
      if (fits) return true;
      env_ = before;
    }
    return say("no end of the first sequence fits");
  }

  bool say(std::string text) {
    if (why_) *why_ = std::move(text);
    return false;
  }

  const Shape* sequence(const Expr& e) const {
    auto it = e.text.empty() ? env_.end() : env_.find(e.text);
    return it == env_.end() ? nullptr : std::get_if<Shape>(&it->second);
  }

  void free_names(const Expr& e, std::vector<std::string>& out) const {
    if (e.kind == Expr::Kind::path && !env_.contains(e.text) &&
        std::find(out.begin(), out.end(), e.text) == out.end())
      out.push_back(e.text);
    for (const Expr& arg : e.args) free_names(arg, out);
  }

  bool dim(const Expr& e, DimId found) {
    if (e.kind == Expr::Kind::path && e.text == "_") return true;
    if (e.kind == Expr::Kind::path && !env_.contains(e.text)) {
      env_.emplace(e.text, found);
      return true;
    }
    std::vector<std::string> free;
    free_names(e, free);
    if (free.size() > 1) return say("`" + print(e) + "` has more than one unknown");
    if (free.size() == 1) return solve(e, free[0], found);
    Result<Attribute> value = evaluate(context_, nullptr, e, env_);
    if (!value) return say(value.error().front().message);
    const DimId wanted = dim_value(context_.dims, *value).value_or(DimId());
    if (wanted == found && wanted.valid()) return true;
    bool literal = e.kind == Expr::Kind::integer;
    return say(literal ? fmt::format("{} is not {}", context_.dims.print(found), e.integer)
                       : fmt::format("with {} = {}", print(e), context_.attributes.print(*value)));
  }

  /// Solves `2*d` for d against a dim: with d a fresh symbol s, the expression is a·s + b, and d =
  /// (dim − b) / a.
  bool solve(const Expr& e, const std::string& variable, DimId found) {
    Dims& dims = context_.dims;
    auto at = [&](DimId value) -> DimId {
      Env env = env_;
      env.insert_or_assign(variable, value);
      return dim_value(context_, nullptr, e, env).value_or(DimId());
    };
    DimId fresh = dims.symbol("?");
    DimId b = at(dims.constant(0)), one = at(dims.constant(1)), general = at(fresh);
    DimId a = dims.sub(one, b);
    if (!general.valid() || dims.add(dims.mul(a, fresh), b) != general)
      return say("`" + print(e) + "` is not linear in " + variable);
    DimId rest = dims.sub(found, b);
    DimId q = rest.valid() && dims.value(a) != 0 ? dims.div(rest, a) : DimId();
    if (!q.valid() || dims.mul(q, a) != rest)
      return say(fmt::format("{} is not of the form {}", dims.print(found), print(e)));
    env_.emplace(variable, q);
    return true;
  }

  Context& context_;
  Env& env_;
  std::string* why_;
};

}  // namespace

bool unify(Context& context, const TypeExpr& pattern, TypeId type, Env& env, std::string* why) {
  if (type == Types::unknown()) {
    if (pattern.any_shape && (pattern.dtype.empty() || !dtype_named(pattern.dtype[0].text)))
      return true;
    if (why) *why = "its type is not known";
    return false;
  }
  Unifier unifier(context, env, why);
  Type t = context.types[type];
  if (!pattern.dtype.empty() && !unifier.dtype(pattern.dtype[0], t)) return false;
  return pattern.any_shape || unifier.shape(pattern.dims, t.shape);
}

}  // namespace pw
