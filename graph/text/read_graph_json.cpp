// The text is streamed into short records. Then names are resolved, order and cycles are checked,
// and nodes are built as by any other front end. Names and words are numbered in tables of the
// reader, which are freed with it: a graph of a million nodes must not leave a million strings.
// Parsed types, attribute lists and inferred types are cached.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/foreign.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/attribute_json.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/json_checks.hpp"
#include "graph/text/numbered_names.hpp"
#include "graph/text/type_text.hpp"

namespace pw {
namespace {

using json::kTop;
using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

constexpr std::size_t kMaxOperands = 1 << 20;
constexpr std::string_view kFormat = "piecewise.graph/1";

// `name` is an id of Reader::names_, all else of Reader::words_.
struct InputRecord {
  NameId name, type;
  InputKind kind = InputKind::input;
  std::vector<NameId> replicated;
};
struct ResultRecord {
  NameId name, type;  // an invalid type is not stated
};
struct NodeRecord {
  NameId name, op, group, source;
  AttributesId attributes;                             // as they were given
  std::uint32_t first_operand = 0, operand_count = 0;  // of Reader::operands_
  std::uint32_t first_result = 0, result_count = 0;    // of Reader::results_
};

class Reader {
 public:
  Reader(const ContextPtr& context, const std::string& file, const OpParser& parse_op,
         const StageProgress& progress)
      : context_(*context),
        file_(file),
        parse_op_(parse_op),
        progress_(progress),
        graph_(context),
        check_(file, {"PW1005", "PW1006"}) {
    graph_.trust_names(true);  // define() guarantees uniqueness
  }

  Result<Graph> read(std::string_view text, bool whole) {
    json::Sink sink;
    sink.streamed = {"inputs", "nodes", "ops"};
    sink.element = [&](std::string_view key, std::size_t i, const Tree& tree) {
      element(key, i, tree);
    };
    sink.member = [&](std::string_view key, const Tree& tree) { member(key, tree); };
    sink.progress = progress_;
    auto scanned = json::scan(text, file_, sink);
    if (!scanned) check_.add(std::move(scanned.error()));
    if (scanned && !has_format_)
      check_.error(kTop, "PW1005", "the member `format` is missing",
                   fmt::format("write \"format\": \"{}\"", kFormat));
    if (scanned && has_format_ && !has_outputs_)
      check_.error(kTop / "outputs", "PW1005", "the member `outputs` is missing",
                   "a graph without outputs computes nothing; is the file cut off?");
    if (check_.passed()) check_symbols();
    if (check_.passed()) build();
    if (!check_.passed()) return tl::unexpected<Diagnostics>(check_.take());
    if (!whole) return std::move(graph_);
    if (!imported_.empty()) graph_.trust_names(false);  // refining makes names up
    if (!imported_.empty()) PW_TRY(refine_imported(graph_));
    for (const WriteProblem& p : declare_writes(graph_))
      check_.error_at(pointer_to(p.node), kUndeclaredWrite, p.message, p.help);
    if (!check_.passed()) return tl::unexpected<Diagnostics>(check_.take());
    graph_.settle();
    return std::move(graph_);
  }

 private:
  std::string text(NameId name) const { return names_.text(name); }
  std::string_view word(NameId word) const { return words_.text(word); }
  std::string word_or_empty(NameId id) const {
    return id.valid() ? std::string(word(id)) : std::string();
  }
  std::span<const NameId> operands_of(const NodeRecord& node) const {
    return std::span(operands_).subspan(node.first_operand, node.operand_count);
  }
  std::span<const ResultRecord> results_of(const NodeRecord& node) const {
    return std::span(results_).subspan(node.first_result, node.result_count);
  }

  // Reads a non-empty string member; an invalid id if it is absent and optional.
  template <class Table>
  bool string_member(const Tree& tree, std::string_view key, bool required, const Pointer& pointer,
                     Table& table, NameId& out) {
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

  /// Returns the pointer to the node as written, also for what refinement made of an unknown op.
  [[nodiscard]] std::string pointer_to(NodeId node) const {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (text(nodes_[n].name) == graph_.node_name(node)) return fmt::format("/nodes/{}", n);
    return "/nodes";
  }

  // ---- scanning
  void member(std::string_view key, const Tree& tree) {
    if (check_.full()) return;
    const Pointer pointer = kTop / key;
    if (key == "format") {
      has_format_ = true;
      if (check_.expect(tree, Kind::string, pointer) && tree.text != kFormat)
        check_.error(pointer, "PW1005", fmt::format("unknown format `{}`", tree.text.substr(0, 80)),
                     fmt::format("this program reads {}", kFormat));
    } else if (key == "name") {
      if (check_.expect(tree, Kind::string, pointer)) graph_.name = tree.text;
    } else if (key == "symbols") {
      if (check_.expect(tree, Kind::object, pointer)) declare_symbols(tree, pointer);
    } else if (key == "outputs") {
      has_outputs_ = true;
      if (!check_.expect(tree, Kind::array, pointer)) return;
      for (std::size_t i = 0; i < tree.items.size(); ++i)
        if (check_.expect(tree.items[i], Kind::string, pointer / i))
          outputs_.push_back(names_.intern(tree.items[i].text));
    } else if (key == "writes") {
      if (!check_.expect(tree, Kind::object, pointer)) return;
      for (std::size_t i = 0; i < tree.items.size(); ++i)
        if (check_.expect(tree.items[i], Kind::string, pointer / tree.keys[i]))
          writes_.emplace_back(names_.intern(tree.keys[i]), names_.intern(tree.items[i].text));
    } else if (key == "inputs" || key == "nodes" || key == "ops") {
      check_.expect(tree, Kind::array, pointer);
    } else {
      check_.unknown_key(
          key, {"format", "name", "symbols", "ops", "inputs", "nodes", "outputs", "writes"}, kTop);
    }
  }
  void element(std::string_view key, std::size_t i, const Tree& tree) {
    if (check_.full()) return;
    const Pointer list = kTop / key, pointer = list / i;
    if (key == "ops") {
      op(tree, pointer);
    } else if (check_.expect(tree, Kind::object, pointer)) {
      if (key == "inputs")
        input(tree, pointer);
      else
        node(tree, pointer);
    }
  }
  void op(const Tree& tree, const Pointer& pointer) {
    Result<Op> op = Op();
    if (tree.kind == Kind::object) {
      NameId name;
      if (!check_.known_keys(tree, {"imported", "effect"}, pointer) ||
          !string_member(tree, "imported", true, pointer, words_, name))
        return;
      op->name = word(name);
      op->imported = true;
      if (const Tree* effect = tree.find("effect")) {
        if (!check_.expect(*effect, Kind::boolean, pointer / "effect")) return;
        op->traits.effect = effect->boolean;
      }
    } else {
      if (!check_.expect(tree, Kind::string, pointer)) return;
      op = parse_op_
               ? parse_op_(context_, tree.text)
               : Result<Op>(fail(error_in("", "PW1005", "op declarations cannot be read here")));
      if (op) op->local = true;
    }
    const NameId spelt = op ? words_.intern(op->name) : NameId();
    const bool imported = op && op->imported;
    Result<OpId> id = op ? declare_imported(context_, std::move(*op))
                         : Result<OpId>(tl::unexpected<Diagnostics>(op.error()));
    if (id && imported) imported_.emplace_back(spelt, *id);
    if (id) return;
    for (Diagnostic& d : id.error()) check_.add(std::move(d), pointer.text());
  }
  void input(const Tree& tree, const Pointer& pointer) {
    InputRecord record;
    NameId kind;
    bool ok = check_.known_keys(tree, {"name", "type", "kind", "replicated"}, pointer);
    ok = string_member(tree, "name", true, pointer, names_, record.name) &&
         string_member(tree, "type", true, pointer, words_, record.type) && ok;
    ok = string_member(tree, "kind", false, pointer, words_, kind) && ok;
    if (kind.valid()) {
      bool found = false;
      for (InputKind k : {InputKind::input, InputKind::weight, InputKind::buffer})
        if (word(kind) == name(k)) record.kind = k, found = true;
      if (!found)
        ok = check_.error(pointer / "kind", "PW1005",
                          fmt::format("a kind must be input, weight or buffer, not `{}`",
                                      word(kind).substr(0, 40)));
    }
    ok = replicated(tree, pointer / "replicated", record) && ok;
    if (ok) inputs_.push_back(std::move(record));
  }
  bool replicated(const Tree& tree, const Pointer& pointer, InputRecord& record) {
    const Tree* list = tree.find("replicated");
    if (!list) return true;
    if (!check_.expect(*list, Kind::array, pointer)) return false;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (!check_.expect(list->items[i], Kind::string, pointer / i)) return false;
      record.replicated.push_back(words_.intern(list->items[i].text));
    }
    return true;
  }
  void node(const Tree& tree, const Pointer& pointer) {
    NodeRecord record;
    record.first_operand = static_cast<std::uint32_t>(operands_.size());
    record.first_result = static_cast<std::uint32_t>(results_.size());
    bool ok = check_.known_keys(
        tree, {"name", "op", "operands", "attributes", "results", "group", "source"}, pointer);
    ok = string_member(tree, "name", true, pointer, names_, record.name) &&
         string_member(tree, "op", true, pointer, words_, record.op) && ok;
    ok = string_member(tree, "group", false, pointer, words_, record.group) &&
         string_member(tree, "source", false, pointer, words_, record.source) && ok;
    ok = operands(tree, pointer) && results(tree, record.name, pointer) && ok;
    ok = attributes_.read(tree, pointer, record.attributes) && ok;
    record.operand_count = static_cast<std::uint32_t>(operands_.size()) - record.first_operand;
    record.result_count = static_cast<std::uint32_t>(results_.size()) - record.first_result;
    if (ok) nodes_.push_back(record);
  }
  bool operands(const Tree& tree, const Pointer& pointer) {
    const Tree* list = tree.find("operands");
    if (!list) return true;
    const Pointer at = pointer / "operands";
    if (!check_.expect(*list, Kind::array, at)) return false;
    if (list->items.size() > kMaxOperands)
      return check_.error(at, "PW1002", fmt::format("more than {} operands", kMaxOperands));
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const Tree& item = list->items[i];
      if (item.kind != Kind::null && !check_.expect(item, Kind::string, at / i)) return false;
      operands_.push_back(item.kind == Kind::null ? NameId() : names_.intern(item.text));
    }
    return true;
  }
  bool results(const Tree& tree, NameId node, const Pointer& pointer) {
    const Tree* list = tree.find("results");
    if (!list) {
      if (node.valid()) results_.push_back({node, {}});
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
      if (!string_member(list->items[i], "name", true, place, names_, result.name) ||
          !string_member(list->items[i], "type", false, place, words_, result.type))
        return false;
      results_.push_back(result);
    }
    return true;
  }
  // ---- symbols
  bool fact_member(const Tree& fact, std::string_view key, const Pointer& pointer,
                   std::int64_t& out) {
    const Tree* value = fact.find(key);
    if (!value) return true;
    if (!check_.expect(*value, Kind::integer, pointer / key)) return false;
    out = value->integer;
    return true;
  }
  void declare_symbols(const Tree& symbols, const Pointer& list) {
    for (std::size_t i = 0; i < symbols.keys.size(); ++i) {
      const std::string symbol(symbols.keys[i]);
      const Tree& tree = symbols.items[i];
      const Pointer pointer = list / symbols.keys[i];
      auto word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
      };
      if (symbol.empty() || (symbol[0] >= '0' && symbol[0] <= '9') ||
          !std::all_of(symbol.begin(), symbol.end(), word) || dtype_named(symbol)) {
        check_.error(pointer, "PW1008", "this cannot name a symbol",
                     "a symbol must be a word, such as n, and not a dtype");
        continue;
      }
      SymbolFact fact;
      if (!check_.expect(tree, Kind::object, pointer) ||
          !check_.known_keys(tree, {"min", "max", "multiple", "role"}, pointer))
        continue;
      if (!fact_member(tree, "min", pointer, fact.min) ||
          !fact_member(tree, "max", pointer, fact.max) ||
          !fact_member(tree, "multiple", pointer, fact.multiple))
        continue;
      if (const Tree* role = tree.find("role")) {
        if (!check_.expect(*role, Kind::string, pointer / "role")) continue;
        fact.role = role->text;
      }
      if (const auto wrong = problem_of(graph_.facts, symbol, fact))
        check_.error(wrong->member.empty() ? pointer : pointer / wrong->member, wrong->code,
                     wrong->message, wrong->help);
      graph_.facts.symbols[symbol] = fact;
    }
  }
  void check_symbols() {
    for (const auto& [symbol, pointer] : attributes_.symbols())
      if (!graph_.facts.find(symbol)) unknown_symbol(symbol, pointer);
  }
  void unknown_symbol(const std::string& symbol, const std::string& pointer) {
    std::vector<std::string> known;
    for (const auto& [name, fact] : graph_.facts.symbols) known.push_back(name);
    std::string near = nearest(symbol, known);
    check_.error_at(pointer, "PW1008", "the symbol `" + symbol + "` is not declared",
                    near.empty() ? "declare it in \"symbols\"" : "did you mean `" + near + "`?");
  }
  std::optional<TypeId> type(NameId spelt, const Pointer& pointer) {
    if (types_.size() <= spelt.index) types_.resize(words_.size());
    if (types_[spelt].valid()) return types_[spelt];
    TextResult<TypeId> parsed = parse_type(
        context_, word(spelt), [&](std::string_view s) { return graph_.facts.find(s) != nullptr; });
    if (!parsed) {
      check_.error(
          pointer, "PW1007",
          fmt::format("{} (at byte {} of the type)", parsed.error().message, parsed.error().offset),
          parsed.error().help);
      return std::nullopt;
    }
    return types_[spelt] = *parsed;
  }

  // ---- building
  struct Definition {
    static constexpr std::int64_t kInput = -1, kNone = -2;
    std::int64_t node = kNone;
    ValueId value;  // once built
    [[nodiscard]] bool there() const { return node != kNone; }
  };
  void define(NameId name, std::int64_t node, const Pointer& pointer) {
    Definition& definition = definitions_[name];
    if (!definition.there()) {
      definition.node = node;
      return;
    }
    const std::string first = definition.node == Definition::kInput
                                  ? "an input"
                                  : fmt::format("/nodes/{}", definition.node);
    check_.error(pointer, "PW1009",
                 fmt::format("the name `{}` is already taken by {}", text(name), first),
                 "names of inputs and results must be unique");
  }

  void build() {
    definitions_.resize(names_.size());
    const Pointer inputs = kTop / "inputs", nodes = kTop / "nodes", outputs = kTop / "outputs";
    for (std::size_t i = 0; i < inputs_.size() && !check_.full(); ++i) {
      const Pointer at = inputs / i;
      std::optional<TypeId> t = type(inputs_[i].type, at / "type");
      define(inputs_[i].name, Definition::kInput, at / "name");
      if (!t || !check_.passed()) continue;
      const ValueId value = graph_.add_input(names_.add_to(context_.value_names, inputs_[i].name),
                                             *t, inputs_[i].kind);
      for (NameId over : inputs_[i].replicated) graph_.declare_replicated(value, word(over));
      definitions_[inputs_[i].name].value = value;
    }
    for (std::size_t n = 0; n < nodes_.size() && !check_.full(); ++n) {
      const Pointer node = nodes / n, results = node / "results";
      for (std::size_t r = 0; r < nodes_[n].result_count; ++r) {
        const Pointer result = results / r;
        define(results_of(nodes_[n])[r].name, static_cast<std::int64_t>(n), result / "name");
      }
    }
    if (!check_.passed()) return;
    check_order();
    for (std::size_t i = 0; i < outputs_.size() && !check_.full(); ++i)
      if (!definitions_[outputs_[i]].there())
        unknown_value(outputs_[i], outputs / i, "PW1013", "dangling output: ");
    const Pointer writes = kTop / "writes";
    for (const auto& [input, value] : writes_) {
      const std::string name = text(input);
      const Pointer at = writes / name;
      if (!definitions_[input].there() || definitions_[input].node != Definition::kInput)
        check_.error(at, "PW1013", fmt::format("there is no input `{}`", name.substr(0, 80)),
                     "a write is the name of an input and of the value that it holds afterwards");
      else if (!definitions_[value].there())
        unknown_value(value, at, "PW1013", "dangling output: ");
    }
    if (!check_.passed()) return;
    for (std::size_t n = 0; n < nodes_.size() && !check_.full(); ++n) {
      tell(progress_, "building", n, nodes_.size(), "nodes");
      build_one(nodes_[n], nodes / n);
    }
    if (!check_.passed()) return;
    for (NameId output : outputs_) graph_.add_output(definitions_[output].value);
    for (const auto& [input, value] : writes_)
      write(definitions_[input].value, definitions_[value].value);
  }

  void write(ValueId input, ValueId value) {
    const Pointer writes = kTop / "writes";
    if (graph_.type(input) == graph_.type(value)) return graph_.add_write(input, value);
    check_.error(writes / graph_.value_name(input), "PW1016",
                 fmt::format("it is {}, and `{}` is {}", context_.types.print(graph_.type(input)),
                             graph_.value_name(value), context_.types.print(graph_.type(value))));
  }

  void unknown_value(NameId name, const Pointer& pointer, std::string_view code,
                     const std::string& prefix) {
    std::vector<std::string> known;
    constexpr std::size_t kEnough = 10000;  // a hint does not justify a long search
    for (const InputRecord& input : inputs_)
      if (known.size() < kEnough) known.emplace_back(text(input.name));
    for (const ResultRecord& result : results_)
      if (known.size() < kEnough) known.emplace_back(text(result.name));
    std::string near = nearest(text(name), known);
    check_.error(pointer, code, prefix + "there is no value `" + text(name).substr(0, 80) + "`",
                 near.empty() ? "" : "did you mean `" + near + "`?");
  }

  // Reports a value that is read before its definition. For a value on a cycle, reports the cycle
  // once instead.
  void check_order() {
    std::vector<std::pair<std::size_t, std::size_t>> early;  // node, operand
    const auto pointer = [](std::size_t n, std::size_t k) {
      return fmt::format("/nodes/{}/operands/{}", n, k);
    };
    for (std::size_t n = 0; n < nodes_.size() && !check_.full(); ++n) {
      const std::span<const NameId> names = operands_of(nodes_[n]);
      for (std::size_t k = 0; k < names.size(); ++k) {
        if (!names[k].valid()) continue;
        const Definition& definition = definitions_[names[k]];
        if (!definition.there()) {
          const Pointer list = kTop / "nodes", node = list / n, operands = node / "operands";
          unknown_value(names[k], operands / k, "PW1010", "");
        } else if (definition.node >= static_cast<std::int64_t>(n)) {
          early.emplace_back(n, k);
        }
      }
    }
    if (early.empty() || report_cycle()) return;
    for (const auto& [n, k] : early) {
      const NameId name = operands_of(nodes_[n])[k];
      if (!check_.full())
        check_.error_at(pointer(n, k), "PW1011",
                        fmt::format("`{}` is used before its definition at /nodes/{}", text(name),
                                    definitions_[name].node),
                        "list the nodes in topological order");
    }
  }
  // Depth-first search over operands, without recursion; reports the first cycle found.
  bool report_cycle() {
    enum class Mark : std::uint8_t { fresh, open, done };
    std::vector<Mark> marks(nodes_.size(), Mark::fresh);
    std::vector<std::pair<std::size_t, std::size_t>> stack;  // node, next operand
    for (std::size_t root = 0; root < nodes_.size(); ++root) {
      if (marks[root] != Mark::fresh) continue;
      marks[root] = Mark::open;
      stack.emplace_back(root, 0);
      while (!stack.empty()) {
        auto& [n, k] = stack.back();
        if (k == nodes_[n].operand_count) {
          marks[n] = Mark::done;
          stack.pop_back();
          continue;
        }
        const NameId name = operands_of(nodes_[n])[k++];
        if (!name.valid() || definitions_[name].node < 0) continue;
        const auto next = static_cast<std::size_t>(definitions_[name].node);
        if (marks[next] == Mark::open) return name_cycle(stack, next);
        if (marks[next] == Mark::fresh) {
          marks[next] = Mark::open;
          stack.emplace_back(next, 0);
        }
      }
    }
    return false;
  }
  bool name_cycle(const std::vector<std::pair<std::size_t, std::size_t>>& stack,
                  std::size_t start) {
    auto from = std::find_if(stack.begin(), stack.end(),
                             [&](const auto& entry) { return entry.first == start; });
    std::string path = text(nodes_[start].name);
    constexpr std::ptrdiff_t kShown = 12;
    if (stack.end() - from > kShown) path += " ← …";
    for (auto it = std::max(from + 1, stack.end() - kShown); it < stack.end(); ++it)
      path += " ← " + text(nodes_[it->first].name);
    if (from + 1 <= stack.end()) path += " ← " + text(nodes_[start].name);
    check_.error_at(fmt::format("/nodes/{}", start), "PW1012", "a cycle: " + path,
                    "each node reads the one after the arrow");
    return true;
  }

  /// Types inferred for this op, attributes and operand types: regular graphs infer each
  /// combination once.
  struct Known {
    OpId op;
    AttributesId given;
    std::size_t wanted = 0;  // results
    std::vector<TypeId> operands;
    AttributesId attributes;
    std::vector<TypeId> types;
  };

  OpId op_named(NameId spelt) {
    if (ops_.size() <= spelt.index) ops_.resize(words_.size());
    for (; imported_read_ < imported_.size(); ++imported_read_)
      ops_[imported_[imported_read_].first] = imported_[imported_read_].second;
    if (!ops_[spelt].valid()) ops_[spelt] = context_.ops.find(word(spelt));
    return ops_[spelt];
  }

  void build_one(const NodeRecord& record, const Pointer& pointer) {
    const OpId op = op_named(record.op);
    if (!op.valid()) {
      const std::string near = nearest(word(record.op), context_.ops.names());
      check_.error(pointer / "op", "PW1014",
                   fmt::format("unknown op `{}`", word(record.op).substr(0, 80)),
                   near.empty() ? "declare it in \"ops\"" : "did you mean `" + near + "`?");
      return poison(record);
    }
    std::vector<ValueId>& operands = operand_values_;
    operands.clear();
    operand_types_.clear();
    for (NameId name : operands_of(record)) {
      const ValueId v = name.valid() ? definitions_[name].value : ValueId();
      if (name.valid() && !v.valid()) return poison(record);  // its producer is already in error
      operands.push_back(v);
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
      Result<NodeId> built = add_new(record, op, operands, pointer);
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
  void poison(const NodeRecord& record) {
    for (const ResultRecord& result : results_of(record)) definitions_[result.name].value = {};
  }
  static std::string part_of(const std::string& code) {
    if (code == "PW0307" || code == "PW0308" || code == "PW0309" || code == "PW0310")
      return "/attributes";
    if (code == "PW0305" || code == "PW0306" || code == "PW0312") return "/operands";
    return "";
  }
  NodeId add_known(const NodeRecord& record, OpId op, const Known& known) {
    const std::span<const ResultRecord> results = results_of(record);
    result_names_.clear();
    for (std::size_t i = 0; i < known.types.size(); ++i)
      result_names_.push_back(i < results.size()
                                  ? names_.add_to(context_.value_names, results[i].name)
                                  : ValueNameId());
    const NodeId node =
        graph_.add_node(op, operand_values_, known.attributes, known.types, result_names_,
                        graph_.place_of(place_text(record.group), place_text(record.source)));
    if (known.types.empty() || results.empty() || results[0].name != record.name)
      graph_.give_name(node, text(record.name));
    return node;
  }
  TextId place_text(NameId spelt) {
    if (!spelt.valid()) return {};
    if (place_texts_.size() <= spelt.index) place_texts_.resize(words_.size());
    TextId& known = place_texts_[spelt];
    if (!known.valid()) known = context_.value_names.intern(word(spelt));
    return known;
  }
  Result<NodeId> add_new(const NodeRecord& record, OpId op, const std::vector<ValueId>& operands,
                         const Pointer& pointer) {
    NodeRequest request;
    request.op = op;
    request.operands = operands;
    request.attributes = context_.attributes[record.attributes];
    request.name = text(record.name);
    const Pointer results = pointer / "results";
    for (std::size_t i = 0; i < record.result_count; ++i) {
      const ResultRecord& result = results_of(record)[i];
      request.result_names.emplace_back(text(result.name));
      if (!context_.ops[op].imported || !result.type.valid()) continue;
      const Pointer at = results / i;
      std::optional<TypeId> stated = type(result.type, at / "type");
      request.stated.resize(i, Types::unknown());
      request.stated.push_back(stated.value_or(Types::unknown()));
    }
    request.group = word_or_empty(record.group);
    request.source = word_or_empty(record.source);
    return build_node(graph_, request);
  }
  void remember(const NodeRecord& record, NodeId node, std::uint64_t hash) {
    Known known{graph_.op(node), record.attributes,       record.result_count,
                operand_types_,  graph_.attributes(node), {}};
    for (std::size_t i = 0; i < graph_.result_count(node); ++i)
      known.types.push_back(graph_.type(graph_.result(node, i)));
    known_index_.insert(hash, static_cast<std::uint32_t>(known_.size()));
    known_.push_back(std::move(known));
  }
  void check_results(const NodeRecord& record, NodeId node, const Pointer& pointer) {
    const std::size_t count = graph_.result_count(node);
    const Pointer list = pointer / "results";
    if (count != record.result_count) {
      check_.error(list, "PW1015",
                   fmt::format("`{}` has {} result{}, not {}", word(record.op), count,
                               count == 1 ? "" : "s", record.result_count),
                   "name each of them in \"results\"");
      return poison(record);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const ResultRecord& result = results_of(record)[i];
      const ValueId v = graph_.result(node, i);
      definitions_[result.name].value = v;
      if (!result.type.valid()) continue;
      const Pointer place = list / i, at = place / "type";
      const std::optional<TypeId> stated = type(result.type, at);
      if (!stated || *stated == Types::unknown() || *stated == graph_.type(v)) continue;
      if (graph_.type(v) == Types::unknown())
        graph_.set_type(v, *stated);
      else
        check_.error(at, "PW1016",
                     fmt::format("`{}` is declared as {}, but `{}` gives {}", text(result.name),
                                 context_.types.print(*stated), word(record.op),
                                 context_.types.print(graph_.type(v))));
    }
  }

  Context& context_;
  const std::string& file_;
  const OpParser& parse_op_;
  const StageProgress& progress_;
  Graph graph_;
  json::Checks check_;
  AttributeReader attributes_{context_, check_};
  bool has_format_ = false, has_outputs_ = false;
  NumberedNames names_;
  Strings words_;
  std::vector<InputRecord> inputs_;
  std::vector<NodeRecord> nodes_;
  std::vector<NameId> operands_;  // invalid: null
  std::vector<ResultRecord> results_;
  std::vector<NameId> outputs_;
  std::vector<std::pair<NameId, NameId>> writes_;  // input, value
  IdVec<NameId, Definition> definitions_;          // by name
  IdVec<NameId, TypeId> types_;                    // by word; invalid: not looked at yet
  IdVec<NameId, OpId> ops_;                        // the same
  std::vector<std::pair<NameId, OpId>> imported_;  // ops that the text declares unknown
  std::size_t imported_read_ = 0;                  // those that are in ops_
  std::vector<Known> known_;
  HashIndex known_index_;
  IdVec<NameId, TextId> place_texts_;  // by word
  // Data of the current node.
  std::vector<ValueId> operand_values_;
  std::vector<TypeId> operand_types_;
  std::vector<ValueNameId> result_names_;
};

}  // namespace

Result<Graph> graph_from_json(const ContextPtr& context, std::string_view text,
                              const std::string& file, const OpParser& parse_op,
                              const StageProgress& progress, bool whole) {
  return Reader(context, file, parse_op, progress).read(text, whole);
}

}  // namespace pw
