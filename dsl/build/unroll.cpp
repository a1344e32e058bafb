#include "dsl/build/unroll.hpp"

#include <algorithm>
#include <optional>

#include "dsl/syntax/names.hpp"

namespace pw {
namespace {

class Unroller {
 public:
  Unroller(const Rule& rule, std::size_t count) : rule_(rule), count_(count), out_(rule) {
    out_.nodes = {};
    out_.values = {};
    out_.members = {};
    out_.unless.clear();
    out_.lists.clear();
    out_.outputs.clear();
    out_.consumed.clear();
  }

  Rule run() {
    for (std::size_t i = 0; i < rule_.values.size(); ++i) copy_value(PatternValueId(i));
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i) copy(PatternNodeId(i));
    for (const std::string& name : rule_.outputs) {
      if (!rule_.lists.contains(name)) out_.outputs.push_back(name);
      for (std::size_t k = 0; rule_.lists.contains(name) && k < count_; ++k)
        out_.outputs.push_back(element_name(name, k));
    }
    if (out_.fused) {
      std::string& op = out_.replacement.front().value.text;
      op = op.substr(0, op.rfind('*') + 1) + std::to_string(count_);
    }
    return std::move(out_);
  }

 private:
  using Member = std::optional<std::size_t>;

  [[nodiscard]] bool varies(PatternValueId id) const {
    const PatternValue& value = rule_.values[id];
    if (value.list || (value.producer.valid() && rule_.nodes[value.producer].members.valid()))
      return true;
    if (!value.name.empty() || value.producer.valid()) return false;
    return std::any_of(rule_.nodes.begin(), rule_.nodes.end(), [&](const PatternNode& node) {
      return node.members.valid() &&
             std::find(node.operands.begin(), node.operands.end(), id) != node.operands.end();
    });
  }

  void copy_value(PatternValueId id) {
    std::vector<PatternValueId>& copies = copies_.emplace_back();
    const bool several = varies(id);
    for (std::size_t k = 0; k < (several ? count_ : 1); ++k) {
      PatternValue value = rule_.values[id];
      Member member;
      if (several) member = k;
      if (several && !value.name.empty()) value.name = element_name(value.name, k);
      value.list = false;
      value.producer = {};
      for (TypeExpr& type : value.types) {
        for (Expr& dtype : type.dtype) rename(dtype, member);
        for (Expr& dim : type.dims) rename(dim, member);
      }
      copies.push_back(out_.values.push_back(std::move(value)));
    }
  }

  void copy(PatternNodeId id) {
    const PatternNode& node = rule_.nodes[id];
    if (node.negation >= 0) return;
    if (!node.members.valid()) return emit(node, std::nullopt);
    const std::vector<PatternNodeId>& nodes = rule_.members[node.members].nodes;
    if (nodes.front() != id) return;
    for (std::size_t k = 0; k < count_; ++k)
      for (PatternNodeId member : nodes) emit(rule_.nodes[member], k);
  }

  void emit(const PatternNode& node, Member member) {
    PatternNode made = node;
    made.members = {};
    made.operands = take(node.operands, member);
    made.results = take(node.results, member);
    for (PatternAttribute& attribute : made.attributes) rename(attribute.value, member);
    const PatternNodeId id = out_.nodes.push_back(std::move(made));
    const std::vector<PatternValueId>& results = out_.nodes[id].results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      out_.values[results[i]].producer = id;
      out_.values[results[i]].result = static_cast<int>(i);
    }
  }

  [[nodiscard]] std::vector<PatternValueId> take(const std::vector<PatternValueId>& ids,
                                                 Member member) const {
    std::vector<PatternValueId> out;
    for (PatternValueId id : ids) {
      const std::vector<PatternValueId>& copies = copies_[id.index];
      if (member && copies.size() > 1)
        out.push_back(copies[*member]);
      else
        out.insert(out.end(), copies.begin(), copies.end());
    }
    return out;
  }

  /// Renames lists to numbered elements: one of them in a member, all of them for `m...`.
  void rename(Expr& expr, Member member) const {
    std::vector<Expr> args;
    for (Expr& arg : expr.args) {
      if (arg.kind != Expr::Kind::spread) {
        rename(arg, member);
        args.push_back(std::move(arg));
        continue;
      }
      for (std::size_t k = 0; k < count_; ++k) {
        args.push_back(arg.args.front());
        rename(args.back(), k);
      }
    }
    expr.args = std::move(args);
    if (take_element(expr)) return;
    const bool name = expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star;
    if (name && member && rule_.lists.contains(expr.text))
      expr.text = element_name(expr.text, *member);
  }

  /// Replaces `xs[1]` by the name of that element.
  bool take_element(Expr& expr) const {
    if (expr.kind != Expr::Kind::index || expr.args[0].kind != Expr::Kind::path ||
        !rule_.lists.contains(expr.args[0].text))
      return false;
    const std::optional<std::int64_t> at = element_of(expr);
    const auto length = static_cast<std::int64_t>(count_);
    if (!at || *at < -length || *at >= length) return false;
    Expr element = expr.args[0];
    element.text =
        element_name(element.text, static_cast<std::size_t>(*at < 0 ? *at + length : *at));
    expr = std::move(element);
    return true;
  }

  const Rule& rule_;
  std::size_t count_;
  Rule out_;
  std::vector<std::vector<PatternValueId>> copies_;  // by PatternValueId
};

}  // namespace

std::string element_name(const std::string& list, std::size_t i) {
  return list + "#" + std::to_string(i);
}

Rule unroll(const Rule& rule, std::size_t count) { return Unroller(rule, count).run(); }

}  // namespace pw
