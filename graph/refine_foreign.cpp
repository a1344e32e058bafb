// Lowers calls that were unknown when a graph was written and are known now.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/parse_number.hpp"
#include "base/try.hpp"
#include "graph/foreign.hpp"

namespace pw {
namespace {

constexpr std::string_view kTwin = " (as in the graph)";

ForeignValue value_of(const Attribute& attribute) {
  if (std::holds_alternative<None>(attribute)) return {};
  if (auto d = std::get_if<DimId>(&attribute)) return {*d};
  return {attribute};
}

/// Reader of a call's skeleton, `%0, None, mask = $arg2, [%1, %2]`.
class Skeleton {
 public:
  Skeleton(const Graph& graph, NodeId node, std::string_view text)
      : graph_(graph), node_(node), text_(text) {}

  std::optional<ForeignArguments> read() {
    ForeignArguments out;
    for (skip(); at_ < text_.size(); skip()) {
      const std::string name = keyword();
      std::optional<ForeignValue> value = item(0);
      if (!value) return std::nullopt;
      if (name.empty())
        out.positional.push_back(std::move(*value));
      else
        out.keywords.emplace_back(name, std::move(*value));
      skip();
      if (at_ < text_.size() && text_[at_++] != ',') return std::nullopt;
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_in_name(text_[at_]) || text_[at_] == '.' || text_[at_] == '-'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string keyword() {
    const std::size_t begin = at_;
    const std::string name(word());
    skip();
    if (!name.empty() && at_ < text_.size() && text_[at_] == '=') {
      ++at_;
      skip();
      return name;
    }
    at_ = begin;
    return {};
  }
  std::optional<ForeignValue> item(int depth) {
    if (at_ >= text_.size() || depth > 8) return std::nullopt;
    const char c = text_[at_];
    if (c == '[' || c == '(') return list(depth);
    if (c == '%') {
      ++at_;
      const std::string_view digits = word();
      std::size_t k = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
      if (bad != std::errc() || k >= graph_.operand_count(node_)) return std::nullopt;
      const ValueId v = graph_.operand(node_, k);
      return v.valid() ? ForeignValue{v} : ForeignValue{};
    }
    if (c == '$') {
      ++at_;
      const Attribute* a = graph_.attribute(node_, word());
      return a ? std::optional(value_of(*a)) : std::nullopt;
    }
    const std::string text(word());
    if (text.empty()) return std::nullopt;
    if (text == "None") return ForeignValue{};
    if (text == "True" || text == "False") return ForeignValue{Attribute(text == "True")};
    return ForeignValue{Absent{}, text};
  }
  std::optional<ForeignValue> list(int depth) {
    const char close = text_[at_++] == '[' ? ']' : ')';
    std::vector<ValueId> tensors;
    bool plain = true;
    for (skip(); at_ < text_.size() && text_[at_] != close; skip()) {
      std::optional<ForeignValue> value = item(depth + 1);
      if (!value) return std::nullopt;
      const ValueId* v = std::get_if<ValueId>(&value->value);
      plain = plain && v;
      if (v) tensors.push_back(*v);
      skip();
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
    if (at_ >= text_.size()) return std::nullopt;
    ++at_;
    if (!plain) return ForeignValue{Absent{}, "a list with items other than tensors"};
    return ForeignValue{std::move(tensors)};
  }

  const Graph& graph_;
  NodeId node_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Returns the position in a name: `arg3` → 3.
std::optional<std::size_t> position_of(std::string_view name) {
  constexpr std::string_view kArgument = "arg";
  if (!name.starts_with(kArgument) || name.size() == kArgument.size()) return std::nullopt;
  name.remove_prefix(kArgument.size());
  const auto k = parse_number<std::size_t>(name);
  return k && *k <= 4096 ? k : std::nullopt;
}

/// Assigns arguments without a skeleton: `arg2` is at position 2, operands take the positions that
/// remain, other attributes are keywords.
ForeignArguments plain_call(const Graph& graph, NodeId node) {
  const Context& context = graph.context();
  ForeignArguments out;
  std::map<std::size_t, ForeignValue> placed;
  for (const auto& [key, value] : context.attributes[graph.attributes(node)]) {
    const std::string_view name = context.strings.text(key);
    if (name == "writes" || name == "call" || name == "shared") continue;
    if (auto k = position_of(name))
      placed.emplace(*k, value_of(value));
    else
      out.keywords.emplace_back(std::string(name), value_of(value));
  }
  const auto take = [&] {
    for (auto it = placed.find(out.positional.size()); it != placed.end();
         it = placed.find(out.positional.size())) {
      out.positional.push_back(std::move(it->second));
      placed.erase(it);
    }
  };
  for (ValueId v : graph.operands(node)) {
    take();
    out.positional.push_back(v.valid() ? ForeignValue{v} : ForeignValue{});
  }
  take();
  for (auto& [k, value] : placed) out.positional.push_back(std::move(value));
  return out;
}

std::vector<std::size_t> written_operands(const Graph& graph, NodeId node) {
  std::vector<std::size_t> out;
  const Attribute* writes = graph.attribute(node, "writes");
  const auto* list = writes ? std::get_if<std::vector<DimId>>(writes) : nullptr;
  for (DimId d : list ? *list : std::vector<DimId>())
    if (auto k = graph.context().dims.value(d); k && *k >= 0)
      out.push_back(static_cast<std::size_t>(*k));
  return out;
}

class Refiner {
 public:
  explicit Refiner(Graph& graph) : graph_(graph), context_(graph.context()) {}

  /// Returns the reason of a refusal, or nothing on success.
  Result<std::optional<std::string>> node(NodeId node) {
    const std::string name = graph_.op_of(node).name;
    std::string_view target = name;
    const bool twin = target.ends_with(kTwin);
    if (twin) target.remove_suffix(kTwin.size());
    ForeignOps::Items items;
    if (const auto* found = context_.foreign ? context_.foreign->find(target) : nullptr)
      items = *found;
    if (auto declared = declared_foreign(context_, target)) items.push_back(std::move(declared));
    if (items.empty()) return std::optional<std::string>("");
    ForeignArguments arguments;
    const Attribute* call = graph_.attribute(node, "call");
    if (const auto* text = call ? std::get_if<std::string>(call) : nullptr) {
      auto read = Skeleton(graph_, node, *text).read();
      if (!read) return std::optional<std::string>("its attribute `call` cannot be read");
      arguments = std::move(*read);
    } else {
      arguments = plain_call(graph_, node);
    }
    std::string why;
    for (const auto& item : items) {
      auto done = PW_TRY(apply(node, *item, arguments));
      if (done.empty()) return std::optional<std::string>();
      why = done;
    }
    if (twin)
      return fail(error_in("op `" + std::string(target) + "`", "PW0514",
                           "a call of `" + std::string(graph_.node_name(node)) +
                               "` does not match the declaration of this op: " + why,
                           "correct the declaration, or remove it to keep the op opaque"));
    return std::optional<std::string>(why);
  }

 private:
  /// Returns the reason of a refusal, or "".
  Result<std::string> apply(NodeId node, const ForeignOp& op, const ForeignArguments& arguments) {
    auto values = bind_foreign(context_, op, arguments);
    if (!values) return values.error();
    auto env = match_foreign(graph_, op, *values);
    if (!env) return env.error();
    BuildOptions options;
    options.group = graph_.group(node);
    options.source = graph_.source(node);
    options.name_prefix = std::string(graph_.node_name(node)) + "__";
    const NodeId saved = graph_.insertion_point();
    graph_.insert_before(node);
    auto built = build_foreign(graph_, op, std::move(*env), options);
    graph_.insert_before(saved);
    if (!built) return built.error();
    const std::vector<std::size_t> writes = written_operands(graph_, node);
    const std::size_t count = graph_.result_count(node);
    const std::size_t returned = count - std::min(count, writes.size());
    std::vector<ValueId> now(built->returned.begin(),
                             built->returned.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                           returned, built->returned.size())));
    if (now.size() < returned) {
      drop(*built);
      return fmt::format("it returns {} values, but the graph names {}", built->returned.size(),
                         returned);
    }
    for (std::size_t i = 0; i < writes.size() && returned + i < count; ++i)
      now.push_back(contents(node, writes[i], op, *values, *built));
    PW_TRY(agree(node, now));
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId old = graph_.result(node, i);
      graph_.replace_uses(old, now[i]);
      const NodeId maker = graph_.producer(now[i]);
      if (maker.valid() &&
          std::find(built->nodes.begin(), built->nodes.end(), maker) != built->nodes.end())
        graph_.take_name(now[i], old);
    }
    graph_.erase(node);
    return std::string();
  }

  void drop(const ForeignResults& built) {
    for (auto it = built.nodes.rbegin(); it != built.nodes.rend(); ++it) graph_.erase(*it);
  }

  /// Returns the contents of operand k after the call: those that the item states, else the old
  /// ones.
  ValueId contents(NodeId node, std::size_t k, const ForeignOp& op, const ForeignValues& values,
                   const ForeignResults& built) const {
    const ValueId operand = k < graph_.operand_count(node) ? graph_.operand(node, k) : ValueId();
    for (const auto& [parameter, value] : built.written) {
      const auto& given = values[parameter];
      const ValueId* v = given ? std::get_if<ValueId>(&given->value) : nullptr;
      if (v && *v == operand && op.parameters[parameter].written()) return value;
    }
    return operand;
  }

  Status agree(NodeId node, const std::vector<ValueId>& now) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      const TypeId stated = graph_.type(graph_.result(node, i)), type = graph_.type(now[i]);
      if (stated == Types::unknown() || stated == type) continue;
      if (type == Types::unknown()) {
        graph_.set_type(now[i], stated);
        continue;
      }
      return fail(error_in(
          fmt::format("node {} of op `{}`", graph_.node_name(node), graph_.op_of(node).name),
          "PW0515",
          fmt::format("`{}` is declared as {}, but the mapping of the op gives {}",
                      graph_.value_name(graph_.result(node, i)), context_.types.print(stated),
                      context_.types.print(type))));
    }
    return {};
  }

  Graph& graph_;
  Context& context_;
};

}  // namespace

Status refine_imported(Graph& graph, std::map<std::string, std::string>* reasons) {
  for (NodeId node : graph.order()) {
    if (!graph.op_of(node).imported) continue;
    const std::string name = graph.op_of(node).name;
    auto why = PW_TRY(Refiner(graph).node(node));
    if (reasons && why && !why->empty()) reasons->emplace(name, *why);
  }
  return {};
}

Result<OpId> declare_imported(Context& context, Op op, std::string* called) {
  const OpId known = context.ops.find(op.name);
  if (op.imported && known.valid() && !context.ops[known].imported) op.name += kTwin;
  if (called) *called = op.name;
  return context.ops.declare(std::move(op));
}

}  // namespace pw
