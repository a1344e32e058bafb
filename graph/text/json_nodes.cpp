#include "graph/text/json_nodes.hpp"

#include <fmt/format.h>

#include "graph/text/type_text.hpp"

namespace pw {
namespace {

using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

/// Returns the part of a node that an error is about.
std::string part_of(const std::string& code) {
  if (code == "PW0307" || code == "PW0308" || code == "PW0309" || code == "PW0310")
    return "/attributes";
  if (code == "PW0305" || code == "PW0306" || code == "PW0312") return "/operands";
  return "";
}

}  // namespace

void NamedOps::declare(const Tree& tree, const Pointer& pointer, const OpParser& parse_op,
                       RecordReader& reader) {
  Result<Op> op = Op();
  if (tree.kind == Kind::object) {
    NameId name;
    if (!check_.known_keys(tree, {"imported", "effect"}, pointer) ||
        !reader.word(tree, "imported", true, pointer, name))
      return;
    op->name = records_.word(name);
    op->imported = true;
    if (const Tree* effect = tree.find("effect")) {
      if (!check_.expect(*effect, Kind::boolean, pointer / "effect")) return;
      op->traits.effect = effect->boolean;
    }
  } else {
    if (!check_.expect(tree, Kind::string, pointer)) return;
    op = parse_op ? parse_op(context_, tree.text)
                  : Result<Op>(fail(error_in("", "PW1005", "op declarations cannot be read here")));
    if (op) op->local = true;
  }
  const NameId spelt = op ? records_.words.intern(op->name) : NameId();
  const bool imported = op && op->imported;
  Result<OpId> id = op ? declare_imported(context_, std::move(*op))
                       : Result<OpId>(tl::unexpected<Diagnostics>(op.error()));
  if (id && imported) imported_.emplace_back(spelt, *id);
  if (id) return;
  for (Diagnostic& d : id.error()) check_.add(std::move(d), pointer.text());
}
OpId NamedOps::find(NameId word) {
  if (ops_.size() <= word.index) ops_.resize(records_.words.size());
  for (; imported_read_ < imported_.size(); ++imported_read_)
    ops_[imported_[imported_read_].first] = imported_[imported_read_].second;
  if (!ops_[word].valid()) ops_[word] = context_.ops.find(records_.word(word));
  return ops_[word];
}

std::optional<TypeId> RecordBuilder::type(NameId spelt, const Pointer& pointer) {
  if (types_.size() <= spelt.index) types_.resize(records_.words.size());
  if (types_[spelt].valid()) return types_[spelt];
  TextResult<TypeId> parsed = parse_type(context_, records_.word(spelt), [&](std::string_view s) {
    return graph_.facts.find(s) != nullptr;
  });
  if (!parsed) {
    check_.error(
        pointer, "PW1007",
        fmt::format("{} (at byte {} of the type)", parsed.error().message, parsed.error().offset),
        parsed.error().help);
    return std::nullopt;
  }
  return types_[spelt] = *parsed;
}

void RecordBuilder::build(const NodeRecord& record, const Pointer& pointer) {
  const OpId op = ops_.find(record.op);
  if (!op.valid()) {
    const std::string near = nearest(records_.word(record.op), context_.ops.names());
    check_.error(pointer / "op", "PW1014",
                 fmt::format("unknown op `{}`", records_.word(record.op).substr(0, 80)),
                 near.empty() ? "declare it in \"ops\"" : "did you mean `" + near + "`?");
    return poison(record);
  }
  operand_values_.clear();
  operand_types_.clear();
  for (NameId name : records_.operands_of(record)) {
    const ValueId v = name.valid() ? definitions_.value(name) : ValueId();
    if (name.valid() && !v.valid()) return poison(record);  // its producer is already in error
    operand_values_.push_back(v);
    operand_types_.push_back(v.valid() ? graph_.type(v) : TypeId());
  }
  std::uint64_t hash = combine(combine(op.index, record.attributes.index), record.result_count);
  for (TypeId type : operand_types_) hash = combine(hash, type.index);
  const std::uint32_t known = known_index_.find(hash, [&](std::uint32_t i) {
    const Known& k = known_[i];
    return k.op == op && k.given == record.attributes && k.wanted == record.result_count &&
           k.operands == operand_types_;
  });
  NodeId node;
  if (known != HashIndex::kNone) {
    node = add_known(record, op, known_[known]);
  } else {
    Result<NodeId> built = add_new(record, op, pointer);
    if (!built) {
      for (Diagnostic& d : built.error()) {
        std::string at = pointer.text() + part_of(d.code);
        check_.add(std::move(d), at);
      }
      return poison(record);
    }
    node = *built;
    if (!context_.ops[op].imported) remember(record, node, hash);
  }
  check_results(record, node, pointer);
}
void RecordBuilder::poison(const NodeRecord& record) {
  for (const ResultRecord& result : records_.results_of(record))
    definitions_.value(result.name) = {};
}
NodeId RecordBuilder::add_known(const NodeRecord& record, OpId op, const Known& known) {
  const std::span<const ResultRecord> results = records_.results_of(record);
  result_names_.clear();
  for (std::size_t i = 0; i < known.types.size(); ++i)
    result_names_.push_back(i < results.size()
                                ? records_.names.add_to(context_.value_names, results[i].name)
                                : ValueNameId());
  const NodeId node =
      graph_.add_node(op, operand_values_, known.attributes, known.types, result_names_,
                      graph_.place_of(place_text(record.group), place_text(record.source)));
  if (known.types.empty() || results.empty() || results[0].name != record.name)
    graph_.give_name(node, records_.text(record.name));
  return node;
}
TextId RecordBuilder::place_text(NameId spelt) {
  if (!spelt.valid()) return {};
  if (place_texts_.size() <= spelt.index) place_texts_.resize(records_.words.size());
  TextId& known = place_texts_[spelt];
  if (!known.valid()) known = context_.value_names.intern(records_.word(spelt));
  return known;
}
Result<NodeId> RecordBuilder::add_new(const NodeRecord& record, OpId op, const Pointer& pointer) {
  NodeRequest request;
  request.op = op;
  request.operands = operand_values_;
  request.attributes = context_.attributes[record.attributes];
  request.name = records_.text(record.name);
  const Pointer results = pointer / "results";
  for (std::size_t i = 0; i < record.result_count; ++i) {
    const ResultRecord& result = records_.results_of(record)[i];
    request.result_names.emplace_back(records_.text(result.name));
    if (!context_.ops[op].imported || !result.type.valid()) continue;
    const Pointer at = results / i;
    std::optional<TypeId> stated = type(result.type, at / "type");
    request.stated.resize(i, Types::unknown());
    request.stated.push_back(stated.value_or(Types::unknown()));
  }
  if (record.group.valid()) request.group = records_.word(record.group);
  if (record.source.valid()) request.source = records_.word(record.source);
  return build_node(graph_, request);
}
void RecordBuilder::remember(const NodeRecord& record, NodeId node, std::uint64_t hash) {
  Known known{graph_.op(node), record.attributes,       record.result_count,
              operand_types_,  graph_.attributes(node), {}};
  for (std::size_t i = 0; i < graph_.result_count(node); ++i)
    known.types.push_back(graph_.type(graph_.result(node, i)));
  known_index_.insert(hash, static_cast<std::uint32_t>(known_.size()));
  known_.push_back(std::move(known));
}
void RecordBuilder::check_results(const NodeRecord& record, NodeId node, const Pointer& pointer) {
  const std::size_t count = graph_.result_count(node);
  const Pointer list = pointer / "results";
  if (count != record.result_count) {
    check_.error(list, "PW1015",
                 fmt::format("`{}` has {} result{}, not {}", records_.word(record.op), count,
                             count == 1 ? "" : "s", record.result_count),
                 "name each of them in \"results\"");
    return poison(record);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const ResultRecord& result = records_.results_of(record)[i];
    const ValueId v = graph_.result(node, i);
    definitions_.value(result.name) = v;
    if (!result.type.valid()) continue;
    const Pointer place = list / i, at = place / "type";
    const std::optional<TypeId> stated = type(result.type, at);
    if (!stated || *stated == Types::unknown() || *stated == graph_.type(v)) continue;
    if (graph_.type(v) == Types::unknown())
      graph_.set_type(v, *stated);
    else
      check_.error(at, "PW1016",
                   fmt::format("`{}` is declared as {}, but `{}` gives {}",
                               records_.text(result.name), context_.types.print(*stated),
                               records_.word(record.op), context_.types.print(graph_.type(v))));
  }
}

}  // namespace pw
