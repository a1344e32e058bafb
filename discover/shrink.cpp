#include <algorithm>
#include <set>

#include "discover/windows.hpp"
#include "rewriter/egraph/cost.hpp"

namespace pw::discover {
namespace {

// Half of the first is not a size itself, so halved sizes are distinct from the others.
constexpr std::int64_t kSmall[] = {5, 6, 8, 14, 3, 4, 2, 10, 12, 16, 18, 24, 48};
constexpr std::size_t kMostTries = 400;

class Shrinking {
 public:
  Shrinking(Context& context, const Pair& pair, const Facts& facts)
      : context_(context), pair_(pair), real_(representative_sizes(facts)) {
    for (TypeId type : pair.inputs)
      if (type.valid() && type != Types::unknown())
        for (DimId dim : context.types[type].shape) note(dim);
    for (const Step& step : pair.before.steps) note(step);
    for (DimId dim : all_)
      if (!sums_.contains(dim)) free_.push_back(dim);
    std::sort(free_.begin(), free_.end(),
              [&](DimId a, DimId b) { return std::pair(number(a), a) < std::pair(number(b), b); });
  }

  std::optional<Shrunk> run() {
    if (!types_of(context_, pair_.before, pair_.inputs) || !choose(0)) return std::nullopt;
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::int64_t number(DimId dim) const {
    if (const auto value = context_.dims.value(dim)) return *value;
    std::map<std::string, DimId, std::less<>> with;
    for (const auto& [symbol, size] : real_) with[symbol] = context_.dims.constant(size);
    return context_.dims.value(context_.dims.substitute(dim, with)).value_or(0);
  }

  void note(DimId dim) {
    const auto value = context_.dims.value(dim);
    if (!value || *value > 1) all_.insert(dim);
  }

  /// Numbers in attributes are sizes too, unless they are axes.
  [[nodiscard]] std::optional<DimId> size_of(const Op& op, NameId key,
                                             const Attribute& value) const {
    const AttributeDecl* declared = op.attribute(context_.strings.text(key));
    if (!declared || declared->kind != AttributeKind::int_) return std::nullopt;
    if (const auto* dim = std::get_if<DimId>(&value)) return *dim;
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole && *whole > 1 ? std::optional(context_.dims.constant(*whole)) : std::nullopt;
  }

  void note(const Step& step) {
    const Op& op = context_.ops[step.op];
    const bool takes_apart = !op.results.empty() && op.results.back().variadic;
    for (const auto& [key, value] : context_.attributes[step.attributes]) {
      if (const auto size = size_of(op, key, value)) note(*size);
      const auto* dims = std::get_if<std::vector<DimId>>(&value);
      if (!dims) continue;
      DimId sum = context_.dims.constant(0);
      for (DimId dim : *dims) {
        note(dim);
        sum = context_.dims.add(sum, dim);
      }
      if (takes_apart && dims->size() > 1) sums_.emplace(sum, *dims);
    }
  }

  /// Assigns numbers to the free sizes from `next` on.
  bool choose(std::size_t next) {
    if (next == free_.size()) return ++tries_ <= kMostTries && complete();
    for (std::int64_t size : kSmall) {
      if (!taken_.insert(size).second) continue;
      small_[free_[next]] = size;
      if (choose(next + 1)) return true;
      taken_.erase(size);
      if (tries_ > kMostTries) return false;
    }
    return false;
  }

  bool complete() {
    std::map<DimId, std::int64_t> sizes = small_;
    std::set<std::int64_t> taken = taken_;
    Shrunk out{pair_, {}, {}};
    std::set<DimId> open;
    for (const auto& [sum, parts] : sums_) open.insert(sum);
    while (!open.empty()) {
      const auto ready = std::find_if(open.begin(), open.end(), [&](DimId sum) {
        const auto& parts = sums_.at(sum);
        return std::all_of(parts.begin(), parts.end(), [&](DimId part) {
          return sizes.contains(part) || context_.dims.value(part) == std::int64_t{1};
        });
      });
      if (ready == open.end()) return false;
      std::int64_t total = 0;
      std::vector<std::int64_t> parts;
      for (DimId part : sums_.at(*ready)) {
        parts.push_back(sizes.contains(part) ? sizes.at(part) : 1);
        total += parts.back();
      }
      if (!taken.insert(total).second) return false;
      sizes[*ready] = total;
      out.parts[total] = parts;
      open.erase(ready);
    }
    for (TypeId& type : out.pair.inputs) type = small(type, sizes);
    for (Step& step : out.pair.before.steps) step.attributes = small(step, sizes);
    if (!types_of(context_, out.pair.before, out.pair.inputs)) return false;
    for (const auto& [dim, size] : sizes) out.real[size] = number(dim);
    found_ = std::move(out);
    return true;
  }

  [[nodiscard]] DimId small(DimId dim, const std::map<DimId, std::int64_t>& sizes) const {
    const auto size = sizes.find(dim);
    return size == sizes.end() ? dim : context_.dims.constant(size->second);
  }

  TypeId small(TypeId type, const std::map<DimId, std::int64_t>& sizes) {
    if (!type.valid() || type == Types::unknown()) return type;
    const Type of = context_.types[type];
    Shape shape;
    for (DimId dim : of.shape) shape.push_back(small(dim, sizes));
    return context_.types.get(of.dtype, shape);
  }

  AttributesId small(const Step& step, const std::map<DimId, std::int64_t>& sizes) {
    AttributeList list = context_.attributes[step.attributes];
    for (auto& [key, value] : list) {
      if (const auto size = size_of(context_.ops[step.op], key, value)) {
        const auto found = sizes.find(*size);
        if (found != sizes.end()) value = found->second;
      }
      if (auto* dims = std::get_if<std::vector<DimId>>(&value))
        for (DimId& dim : *dims) dim = small(dim, sizes);
    }
    return context_.attributes.intern(std::move(list));
  }

  Context& context_;
  const Pair& pair_;
  SymbolSizes real_;
  std::set<DimId> all_;
  std::map<DimId, std::vector<DimId>> sums_;
  std::vector<DimId> free_;
  std::map<DimId, std::int64_t> small_;
  std::set<std::int64_t> taken_;
  std::size_t tries_ = 0;
  std::optional<Shrunk> found_;
};

}  // namespace

std::optional<Shrunk> shrunk(Context& context, const Pair& pair, const Facts& facts) {
  return Shrinking(context, pair, facts).run();
}

}  // namespace pw::discover
