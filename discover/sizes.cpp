#include "discover/sizes.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "algebra/union_find.hpp"

namespace pw::discover {
namespace {

using Substitution = std::map<std::string, DimId, std::less<>>;

TypeId substituted(Context& context, TypeId type, const Substitution& with) {
  if (!type.valid() || type == Types::unknown()) return type;
  const Type of = context.types[type];
  Shape shape;
  for (DimId dim : of.shape) shape.push_back(context.dims.substitute(dim, with));
  return context.types.get(of.dtype, shape);
}

Attribute substituted(Context& context, const Attribute& value, const Substitution& with) {
  const auto plain = [&](DimId dim) -> Attribute {
    if (const auto number = context.dims.value(dim)) return *number;
    return dim;
  };
  if (const auto* dim = std::get_if<DimId>(&value))
    return plain(context.dims.substitute(*dim, with));
  if (const auto* dims = std::get_if<std::vector<DimId>>(&value)) {
    std::vector<DimId> out;
    for (DimId dim : *dims) out.push_back(context.dims.substitute(dim, with));
    return out;
  }
  return value;
}

AttributesId substituted(Context& context, AttributesId id, const Substitution& with) {
  AttributeList list = context.attributes[id];
  for (auto& [name, value] : list) value = substituted(context, value, with);
  return context.attributes.intern(std::move(list));
}

std::string symbol_name(std::size_t i) {
  constexpr std::string_view kNames = "nmkpqrs";
  return i < kNames.size() ? std::string(1, kNames[i]) : fmt::format("d{}", i);
}

/// Sizes that ops require to be equal, collected op by op.
class Sizes {
 public:
  Sizes(Context& context, const Pair& pair, const Parts& parts, bool backwards)
      : context_(context), pair_(pair), backwards_(backwards) {
    for (TypeId type : pair.inputs) {
      std::vector<std::vector<std::size_t>>& axes = inputs_.emplace_back();
      for (DimId dim : context.types[type].shape) {
        const std::int64_t size = context.dims.value(dim).value_or(0);
        std::vector<std::size_t>& atoms = axes.emplace_back();
        const auto found = parts.find(size);
        if (size == 1) continue;  // broadcasts: stays
        for (std::int64_t part :
             found == parts.end() ? std::vector<std::int64_t>{size} : found->second) {
          atoms.push_back(values_.size());
          values_.push_back(part);
        }
      }
    }
    equal_.grow(values_.size());
  }

  std::optional<General> run() {
    for (std::size_t round = 0; round <= 2 * values_.size() + 2; ++round) {
      changed_ = false;
      std::optional<General> out = attempt();
      if (out) return named(std::move(*out));
      if (!changed_) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static std::string atom_name(std::size_t atom) { return fmt::format("@{:02}", atom); }

  TypeId input_type(std::size_t i) {
    Shape shape;
    for (const std::vector<std::size_t>& atoms : inputs_[i]) {
      DimId sum = context_.dims.constant(atoms.empty() ? 1 : 0);
      for (std::size_t atom : atoms)
        sum = context_.dims.add(sum, context_.dims.symbol(atom_name(equal_.root(atom))));
      shape.push_back(sum);
    }
    return context_.types.get(context_.types[pair_.inputs[i]].dtype, shape);
  }

  std::optional<General> attempt() {
    General out{pair_, {}};
    for (std::size_t i = 0; i < pair_.inputs.size(); ++i) out.pair.inputs[i] = input_type(i);
    const auto before = typed(out.pair.before, out.pair.inputs);
    // Continue even if the first requires equal sizes: for two equal sums, the other side may
    // determine which parts correspond.
    const auto after = typed(out.pair.after, out.pair.inputs);
    if (!before || !after) return std::nullopt;
    for (std::size_t i = 0; i < pair_.before.outputs.size(); ++i) {
      const TypeId a = (*before)[pair_.before.outputs[i]], b = (*after)[pair_.after.outputs[i]];
      if (a == b) continue;
      make_equal({a, b}, [&](const Substitution& with) {
        return substituted(context_, a, with) == substituted(context_, b, with);
      });
      return std::nullopt;
    }
    return out;
  }

  /// Assigns symbols to the steps' attributes; nothing if sizes had to be made equal first.
  std::optional<std::vector<TypeId>> typed(Form& form, const std::vector<TypeId>& inputs) {
    std::vector<TypeId> types = inputs;
    for (Step& step : form.steps) {
      std::vector<TypeId> operands;
      for (std::size_t operand : step.operands)
        operands.push_back(operand == kAbsent ? TypeId() : types[operand]);
      step.attributes = with_symbols(step, operands);
      const auto count = static_cast<int>(step.results);
      const auto results = infer_types(context_, step.op, operands, step.attributes, count);
      if (results) {
        types.insert(types.end(), results->begin(), results->end());
        continue;
      }
      make_equal(operands, [&](const Substitution& with) {
        std::vector<TypeId> coloured;
        for (TypeId type : operands) coloured.push_back(substituted(context_, type, with));
        return infer_types(context_, step.op, coloured,
                           substituted(context_, step.attributes, with), count)
            .has_value();
      });
      return std::nullopt;
    }
    return types;
  }

  /// A list of sizes along an axis of the first operand becomes sums of that axis' symbols.
  AttributesId with_symbols(const Step& step, const std::vector<TypeId>& operands) {
    AttributeList list = context_.attributes[step.attributes];
    std::optional<std::size_t> axis;
    for (const auto& [name, value] : list)
      if (const auto* number = std::get_if<std::int64_t>(&value);
          number && context_.strings.text(name) == "dim")
        axis = static_cast<std::size_t>(*number);
    if (!axis || operands.empty() || !operands[0].valid()) return step.attributes;
    const Shape shape = context_.types[operands[0]].shape;
    if (*axis >= shape.size()) return step.attributes;
    for (auto& [name, value] : list)
      if (const auto* dims = std::get_if<std::vector<DimId>>(&value))
        if (auto sums = sums_of(shape[*axis], *dims)) value = *sums;
    return context_.attributes.intern(std::move(list));
  }

  std::optional<std::vector<DimId>> sums_of(DimId dim, const std::vector<DimId>& sizes) {
    std::vector<std::size_t> atoms;
    for (std::size_t atom = 0; atom < values_.size(); ++atom) {
      if (equal_.root(atom) != atom) continue;
      // Its coefficient in the sum: the growth of the sum when it grows by one.
      const Substitution none = all_at(0);
      Substitution one = none;
      one[atom_name(atom)] = context_.dims.constant(1);
      const auto count = context_.dims.value(context_.dims.sub(
          context_.dims.substitute(dim, one), context_.dims.substitute(dim, none)));
      if (!count || *count < 0 || *count > 16) return std::nullopt;
      atoms.insert(atoms.end(), static_cast<std::size_t>(*count), atom);
    }
    if (backwards_) std::reverse(atoms.begin(), atoms.end());
    std::vector<DimId> out;
    std::size_t next = 0;
    for (DimId size : sizes) {
      std::int64_t rest = context_.dims.value(size).value_or(-1);
      DimId sum = context_.dims.constant(0);
      for (; rest > 0 && next < atoms.size(); ++next) {
        rest -= values_[atoms[next]];
        sum = context_.dims.add(sum, context_.dims.symbol(atom_name(atoms[next])));
      }
      if (rest != 0) return std::nullopt;
      out.push_back(sum);
    }
    return next == atoms.size() ? std::optional(out) : std::nullopt;
  }

  Substitution all_at(std::int64_t value) {
    Substitution out;
    for (std::size_t i = 0; i < values_.size(); ++i)
      out[atom_name(i)] = context_.dims.constant(value);
    return out;
  }

  /// Two symbols may differ if some assignment of two sizes that `holds` gives them different
  /// sizes.
  template <class Holds>
  void make_equal(const std::vector<TypeId>& types, const Holds& holds) {
    std::set<std::string> names;
    for (TypeId type : types) {
      if (!type.valid() || type == Types::unknown()) continue;
      for (DimId dim : context_.types[type].shape)
        for (const std::string& name : context_.dims.symbols(dim)) names.insert(name);
    }
    const std::vector<std::string> in(names.begin(), names.end());
    constexpr std::size_t kMost = 10;
    if (in.size() < 2 || in.size() > kMost) return;
    const std::uint32_t all = (1u << in.size()) - 1;
    std::vector<std::uint32_t> block(in.size(), all);
    for (std::uint32_t set = 1; set < all; ++set) {
      Substitution with;
      for (std::size_t i = 0; i < in.size(); ++i)
        with[in[i]] = context_.dims.symbol((set >> i & 1) != 0 ? "@p" : "@q");
      if (!holds(with)) continue;
      for (std::size_t i = 0; i < in.size(); ++i)
        block[i] &= (set >> i & 1) != 0 ? set : all & ~set;
    }
    bool merged = false;
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t j = i + 1; j < in.size(); ++j) {
        const std::size_t a = equal_.root(atom_of(in[i])), b = equal_.root(atom_of(in[j]));
        if ((block[i] >> j & 1) == 0 || a == b || values_[a] != values_[b]) continue;
        equal_.join(a, b);
        merged = true;
      }
    changed_ |= merged || pair_up(types, holds);
  }

  /// If two sums must be equal but no two symbols must, equates their parts in order.
  template <class Holds>
  bool pair_up(const std::vector<TypeId>& types, const Holds& holds) {
    std::vector<std::vector<std::size_t>> sums;
    for (TypeId type : types) {
      if (!type.valid() || type == Types::unknown()) continue;
      for (DimId dim : context_.types[type].shape)
        if (context_.dims.symbols(dim).size() > 1) sums.push_back(parts_of(dim));
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      for (std::size_t j = i + 1; j < sums.size(); ++j) {
        if (sums[i] == sums[j] || sums[i].size() != sums[j].size()) continue;
        Substitution with;
        bool same = true;
        for (std::size_t part = 0; part < sums[i].size(); ++part) {
          same = same && values_[sums[i][part]] == values_[sums[j][part]];
          with[atom_name(sums[j][part])] = context_.dims.symbol(atom_name(sums[i][part]));
        }
        if (!same || !holds(with)) continue;
        for (std::size_t part = 0; part < sums[i].size(); ++part)
          equal_.join(sums[i][part], sums[j][part]);
        return true;
      }
    return false;
  }

  static std::size_t atom_of(std::string_view name) {
    return std::stoul(std::string(name.substr(1)));
  }
  /// Sorted by number, without repetition.
  std::vector<std::size_t> parts_of(DimId dim) {
    std::vector<std::size_t> out;
    for (const std::string& name : context_.dims.symbols(dim)) out.push_back(atom_of(name));
    std::sort(out.begin(), out.end());
    return out;
  }

  General named(General general) {
    Substitution with;
    for (std::size_t atom = 0; atom < values_.size(); ++atom) {
      if (equal_.root(atom) != atom) continue;
      const std::string name = symbol_name(general.symbols.names.size());
      with[atom_name(atom)] = context_.dims.symbol(name);
      general.symbols.names.push_back(name);
      general.symbols.values.push_back(values_[atom]);
    }
    for (TypeId& type : general.pair.inputs) type = substituted(context_, type, with);
    for (Form* form : {&general.pair.before, &general.pair.after})
      for (Step& step : form->steps) step.attributes = substituted(context_, step.attributes, with);
    return general;
  }

  Context& context_;
  const Pair& pair_;
  bool backwards_;
  std::vector<std::vector<std::vector<std::size_t>>> inputs_;  // atoms by input and axis
  std::vector<std::int64_t> values_;                           // by atom
  UnionFind<std::size_t> equal_;                               // atoms
  bool changed_ = false;
};

}  // namespace

std::optional<General> generalised(Context& context, const Pair& pair, const Parts& parts) {
  std::optional<General> out = Sizes(context, pair, parts, false).run();
  return out ? out : Sizes(context, pair, parts, true).run();
}

std::optional<Pair> at_sizes(Context& context, const General& general,
                             const std::vector<std::int64_t>& sizes) {
  Substitution with;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    with[general.symbols.names[i]] = context.dims.constant(sizes[i]);
  Pair out = general.pair;
  for (TypeId& type : out.inputs) type = substituted(context, type, with);
  for (Form* form : {&out.before, &out.after})
    for (Step& step : form->steps) step.attributes = substituted(context, step.attributes, with);
  return out;
}

}  // namespace pw::discover
