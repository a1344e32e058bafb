#include "graph/text/json_records.hpp"

#include <fmt/format.h>

namespace pw {
namespace {

using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

constexpr std::size_t kMaxOperands = 1 << 20;

}  // namespace

template <class Table>
bool RecordReader::member(const Tree& tree, std::string_view key, bool required,
                          const Pointer& pointer, Table& table, NameId& out) {
  const Tree* value = tree.find(key);
  if (!value)
    return required
               ? check_.error(pointer, "PW1005", fmt::format("the member `{}` is missing", key))
               : true;
  const Pointer at = pointer / key;
  if (!check_.expect(*value, Kind::string, at)) return false;
  if (value->text.empty())
    return required ? check_.error(at, "PW1005", fmt::format("`{}` is empty", key)) : true;
  out = table.intern(value->text);
  return true;
}

void RecordReader::outputs(const Tree& list, const Pointer& pointer) {
  if (!check_.expect(list, Kind::array, pointer)) return;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    if (check_.expect(list.items[i], Kind::string, pointer / i))
      records_.outputs.push_back(records_.names.intern(list.items[i].text));
}

void RecordReader::writes(const Tree& object, const Pointer& pointer) {
  if (!check_.expect(object, Kind::object, pointer)) return;
  for (std::size_t i = 0; i < object.items.size(); ++i)
    if (check_.expect(object.items[i], Kind::string, pointer / object.keys[i]))
      records_.writes.emplace_back(records_.names.intern(object.keys[i]),
                                   records_.names.intern(object.items[i].text));
}

void RecordReader::input(const Tree& tree, const Pointer& pointer) {
  InputRecord record;
  NameId kind;
  bool ok = check_.known_keys(tree, {"name", "type", "kind", "replicated"}, pointer);
  ok = name(tree, pointer, record.name) && word(tree, "type", true, pointer, record.type) && ok;
  ok = word(tree, "kind", false, pointer, kind) && ok;
  if (kind.valid()) {
    bool found = false;
    for (InputKind k : {InputKind::input, InputKind::weight, InputKind::buffer})
      if (records_.word(kind) == pw::name(k)) record.kind = k, found = true;
    if (!found)
      ok = check_.error(pointer / "kind", "PW1005",
                        fmt::format("a kind must be input, weight or buffer, not `{}`",
                                    records_.word(kind).substr(0, 40)));
  }
  ok = replicated(tree, pointer / "replicated", record) && ok;
  if (ok) records_.inputs.push_back(std::move(record));
}

bool RecordReader::replicated(const Tree& tree, const Pointer& pointer, InputRecord& record) {
  const Tree* list = tree.find("replicated");
  if (!list) return true;
  if (!check_.expect(*list, Kind::array, pointer)) return false;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    if (!check_.expect(list->items[i], Kind::string, pointer / i)) return false;
    record.replicated.push_back(records_.words.intern(list->items[i].text));
  }
  return true;
}

void RecordReader::node(const Tree& tree, const Pointer& pointer) {
  NodeRecord record;
  record.first_operand = static_cast<std::uint32_t>(records_.operands.size());
  record.first_result = static_cast<std::uint32_t>(records_.results.size());
  bool ok = check_.known_keys(
      tree, {"name", "op", "operands", "attributes", "results", "group", "source"}, pointer);
  ok = name(tree, pointer, record.name) && word(tree, "op", true, pointer, record.op) && ok;
  ok = word(tree, "group", false, pointer, record.group) &&
       word(tree, "source", false, pointer, record.source) && ok;
  ok = operands(tree, pointer) && results(tree, record.name, pointer) && ok;
  ok = attributes_.read(tree, pointer, record.attributes) && ok;
  record.operand_count =
      static_cast<std::uint32_t>(records_.operands.size()) - record.first_operand;
  record.result_count = static_cast<std::uint32_t>(records_.results.size()) - record.first_result;
  if (ok) records_.nodes.push_back(record);
}

bool RecordReader::operands(const Tree& tree, const Pointer& pointer) {
  const Tree* list = tree.find("operands");
  if (!list) return true;
  const Pointer at = pointer / "operands";
  if (!check_.expect(*list, Kind::array, at)) return false;
  if (list->items.size() > kMaxOperands)
    return check_.error(at, "PW1002", fmt::format("more than {} operands", kMaxOperands));
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const Tree& item = list->items[i];
    if (item.kind != Kind::null && !check_.expect(item, Kind::string, at / i)) return false;
    records_.operands.push_back(item.kind == Kind::null ? NameId()
                                                        : records_.names.intern(item.text));
  }
  return true;
}

bool RecordReader::results(const Tree& tree, NameId node, const Pointer& pointer) {
  const Tree* list = tree.find("results");
  if (!list) {
    if (node.valid()) records_.results.push_back({node, {}});
    return true;
  }
  const Pointer at = pointer / "results";
  if (!check_.expect(*list, Kind::array, at)) return false;
  if (list->items.size() > kMaxOperands)
    return check_.error(at, "PW1002", fmt::format("more than {} results", kMaxOperands));
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const Pointer place = at / i;
    ResultRecord result;
    if (!check_.expect(list->items[i], Kind::object, place) ||
        !check_.known_keys(list->items[i], {"name", "type"}, place))
      return false;
    if (!name(list->items[i], place, result.name) ||
        !word(list->items[i], "type", false, place, result.type))
      return false;
    records_.results.push_back(result);
  }
  return true;
}

}  // namespace pw
