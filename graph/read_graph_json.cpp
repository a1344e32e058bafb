// Exports graph_from_json: the reader. The text is streamed into short records; then names are
// resolved, order and cycles are checked, and nodes are built as by any other front end.
#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/build.hpp"
#include "graph/graph_json.hpp"
#include "graph/scan_json.hpp"
#include "graph/type_text.hpp"

namespace pw {
namespace {

using json::Tree;
using Kind = Tree::Kind;

constexpr std::size_t kMaxErrors = 20;
constexpr std::size_t kMaxOperands = 1 << 16;
constexpr std::string_view kFormat = "piecewise.graph/1";

struct InputRecord {
  NameId name, type;
  InputKind kind = InputKind::input;
  std::vector<NameId> replicated;
};
struct NodeRecord {
  NameId name, op, group, source;
  std::vector<NameId> operands;                    // invalid: null
  std::vector<std::pair<NameId, NameId>> results;  // name, type text; an invalid type is not stated
  AttributeList attributes;
};

class Reader {
 public:
  Reader(const ContextPtr& context, const std::string& file, const OpParser& parse_op)
      : context_(*context), file_(file), parse_op_(parse_op), graph_(context) {}

  Result<Graph> read(std::string_view text) {
    json::Sink sink;
    sink.streamed = {"inputs", "nodes", "ops"};
    sink.element = [&](const std::string& key, std::size_t i, Tree&& tree) {
      element(key, i, tree);
    };
    sink.member = [&](const std::string& key, Tree&& tree) { member(key, tree); };
    auto scanned = json::scan(text, file_, sink);
    if (!scanned)
      std::move(scanned.error().begin(), scanned.error().end(), std::back_inserter(errors_));
    if (scanned && !has_format_)
      error("/", "PW1005", "the member `format` is missing",
            fmt::format("write \"format\": \"{}\"", kFormat));
    if (scanned && has_format_ && !has_outputs_)
      error("/outputs", "PW1005", "the member `outputs` is missing",
            "a graph without outputs computes nothing; is the file cut off?");
    if (errors_.empty()) declare_symbols();
    if (errors_.empty()) build();
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    return std::move(graph_);
  }

 private:
  bool error(const std::string& pointer, std::string_view code, std::string message,
             std::string help = {}) {
    if (errors_.size() < kMaxErrors)
      errors_.push_back(
          error_in(file_ + " at " + pointer, code, std::move(message), std::move(help)));
    return false;
  }
  bool full() const { return errors_.size() >= kMaxErrors; }
  NameId intern(std::string_view text) { return context_.strings.intern(text); }
  std::string_view text(NameId id) const { return context_.strings.text(id); }

  bool expect(const Tree& tree, Kind kind, const std::string& pointer) {
    if (tree.kind == kind) return true;
    return error(pointer, "PW1005",
                 fmt::format("expected {}, found {}", json::name(kind), json::name(tree.kind)));
  }
  bool known_keys(const Tree& tree, const std::vector<std::string>& known,
                  const std::string& pointer) {
    bool ok = true;
    for (const std::string& key : tree.keys) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string near = nearest(key, known), all;
      for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
      ok = error(pointer + json::step(key), "PW1006", "unknown member `" + key.substr(0, 80) + "`",
                 near.empty() ? "known are " + all : "did you mean `" + near + "`?");
    }
    return ok;
  }
  // A member that is a string and not empty; an invalid id when it is absent and may be.
  bool string_member(const Tree& tree, std::string_view key, bool required,
                     const std::string& pointer, NameId& out) {
    const Tree* value = tree.find(key);
    if (!value)
      return required ? error(pointer, "PW1005", fmt::format("the member `{}` is missing", key))
                      : true;
    std::string at = pointer + json::step(key);
    if (!expect(*value, Kind::string, at)) return false;
    if (value->text.empty())
      return required ? error(at, "PW1005", fmt::format("`{}` is empty", key)) : true;
    out = intern(value->text);
    return true;
  }

  // ---- scanning
  void member(const std::string& key, const Tree& tree) {
    if (full()) return;
    std::string pointer = json::step(key);
    if (key == "format") {
      has_format_ = true;
      if (expect(tree, Kind::string, pointer) && tree.text != kFormat)
        error(pointer, "PW1005", "unknown format `" + tree.text.substr(0, 80) + "`",
              fmt::format("this program reads {}", kFormat));
    } else if (key == "name") {
      if (expect(tree, Kind::string, pointer)) graph_.name = tree.text;
    } else if (key == "symbols") {
      if (expect(tree, Kind::object, pointer)) symbols_ = tree;
    } else if (key == "outputs") {
      has_outputs_ = true;
      if (!expect(tree, Kind::array, pointer)) return;
      for (std::size_t i = 0; i < tree.items.size(); ++i)
        if (expect(tree.items[i], Kind::string, fmt::format("{}/{}", pointer, i)))
          outputs_.push_back(intern(tree.items[i].text));
    } else if (key == "inputs" || key == "nodes" || key == "ops") {
      expect(tree, Kind::array, pointer);
    } else {
      Tree holder;
      holder.keys = {key};
      known_keys(holder, {"format", "name", "symbols", "ops", "inputs", "nodes", "outputs"}, "");
    }
  }
  void element(const std::string& key, std::size_t i, const Tree& tree) {
    if (full()) return;
    std::string pointer = fmt::format("/{}/{}", key, i);
    if (key == "ops") {
      op(tree, pointer);
    } else if (expect(tree, Kind::object, pointer)) {
      if (key == "inputs")
        input(tree, pointer);
      else
        node(tree, pointer);
    }
  }
  void op(const Tree& tree, const std::string& pointer) {
    Result<Op> op = Op();
    if (tree.kind == Kind::object) {
      NameId name;
      if (!known_keys(tree, {"imported", "effect"}, pointer) ||
          !string_member(tree, "imported", true, pointer, name))
        return;
      op->name = text(name);
      op->imported = true;
      if (const Tree* effect = tree.find("effect")) {
        if (!expect(*effect, Kind::boolean, pointer + "/effect")) return;
        op->traits.effect = effect->boolean;
      }
    } else {
      if (!expect(tree, Kind::string, pointer)) return;
      op = parse_op_
               ? parse_op_(context_, tree.text)
               : Result<Op>(fail(error_in("", "PW1005", "op declarations cannot be read here")));
      if (op) op->local = true;
    }
    Result<OpId> id = op ? context_.ops.declare(std::move(*op))
                         : Result<OpId>(tl::unexpected<Diagnostics>(op.error()));
    if (id) return;
    for (Diagnostic& d : id.error()) add_at(std::move(d), pointer);
  }
  void add_at(Diagnostic d, const std::string& pointer) {
    if (full()) return;
    d.place = file_ + " at " + pointer;
    errors_.push_back(std::move(d));
  }
  void input(const Tree& tree, const std::string& pointer) {
    InputRecord record;
    NameId kind;
    bool ok = known_keys(tree, {"name", "type", "kind", "replicated"}, pointer);
    ok = string_member(tree, "name", true, pointer, record.name) &&
         string_member(tree, "type", true, pointer, record.type) && ok;
    ok = string_member(tree, "kind", false, pointer, kind) && ok;
    if (kind.valid()) {
      bool found = false;
      for (InputKind k : {InputKind::input, InputKind::weight, InputKind::buffer})
        if (text(kind) == name(k)) record.kind = k, found = true;
      if (!found)
        ok = error(pointer + "/kind", "PW1005",
                   "a kind is input, weight or buffer, not `" +
                       std::string(text(kind)).substr(0, 40) + "`");
    }
    ok = replicated(tree, pointer + "/replicated", record) && ok;
    if (ok) inputs_.push_back(std::move(record));
  }
  bool replicated(const Tree& tree, const std::string& pointer, InputRecord& record) {
    const Tree* list = tree.find("replicated");
    if (!list) return true;
    if (!expect(*list, Kind::array, pointer)) return false;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (!expect(list->items[i], Kind::string, fmt::format("{}/{}", pointer, i))) return false;
      record.replicated.push_back(intern(list->items[i].text));
    }
    return true;
  }
  void node(const Tree& tree, const std::string& pointer) {
    NodeRecord record;
    bool ok = known_keys(
        tree, {"name", "op", "operands", "attributes", "results", "group", "source"}, pointer);
    ok = string_member(tree, "name", true, pointer, record.name) &&
         string_member(tree, "op", true, pointer, record.op) && ok;
    ok = string_member(tree, "group", false, pointer, record.group) &&
         string_member(tree, "source", false, pointer, record.source) && ok;
    ok = operands(tree, pointer, record) && results(tree, pointer, record) && ok;
    if (const Tree* attributes = tree.find("attributes")) {
      std::string at = pointer + "/attributes";
      ok = expect(*attributes, Kind::object, at) && ok;
      for (std::size_t i = 0; attributes->kind == Kind::object && i < attributes->keys.size();
           ++i) {
        Attribute value;
        ok = attribute(attributes->items[i], at + json::step(attributes->keys[i]), value) && ok;
        record.attributes.emplace_back(intern(attributes->keys[i]), std::move(value));
      }
    }
    if (ok) nodes_.push_back(std::move(record));
  }
  bool operands(const Tree& tree, const std::string& pointer, NodeRecord& record) {
    const Tree* list = tree.find("operands");
    if (!list) return true;
    if (!expect(*list, Kind::array, pointer + "/operands")) return false;
    if (list->items.size() > kMaxOperands)
      return error(pointer + "/operands", "PW1002",
                   fmt::format("more than {} operands", kMaxOperands));
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const Tree& item = list->items[i];
      if (item.kind != Kind::null &&
          !expect(item, Kind::string, fmt::format("{}/operands/{}", pointer, i)))
        return false;
      record.operands.push_back(item.kind == Kind::null ? NameId() : intern(item.text));
    }
    return true;
  }
  bool results(const Tree& tree, const std::string& pointer, NodeRecord& record) {
    const Tree* list = tree.find("results");
    if (!list) {
      if (record.name.valid()) record.results.emplace_back(record.name, NameId());
      return true;
    }
    if (!expect(*list, Kind::array, pointer + "/results")) return false;
    if (list->items.size() > kMaxOperands)
      return error(pointer + "/results", "PW1002",
                   fmt::format("more than {} results", kMaxOperands));
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      std::string at = fmt::format("{}/results/{}", pointer, i);
      NameId result, type;
      if (!expect(list->items[i], Kind::object, at) ||
          !known_keys(list->items[i], {"name", "type"}, at))
        return false;
      if (!string_member(list->items[i], "name", true, at, result) ||
          !string_member(list->items[i], "type", false, at, type))
        return false;
      record.results.emplace_back(result, type);
    }
    return true;
  }

  bool dim_attribute(const Tree& tree, const std::string& pointer, DimId& out) {
    if (tree.kind == Kind::integer) {
      out = context_.dims.constant(tree.integer);
      return true;
    }
    if (!expect(tree, Kind::object, pointer) || !known_keys(tree, {"dim"}, pointer)) return false;
    const Tree* dim = tree.find("dim");
    if (!dim) return error(pointer, "PW1005", "the member `dim` is missing");
    if (!expect(*dim, Kind::string, pointer + "/dim")) return false;
    TextResult<DimId> parsed = parse_dim(context_.dims, dim->text);
    if (!parsed)
      return error(pointer + "/dim", "PW1007", parsed.error().message, parsed.error().help);
    out = *parsed;
    for (const std::string& symbol : context_.dims.symbols(out))
      used_symbols_.try_emplace(symbol, pointer + "/dim");
    return true;
  }
  bool real_attribute(const Tree& tree, const std::string& pointer, double& out) {
    if (tree.kind == Kind::real) {
      out = tree.real;
    } else if (tree.kind == Kind::integer) {
      out = static_cast<double>(tree.integer);
    } else {
      if (!expect(tree, Kind::object, pointer) || !known_keys(tree, {"float"}, pointer))
        return false;
      const Tree* word = tree.find("float");
      std::string value = word && word->kind == Kind::string ? word->text : "";
      if (value != "inf" && value != "-inf" && value != "nan")
        return error(pointer, "PW1005", "{\"float\": …} is \"inf\", \"-inf\" or \"nan\"");
      out = value == "nan" ? std::numeric_limits<double>::quiet_NaN()
                           : std::numeric_limits<double>::infinity() * (value == "inf" ? 1 : -1);
    }
    return true;
  }
  bool list_attribute(const Tree& tree, const std::string& pointer, Attribute& out) {
    auto is = [&](Kind kind) {
      return std::any_of(tree.items.begin(), tree.items.end(), [&](const Tree& t) {
        return t.kind == kind || (kind == Kind::real && t.find("float"));
      });
    };
    std::vector<DimId> dims;
    std::vector<double> reals;
    std::vector<std::string> texts;
    bool strings = is(Kind::string), floats = is(Kind::real);
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
      std::string at = fmt::format("{}/{}", pointer, i);
      DimId dim;
      double x = 0;
      if (strings  ? !expect(tree.items[i], Kind::string, at)
          : floats ? !real_attribute(tree.items[i], at, x)
                   : !dim_attribute(tree.items[i], at, dim))
        return false;
      if (strings) texts.push_back(tree.items[i].text);
      if (floats) reals.push_back(x);
      if (!strings && !floats) dims.push_back(dim);
    }
    if (strings)
      out = std::move(texts);
    else if (floats)
      out = std::move(reals);
    else
      out = std::move(dims);
    return true;
  }
  bool attribute(const Tree& tree, const std::string& pointer, Attribute& out) {
    switch (tree.kind) {
      case Kind::null: out = None(); return true;
      case Kind::boolean: out = tree.boolean; return true;
      case Kind::integer: out = tree.integer; return true;
      case Kind::real: out = tree.real; return true;
      case Kind::string: out = tree.text; return true;
      case Kind::array: return list_attribute(tree, pointer, out);
      case Kind::object: return object_attribute(tree, pointer, out);
    }
    return false;
  }
  bool object_attribute(const Tree& tree, const std::string& pointer, Attribute& out) {
    if (!known_keys(tree, {"dim", "dtype", "float", "floats", "strs"}, pointer)) return false;
    if (tree.keys.size() != 1)
      return error(pointer, "PW1005",
                   "an attribute object has one member: dim, dtype, float, floats or strs");
    const Tree& value = tree.items[0];
    if (tree.keys[0] == "dim") {
      DimId dim;
      if (!dim_attribute(tree, pointer, dim)) return false;
      if (auto v = context_.dims.value(dim))
        out = *v;
      else
        out = dim;
    } else if (tree.keys[0] == "dtype") {
      if (!expect(value, Kind::string, pointer + "/dtype")) return false;
      std::optional<DType> dtype = dtype_named(value.text);
      if (!dtype)
        return error(pointer + "/dtype", "PW1007",
                     "unknown dtype `" + value.text.substr(0, 40) + "`");
      out = *dtype;
    } else if (tree.keys[0] == "float") {
      double x = 0;
      if (!real_attribute(tree, pointer, x)) return false;
      out = x;
    } else {
      if (!expect(value, Kind::array, pointer + json::step(tree.keys[0]))) return false;
      if (!value.items.empty())
        return list_attribute(value, pointer + json::step(tree.keys[0]), out);
      if (tree.keys[0] == "floats")
        out = std::vector<double>();
      else
        out = std::vector<std::string>();
    }
    return true;
  }

  // ---- symbols
  bool fact_member(const Tree& fact, std::string_view key, std::int64_t least,
                   const std::string& pointer, std::int64_t& out) {
    const Tree* value = fact.find(key);
    if (!value) return true;
    std::string at = pointer + json::step(key);
    if (!expect(*value, Kind::integer, at)) return false;
    if (value->integer < least || value->integer > kMaxDim)
      return error(at, "PW1003",
                   fmt::format("`{}` is from {} to 2^40, not {}", key, least, value->integer));
    out = value->integer;
    return true;
  }
  void declare_symbols() {
    for (std::size_t i = 0; i < symbols_.keys.size(); ++i) {
      const std::string& symbol = symbols_.keys[i];
      const Tree& tree = symbols_.items[i];
      std::string pointer = "/symbols" + json::step(symbol);
      auto word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
      };
      if (symbol.empty() || (symbol[0] >= '0' && symbol[0] <= '9') ||
          !std::all_of(symbol.begin(), symbol.end(), word) || dtype_named(symbol)) {
        error(pointer, "PW1008", "this cannot name a symbol",
              "a symbol is a word, such as n, and no dtype");
        continue;
      }
      SymbolFact fact;
      if (!expect(tree, Kind::object, pointer) ||
          !known_keys(tree, {"min", "max", "multiple", "role"}, pointer))
        continue;
      if (!fact_member(tree, "min", 0, pointer, fact.min) ||
          !fact_member(tree, "max", 0, pointer, fact.max) ||
          !fact_member(tree, "multiple", 1, pointer, fact.multiple))
        continue;
      if (fact.min > fact.max)
        error(pointer, "PW1008",
              fmt::format("the least value {} is above the greatest {}", fact.min, fact.max));
      if (const Tree* role = tree.find("role")) {
        if (!expect(*role, Kind::string, pointer + "/role")) continue;
        if (!role->text.empty() && role->text != "tokens")
          error(pointer + "/role", "PW1008", "the only role is `tokens`");
        if (role->text == "tokens" && !graph_.facts.tokens().empty())
          error(pointer + "/role", "PW1008",
                fmt::format("a second symbol with the role `tokens`; the first is `{}`",
                            graph_.facts.tokens()),
                "one symbol sizes steps");
        fact.role = role->text;
      }
      graph_.facts.symbols[symbol] = fact;
    }
    for (const auto& [symbol, pointer] : used_symbols_)
      if (!graph_.facts.find(symbol)) unknown_symbol(symbol, pointer);
  }
  void unknown_symbol(const std::string& symbol, const std::string& pointer) {
    std::vector<std::string> known;
    for (const auto& [name, fact] : graph_.facts.symbols) known.push_back(name);
    std::string near = nearest(symbol, known);
    error(pointer, "PW1008", "the symbol `" + symbol + "` is not declared",
          near.empty() ? "declare it in \"symbols\"" : "did you mean `" + near + "`?");
  }
  std::optional<TypeId> type(NameId text_id, const std::string& pointer) {
    if (auto it = types_.find(text_id.index); it != types_.end()) return it->second;
    TextResult<TypeId> parsed = parse_type(context_, text(text_id), [&](std::string_view s) {
      return graph_.facts.find(s) != nullptr;
    });
    if (!parsed) {
      error(
          pointer, "PW1007",
          fmt::format("{} (at byte {} of the type)", parsed.error().message, parsed.error().offset),
          parsed.error().help);
      return std::nullopt;
    }
    types_.emplace(text_id.index, *parsed);
    return *parsed;
  }

  // ---- building
  struct Definition {
    std::int64_t node = -1;  // an input
    std::size_t result = 0;
    ValueId value;  // once built
  };
  void define(NameId name, Definition definition, const std::string& pointer) {
    auto [it, fresh] = definitions_.try_emplace(name.index, definition);
    if (fresh) return;
    const Definition& old = it->second;
    std::string first = old.node < 0 ? "an input" : fmt::format("/nodes/{}", old.node);
    error(pointer, "PW1009", fmt::format("the name `{}` is already taken by {}", text(name), first),
          "names of inputs and results are unique");
  }

  void build() {
    for (std::size_t i = 0; i < inputs_.size() && !full(); ++i) {
      std::optional<TypeId> t = type(inputs_[i].type, fmt::format("/inputs/{}/type", i));
      define(inputs_[i].name, {}, fmt::format("/inputs/{}/name", i));
      if (!t || !errors_.empty()) continue;
      const ValueId value = graph_.add_input(text(inputs_[i].name), *t, inputs_[i].kind);
      for (NameId over : inputs_[i].replicated) graph_.declare_replicated(value, text(over));
      definitions_[inputs_[i].name.index].value = value;
    }
    for (std::size_t n = 0; n < nodes_.size() && !full(); ++n)
      for (std::size_t r = 0; r < nodes_[n].results.size(); ++r)
        define(nodes_[n].results[r].first, {static_cast<std::int64_t>(n), r, {}},
               fmt::format("/nodes/{}/results/{}/name", n, r));
    if (!errors_.empty()) return;
    check_order();
    for (std::size_t i = 0; i < outputs_.size() && !full(); ++i)
      if (!definitions_.contains(outputs_[i].index))
        unknown_value(outputs_[i], fmt::format("/outputs/{}", i), "PW1013", "dangling output: ");
    if (!errors_.empty()) return;
    for (std::size_t n = 0; n < nodes_.size() && !full(); ++n) build_one(n);
    if (!errors_.empty()) return;
    for (NameId output : outputs_) graph_.add_output(definitions_[output.index].value);
  }

  void unknown_value(NameId name, const std::string& pointer, std::string_view code,
                     const std::string& prefix) {
    std::vector<std::string> known;
    constexpr std::size_t kEnough = 10000;  // a hint is not worth a long search
    for (const InputRecord& input : inputs_)
      if (known.size() < kEnough) known.emplace_back(text(input.name));
    for (const NodeRecord& node : nodes_)
      for (const auto& result : node.results)
        if (known.size() < kEnough) known.emplace_back(text(result.first));
    std::string near = nearest(text(name), known);
    error(pointer, code,
          prefix + "there is no value `" + std::string(text(name)).substr(0, 80) + "`",
          near.empty() ? "" : "did you mean `" + near + "`?");
  }

  // A value read above its definition is an error; if it is on a cycle, the cycle is what is
  // reported, once.
  void check_order() {
    std::vector<std::pair<std::size_t, std::size_t>> early;  // node, operand
    for (std::size_t n = 0; n < nodes_.size() && !full(); ++n) {
      for (std::size_t k = 0; k < nodes_[n].operands.size(); ++k) {
        NameId name = nodes_[n].operands[k];
        if (!name.valid()) continue;
        auto it = definitions_.find(name.index);
        if (it == definitions_.end())
          unknown_value(name, fmt::format("/nodes/{}/operands/{}", n, k), "PW1010", "");
        else if (it->second.node >= static_cast<std::int64_t>(n))
          early.emplace_back(n, k);
      }
    }
    if (early.empty() || report_cycle()) return;
    for (const auto& [n, k] : early)
      if (!full())
        error(fmt::format("/nodes/{}/operands/{}", n, k), "PW1011",
              fmt::format("`{}` is used before its definition at /nodes/{}",
                          text(nodes_[n].operands[k]),
                          definitions_[nodes_[n].operands[k].index].node),
              "nodes stand in topological order");
  }
  // Depth first over "reads", without recursion; the first cycle found is named.
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
        if (k == nodes_[n].operands.size()) {
          marks[n] = Mark::done;
          stack.pop_back();
          continue;
        }
        NameId name = nodes_[n].operands[k++];
        auto it = name.valid() ? definitions_.find(name.index) : definitions_.end();
        if (it == definitions_.end() || it->second.node < 0) continue;
        auto next = static_cast<std::size_t>(it->second.node);
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
    std::string path(text(nodes_[start].name));
    constexpr std::ptrdiff_t kShown = 12;
    if (stack.end() - from > kShown) path += " ← …";
    for (auto it = std::max(from + 1, stack.end() - kShown); it < stack.end(); ++it)
      path += " ← " + std::string(text(nodes_[it->first].name));
    if (from + 1 <= stack.end()) path += " ← " + std::string(text(nodes_[start].name));
    error(fmt::format("/nodes/{}", start), "PW1012", "a cycle: " + path,
          "each node reads the one after the arrow");
    return true;
  }

  /// What a node of this op, these attributes and operand types was: regular graphs infer each type
  /// once.
  struct Key {
    OpId op;
    AttributesId attributes;
    std::size_t results;
    std::vector<TypeId> operands;
    auto operator<=>(const Key&) const = default;
  };
  struct Known {
    AttributesId attributes;
    std::vector<TypeId> types;
  };

  void build_one(std::size_t n) {
    NodeRecord& record = nodes_[n];
    std::string pointer = fmt::format("/nodes/{}", n);
    OpId op = context_.ops.find(text(record.op));
    if (!op.valid()) {
      std::string near = nearest(text(record.op), context_.ops.names());
      error(pointer + "/op", "PW1014",
            "unknown op `" + std::string(text(record.op)).substr(0, 80) + "`",
            near.empty() ? "declare it in \"ops\"" : "did you mean `" + near + "`?");
      poison(record);
      return;
    }
    std::vector<ValueId> operands;
    Key key{op, context_.attributes.intern(record.attributes), record.results.size(), {}};
    for (NameId name : record.operands) {
      ValueId v = name.valid() ? definitions_[name.index].value : ValueId();
      if (name.valid() && !v.valid()) return poison(record);  // its producer is in error already
      operands.push_back(v);
      key.operands.push_back(v.valid() ? graph_.type(v) : TypeId());
    }
    auto known = context_.ops[op].imported ? known_.end() : known_.find(key);
    NodeId node;
    if (known != known_.end()) {
      node = add_known(record, op, operands, known->second);
    } else {
      Result<NodeId> built = add_new(record, op, operands, pointer);
      if (!built) {
        for (Diagnostic& d : built.error()) {
          std::string at = pointer + part_of(d.code);
          add_at(std::move(d), at);
        }
        return poison(record);
      }
      node = *built;
      if (!context_.ops[op].imported) remember(std::move(key), node);
    }
    check_results(record, node, n);
  }
  void poison(const NodeRecord& record) {
    for (const auto& result : record.results) definitions_[result.first.index].value = ValueId();
  }
  static std::string part_of(const std::string& code) {
    if (code == "PW0307" || code == "PW0308" || code == "PW0309" || code == "PW0310")
      return "/attributes";
    if (code == "PW0305" || code == "PW0306" || code == "PW0312") return "/operands";
    return "";
  }
  NodeId add_known(const NodeRecord& record, OpId op, std::vector<ValueId> operands,
                   const Known& known) {
    NodeSpec spec{op, std::move(operands), known.attributes, {}, std::string(text(record.name)), {},
                  {}};
    for (std::size_t i = 0; i < known.types.size(); ++i)
      spec.results.push_back({known.types[i], i < record.results.size()
                                                  ? std::string(text(record.results[i].first))
                                                  : ""});
    if (record.group.valid()) spec.group = text(record.group);
    if (record.source.valid()) spec.source = text(record.source);
    return graph_.add_node(spec);
  }
  Result<NodeId> add_new(const NodeRecord& record, OpId op, std::vector<ValueId> operands,
                         const std::string& pointer) {
    NodeRequest request;
    request.op = op;
    request.operands = std::move(operands);
    request.attributes = record.attributes;
    request.name = text(record.name);
    for (std::size_t i = 0; i < record.results.size(); ++i) {
      request.result_names.emplace_back(text(record.results[i].first));
      if (!context_.ops[op].imported || !record.results[i].second.valid()) continue;
      std::optional<TypeId> stated =
          type(record.results[i].second, fmt::format("{}/results/{}/type", pointer, i));
      request.stated.resize(i, Types::unknown());
      request.stated.push_back(stated.value_or(Types::unknown()));
    }
    if (record.group.valid()) request.group = text(record.group);
    if (record.source.valid()) request.source = text(record.source);
    return build_node(graph_, request);
  }
  void remember(Key key, NodeId node) {
    Known known{graph_.attributes(node), {}};
    for (std::size_t i = 0; i < graph_.result_count(node); ++i)
      known.types.push_back(graph_.type(graph_.result(node, i)));
    known_.emplace(std::move(key), std::move(known));
  }
  void check_results(const NodeRecord& record, NodeId node, std::size_t n) {
    std::size_t count = graph_.result_count(node);
    if (count != record.results.size()) {
      error(fmt::format("/nodes/{}/results", n), "PW1015",
            fmt::format("`{}` has {} result{}, not {}", text(record.op), count,
                        count == 1 ? "" : "s", record.results.size()),
            "name each of them in \"results\"");
      return poison(record);
    }
    for (std::size_t i = 0; i < count; ++i) {
      ValueId v = graph_.result(node, i);
      definitions_[record.results[i].first.index].value = v;
      if (!record.results[i].second.valid()) continue;
      std::string pointer = fmt::format("/nodes/{}/results/{}/type", n, i);
      std::optional<TypeId> stated = type(record.results[i].second, pointer);
      if (!stated || *stated == Types::unknown() || *stated == graph_.type(v)) continue;
      if (graph_.type(v) == Types::unknown())
        graph_.set_type(v, *stated);
      else
        error(pointer, "PW1016",
              fmt::format("`{}` is stated as {}, but `{}` gives {}", text(record.results[i].first),
                          context_.types.print(*stated), text(record.op),
                          context_.types.print(graph_.type(v))));
    }
  }

  Context& context_;
  const std::string& file_;
  const OpParser& parse_op_;
  Graph graph_;
  Diagnostics errors_;
  bool has_format_ = false, has_outputs_ = false;
  Tree symbols_;
  std::map<std::string, std::string> used_symbols_;  // of attributes, with a place
  std::vector<InputRecord> inputs_;
  std::vector<NodeRecord> nodes_;
  std::vector<NameId> outputs_;
  std::unordered_map<std::uint32_t, Definition> definitions_;  // by NameId; looked up only
  std::unordered_map<std::uint32_t, TypeId> types_;  // by NameId of the text; looked up only
  std::map<Key, Known> known_;
};

}  // namespace

Result<Graph> graph_from_json(const ContextPtr& context, std::string_view text,
                              const std::string& file, const OpParser& parse_op) {
  return Reader(context, file, parse_op).read(text);
}

}  // namespace pw
