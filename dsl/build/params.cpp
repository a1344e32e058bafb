#include "dsl/build/params.hpp"

#include "base/parse_number.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

Diagnostic unknown_param(const RuleSet& rules, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, param] : rules.params) names.push_back(known);
  std::string listed;
  for (const std::string& n : names) listed += (listed.empty() ? "params are " : ", ") + n;
  return error_in(
      "-D " + name, "PW0421", "no param is called " + in_ticks(name),
      did_you_mean(name, names, listed.empty() ? "the rules declare no params" : listed));
}

}  // namespace

Binding binding_of(const Attribute& value) {
  if (const auto* dtype = std::get_if<DType>(&value)) return DTypeBinding{*dtype, false};
  return value;
}

void build_params(const Program& program, RuleSet& set, Diagnostics& out) {
  for (const auto& [name, item] : program.params) {
    const auto kind = attribute_kind_named(item->kind);
    const bool plain = kind && (*kind == AttributeKind::int_ || *kind == AttributeKind::float_ ||
                                *kind == AttributeKind::bool_ || *kind == AttributeKind::str ||
                                *kind == AttributeKind::dtype);
    if (!plain) {
      out.push_back(
          error_at(item->span, "PW0420",
                   "a param is int, float, bool, str or dtype, not " + in_ticks(item->kind)));
      continue;
    }
    Param param{name, item->span, *kind, None{}};
    if (item->value) {
      if (auto value = literal_attribute(*item->value, *kind, false, set.context->dims, out))
        param.value = std::move(*value);
    }
    set.params.emplace(name, std::move(param));
  }
}

std::optional<Attribute> parse_param(AttributeKind kind, std::string_view text) {
  if (kind == AttributeKind::int_) return parse_number<std::int64_t>(text);
  if (kind == AttributeKind::float_) return parse_number<double>(text);
  if (kind == AttributeKind::str) return Attribute(std::string(text));
  if (kind == AttributeKind::bool_) {
    if (text == "true" || text == "1") return Attribute(true);
    if (text == "false" || text == "0") return Attribute(false);
    return {};
  }
  if (kind == AttributeKind::dtype) {
    if (auto dtype = dtype_named(text)) return Attribute(*dtype);
  }
  return {};
}

Result<Env> bind_params(const RuleSet& rules,
                        const std::vector<std::pair<std::string, std::string>>& definitions) {
  Diagnostics out;
  Env env;
  for (const auto& [name, text] : definitions) {
    const auto it = rules.params.find(name);
    if (it == rules.params.end()) {
      out.push_back(unknown_param(rules, name));
      continue;
    }
    auto value = parse_param(it->second.kind, text);
    if (value) {
      env.insert_or_assign(name, binding_of(*value));
    } else {
      out.push_back(error_in("-D " + name + "=" + text, "PW0422",
                             "param " + in_ticks(name) + " is of kind " +
                                 std::string(pw::name(it->second.kind)) + ", which " +
                                 in_ticks(text) + " is not"));
    }
  }
  for (const auto& [name, param] : rules.params) {
    if (env.contains(name)) continue;
    if (!std::holds_alternative<None>(param.value)) {
      env.emplace(name, binding_of(param.value));
    } else {
      out.push_back(error_at(param.span, "PW0423",
                             "param " + in_ticks(name) + " has no default and was not set",
                             "set it with -D " + name + "=…"));
    }
  }
  if (!out.empty()) return tl::unexpected<Diagnostics>(std::move(out));
  return env;
}

}  // namespace pw
