#include "discover/rule_text.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/text/text.hpp"

namespace pw::discover {
namespace {

bool wide_float(DType dtype) { return is_float(dtype) && size_of(dtype) >= 2; }

/// Prints one side, one statement a line.
class Writer {
 public:
  Writer(Context& context, const General& general, const TextOptions& options)
      : context_(context), general_(general), options_(options) {
    for (const Step& step : general.pair.after.steps)
      for (const auto& [name, value] : context.attributes[step.attributes])
        after_.emplace(context.strings.text(name), context.attributes.print(value));
    for (const Step& step : general.pair.before.steps)
      for (const auto& [name, value] : context.attributes[step.attributes])
        if (!before_.emplace(context.strings.text(name), context.attributes.print(value)).second)
          twice_.emplace(context.strings.text(name));
  }

  std::string side(const Form& form, bool left) {
    names_.clear();
    const std::size_t inputs = general_.pair.inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) names_.push_back(fmt::format("x{}", i));
    std::set<std::size_t> used(form.outputs.begin(), form.outputs.end());
    for (const Step& step : form.steps) used.insert(step.operands.begin(), step.operands.end());
    std::string text;
    for (const Step& step : form.steps) {
      std::vector<std::string> results;
      for (std::size_t i = 0; i < step.results; ++i) {
        const std::size_t value = names_.size();
        const auto output = std::find(form.outputs.begin(), form.outputs.end(), value);
        results.push_back(
            output != form.outputs.end() ? fmt::format("y{}", output - form.outputs.begin())
            : used.contains(value)       ? fmt::format("{}{}", left ? "t" : "u", temporaries_++)
                                         : std::string("_"));
        names_.push_back(results.back());
      }
      text += fmt::format("  {} = {}\n", fmt::join(results, ", "), call(step, left));
    }
    for (std::size_t i = 0; i < form.outputs.size(); ++i) {
      const std::string name = fmt::format("y{}", i);
      if (names_[form.outputs[i]] != name)
        text += fmt::format("  {} = {}\n", name, names_[form.outputs[i]]);
    }
    return text;
  }

  /// Symbols bound by the left side.
  [[nodiscard]] const std::set<std::string>& bound() const { return bound_; }
  /// Symbols that occur in no input type.
  [[nodiscard]] std::set<std::string> captured_sizes() const {
    std::set<std::string> out;
    std::set_difference(bound_.begin(), bound_.end(), typed_.begin(), typed_.end(),
                        std::inserter(out, out.end()));
    return out;
  }

 private:
  std::string call(const Step& step, bool left) {
    const Op& op = context_.ops[step.op];
    std::vector<std::string> operands;
    for (std::size_t operand : step.operands) {
      if (operand == kAbsent)
        operands.emplace_back("none");
      else if (left && operand < general_.pair.inputs.size() && annotated_.insert(operand).second)
        operands.push_back(names_[operand] + ": " + type(general_.pair.inputs[operand]));
      else
        operands.push_back(names_[operand]);
    }
    return fmt::format("{}({}){}", print_path(op.name), fmt::join(operands, ", "),
                       attributes(op, step.attributes, left));
  }

  std::string attributes(const Op& op, AttributesId id, bool left) {
    std::vector<std::string> out;
    for (const auto& [key, value] : context_.attributes[id]) {
      const std::string name(context_.strings.text(key));
      const std::string text = context_.attributes.print(value);
      const AttributeDecl* declared = op.attribute(name);
      if (options_.captured && captured(name, text, value)) {
        out.push_back(print_word(name));
        continue;
      }
      if (left) note_bound(value);
      if (declared && declared->default_value && *declared->default_value == value) continue;
      out.push_back(print_word(name) + " = " + text);
    }
    return out.empty() ? "" : fmt::format("{{{}}}", fmt::join(out, ", "));
  }

  /// A number, flag or string that occurs in one node of the left side and in the right side.
  [[nodiscard]] bool captured(const std::string& name, const std::string& text,
                              const Attribute& value) const {
    if (!std::holds_alternative<double>(value) && !std::holds_alternative<bool>(value) &&
        !std::holds_alternative<std::string>(value) && !std::holds_alternative<std::int64_t>(value))
      return false;
    if (name.starts_with("dim")) return false;
    const auto before = before_.find(name), after = after_.find(name);
    return before != before_.end() && after != after_.end() && before->second == text &&
           after->second == text && !twice_.contains(name);
  }

  void note_bound(const Attribute& value) {
    if (const auto* dims = std::get_if<std::vector<DimId>>(&value))
      for (DimId dim : *dims)
        if (context_.dims.is_symbol(dim)) bound_.insert(context_.dims.print(dim));
  }

  std::string type(TypeId id) {
    const Type& of = context_.types[id];
    const std::string dtype = options_.any_dtype && wide_float(of.dtype)
                                  ? of.dtype == general_dtype() ? "T" : std::string(name(of.dtype))
                                  : std::string(name(of.dtype));
    if (options_.any_rank) return dtype + "[*b]";
    std::vector<std::string> dims;
    for (DimId dim : of.shape) {
      const std::string text = context_.dims.print(dim);
      if (context_.dims.is_symbol(dim)) {
        bound_.insert(text);
        typed_.insert(text);
      }
      const bool plain = context_.dims.is_symbol(dim) || context_.dims.value(dim);
      dims.push_back(plain ? text : sum_name(dim));
    }
    return fmt::format("{}[{}]", dtype, fmt::join(dims, ", "));
  }

  /// Equal sums share one name, because their equality is a condition of the rule.
  std::string sum_name(DimId dim) {
    return fmt::format("w{}", sums_.emplace(dim, sums_.size()).first->second);
  }

  /// Dtype of the first such floating input.
  [[nodiscard]] DType general_dtype() const {
    for (TypeId type : general_.pair.inputs)
      if (wide_float(context_.types[type].dtype)) return context_.types[type].dtype;
    return DType::f32;
  }

  Context& context_;
  const General& general_;
  const TextOptions& options_;
  std::map<std::string, std::string> before_, after_;
  std::set<std::string> twice_, bound_, typed_;
  std::set<std::size_t> annotated_;
  std::vector<std::string> names_;
  std::map<DimId, std::size_t> sums_;
  std::size_t temporaries_ = 0;
};

void note_symbols(Context& context, const Form& form, std::set<std::string>& out) {
  for (const Step& step : form.steps)
    for (const auto& [name, value] : context.attributes[step.attributes]) {
      std::vector<DimId> dims;
      if (const auto* dim = std::get_if<DimId>(&value)) dims = {*dim};
      if (const auto* list = std::get_if<std::vector<DimId>>(&value)) dims = *list;
      for (DimId dim : dims)
        for (const std::string& symbol : context.dims.symbols(dim)) out.insert(symbol);
    }
}

/// A guard for each weight from which the right side precomputes a value.
std::string constants(const Context& context, const Pair& pair) {
  std::vector<bool> fixed;
  std::set<std::size_t> guarded;
  for (std::size_t i = 0; i < pair.inputs.size(); ++i) fixed.push_back(pair.weight(i));
  for (const Step& step : pair.after.steps) {
    const bool all = !step.operands.empty() &&
                     std::all_of(step.operands.begin(), step.operands.end(),
                                 [&](std::size_t v) { return v == kAbsent || fixed[v]; });
    if (all && context.ops[step.op].does_work())
      for (std::size_t v : step.operands)
        if (v < pair.inputs.size()) guarded.insert(v);
    fixed.insert(fixed.end(), step.results, all);
  }
  std::string out;
  for (std::size_t v : guarded)
    out += fmt::format("{}constant(x{})", out.empty() ? "  where " : ", ", v);
  return out.empty() ? out : out + "\n";
}

std::set<std::size_t> inputs_of(const Form& form, std::size_t inputs) {
  std::set<std::size_t> out;
  for (const Step& step : form.steps)
    for (std::size_t operand : step.operands)
      if (operand < inputs) out.insert(operand);
  return out;
}

}  // namespace

std::optional<std::string> rule_text(Context& context, const General& general,
                                     const std::string& name, const TextOptions& options) {
  const Pair& pair = general.pair;
  if (pair.before.steps.empty()) return std::nullopt;
  const std::set<std::size_t> read = inputs_of(pair.before, pair.inputs.size());
  for (std::size_t input : inputs_of(pair.after, pair.inputs.size()))
    if (!read.contains(input)) return std::nullopt;
  for (std::size_t output : pair.after.outputs)
    if (output < pair.inputs.size() && !read.contains(output)) return std::nullopt;
  for (std::size_t output : pair.before.outputs)
    if (output < pair.inputs.size()) return std::nullopt;  // nothing to rebind
  Writer writer(context, general, options);
  const std::string left = writer.side(pair.before, true);
  const std::string right = writer.side(pair.after, false);
  std::set<std::string> needed, kept;
  note_symbols(context, pair.after, kept);
  note_symbols(context, pair.before, needed);
  needed.insert(kept.begin(), kept.end());
  if (!options.any_rank)
    for (const std::string& symbol : needed)
      if (!writer.bound().contains(symbol)) return std::nullopt;
  // Names bound only by attributes of the left side must be dropped explicitly.
  std::string dropped;
  for (const std::string& symbol : writer.captured_sizes())
    if (!kept.contains(symbol)) dropped += fmt::format("  _ = {}\n", symbol);
  return fmt::format("rule {} {{\n{}{}  =>\n{}{}}}\n", name, left, constants(context, pair), right,
                     dropped);
}

std::string rule_name(const Context& context, const Pair& pair) {
  const auto ops = [&](const Form& form) {
    std::string out;
    for (const Step& step : form.steps) {
      std::string op = context.ops[step.op].name;
      std::replace(op.begin(), op.end(), '.', '_');
      out += (out.empty() ? "" : "_") + op;
    }
    return out.empty() ? "nothing" : out;
  };
  return ops(pair.before) + "_to_" + ops(pair.after);
}

std::optional<std::string> test_text(Context& context, const General& general,
                                     const std::string& name,
                                     const std::vector<std::int64_t>& sizes,
                                     const std::string& tolerance, bool once) {
  const std::optional<Pair> at = at_sizes(context, general, sizes);
  if (!at) return std::nullopt;
  std::string inputs, out;
  for (std::size_t i = 0; i < at->inputs.size(); ++i)
    inputs += fmt::format("  in {}x{}: {}\n", at->weight(i) ? "weight " : "", i,
                          context.types.print(at->inputs[i]));
  const General plain{*at, {}};
  TextOptions options;
  options.captured = false;
  Writer writer(context, plain, options);
  // Written as a right side: inputs without types.
  std::string body = writer.side(at->before, false);
  for (std::size_t i = 0; i < at->before.outputs.size(); ++i)
    out += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
  std::string text;
  if (once) text += fmt::format("pass once_{0} = once {{ {0} }}\n", name);
  return text + fmt::format(
                    "test {0}_keeps_the_numbers {{\n  graph {{\n{1}{2}  out {3}\n  }}\n"
                    "  apply {4}{0}\n  expect {0} == 1\n  expect numeric within {5}\n}}\n",
                    name, inputs, body, out, once ? "once_" : "", tolerance);
}

}  // namespace pw::discover
