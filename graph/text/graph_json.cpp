// Writes one line per input and node, so that graphs can be read and compared as text.
#include "graph/text/graph_json.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "graph/size_condition.hpp"
#include "graph/text/scan_json.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

using json::quoted;

// Numbers that JSON lacks are objects: {"float": "inf"}.
std::string real(double x) {
  return std::isfinite(x) ? print_real(x) : "{\"float\": " + quoted(print_real(x)) + "}";
}

template <class Items, class Print>
std::string items(const Items& list, const char* empty, const Print& print) {
  if (list.empty()) return empty;
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "[" : ", ") + print(item);
  return out + "]";
}

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph), context_(graph.context()) {}

  std::string write() {
    out_ = "{\n  \"format\": \"piecewise.graph/1\",\n  \"name\": " + quoted(graph_.name);
    symbols();
    conditions();
    ops();
    list("inputs", graph_.inputs(), [&](ValueId v) { return input(v); });
    list("nodes", graph_.order(), [&](NodeId n) { return node(n); });
    const auto output = [&](std::size_t i) {
      return quoted(graph_.value_name(graph_.outputs()[i]));
    };
    out_ += ",\n  \"outputs\": [";
    for (std::size_t i = 0; i < graph_.returned_count(); ++i) out_ += (i ? ", " : "") + output(i);
    out_ += "]";
    const auto& written = graph_.written_inputs();
    for (std::size_t i = 0; i < written.size(); ++i)
      out_ +=
          fmt::format("{}{}: {}", i ? ", " : ",\n  \"writes\": {",
                      quoted(graph_.value_name(written[i])), output(graph_.returned_count() + i));
    return out_ + (written.empty() ? "\n}\n" : "}\n}\n");
  }

 private:
  template <class Items, class Print>
  void list(std::string_view key, const Items& items, const Print& print) {
    out_ += fmt::format(",\n  \"{}\": [", key);
    bool first = true;
    for (const auto& item : items) {
      out_ += first ? "\n    " : ",\n    ";
      out_ += print(item);
      first = false;
    }
    out_ += first ? "]" : "\n  ]";
  }

  // Symbols without facts are written with the widest, since a reader requires a declaration of
  // each.
  std::map<std::string, SymbolFact, std::less<>> used_symbols() const {
    std::map<std::string, SymbolFact, std::less<>> out = graph_.facts.symbols;
    std::set<DimId> seen;
    auto add = [&](DimId dim) {
      if (context_.dims.value(dim) || !seen.insert(dim).second) return;
      for (const std::string& symbol : context_.dims.symbols(dim)) out.try_emplace(symbol);
    };
    auto add_type = [&](TypeId type) {
      if (type != Types::unknown())
        for (DimId dim : context_.types[type].shape) add(dim);
    };
    if (graph_.facts.conditions)
      for (const SizeCondition& condition : *graph_.facts.conditions) {
        add(condition.left);
        add(condition.right);
      }
    for (ValueId v : graph_.inputs()) add_type(graph_.type(v));
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        add_type(graph_.type(graph_.result(n, i)));
      for (const auto& [name, value] : context_.attributes[graph_.attributes(n)]) {
        if (auto dim = std::get_if<DimId>(&value)) add(*dim);
        if (auto dims = std::get_if<std::vector<DimId>>(&value))
          for (DimId dim : *dims) add(dim);
      }
    }
    return out;
  }

  void symbols() {
    auto used = used_symbols();
    if (used.empty()) return;
    out_ += ",\n  \"symbols\": {";
    bool first = true;
    for (const auto& [name, fact] : used) {
      out_ += fmt::format("{}\n    {}: {{\"min\": {}, \"max\": {}", first ? "" : ",", quoted(name),
                          fact.min, fact.max);
      if (fact.multiple != 1) out_ += fmt::format(", \"multiple\": {}", fact.multiple);
      if (!fact.role.empty()) out_ += ", \"role\": " + quoted(fact.role);
      out_ += "}";
      first = false;
    }
    out_ += "\n  }";
  }

  void conditions() {
    if (!graph_.facts.conditions) return;
    list("conditions", *graph_.facts.conditions, [&](const SizeCondition& condition) {
      return fmt::format("{{\"left\": {}, \"op\": \"{}\", \"right\": {}, \"text\": {}}}",
                         quoted(context_.dims.print(condition.left)),
                         kCompares[static_cast<std::size_t>(condition.op)],
                         quoted(context_.dims.print(condition.right)), quoted(condition.text));
    });
  }

  void ops() {
    std::map<std::string, OpId> used;
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      const Op& op = graph_.op_of(n);
      if (op.local || op.imported) used.emplace(op.name, graph_.op(n));
    }
    if (used.empty()) return;
    list("ops", used, [&](const auto& entry) {
      const Op& op = context_.ops[entry.second];
      if (!op.imported) return quoted(print_declaration(op, context_.attributes, "  "));
      return "{\"imported\": " + quoted(op.name) + (op.traits.effect ? ", \"effect\": true}" : "}");
    });
  }

  std::string input(ValueId v) const {
    std::string replicated;
    for (const std::string& over : graph_.replicated_over(v))
      replicated += (replicated.empty() ? ", \"replicated\": [" : ", ") + quoted(over);
    if (!replicated.empty()) replicated += "]";
    return fmt::format("{{\"name\": {}, \"type\": {}, \"kind\": \"{}\"{}}}",
                       quoted(graph_.value_name(v)), quoted(context_.types.print(graph_.type(v))),
                       name(graph_.input_kind(v)), replicated);
  }

  std::string node(NodeId n) const {
    std::string operands, results;
    for (ValueId v : graph_.operands(n))
      operands +=
          (operands.empty() ? "" : ", ") + (v.valid() ? quoted(graph_.value_name(v)) : "null");
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      ValueId v = graph_.result(n, i);
      results +=
          fmt::format("{}{{\"name\": {}, \"type\": {}}}", i ? ", " : "",
                      quoted(graph_.value_name(v)), quoted(context_.types.print(graph_.type(v))));
    }
    std::string out =
        fmt::format("{{\"name\": {}, \"op\": {}, \"operands\": [{}]", quoted(graph_.node_name(n)),
                    quoted(graph_.op_of(n).name), operands);
    const AttributeList& attributes = context_.attributes[graph_.attributes(n)];
    if (!attributes.empty()) {
      out += ", \"attributes\": {";
      for (std::size_t i = 0; i < attributes.size(); ++i)
        out += fmt::format("{}{}: {}", i ? ", " : "",
                           quoted(context_.strings.text(attributes[i].first)),
                           attribute(attributes[i].second));
      out += "}";
    }
    out += ", \"results\": [" + results + "]";
    if (!graph_.group(n).empty()) out += ", \"group\": " + quoted(graph_.group(n));
    if (!graph_.source(n).empty()) out += ", \"source\": " + quoted(graph_.source(n));
    return out + "}";
  }

  std::string attribute(const Attribute& value) const {
    struct Printer {
      const Dims& dims;
      std::string dim(DimId d) const {
        if (auto v = dims.value(d)) return std::to_string(*v);
        return "{\"dim\": " + quoted(dims.print(d)) + "}";
      }
      std::string operator()(None) const { return "null"; }
      std::string operator()(bool b) const { return b ? "true" : "false"; }
      std::string operator()(std::int64_t i) const { return std::to_string(i); }
      std::string operator()(double x) const { return real(x); }
      std::string operator()(const std::string& s) const { return quoted(s); }
      std::string operator()(DType d) const {
        return fmt::format("{{\"dtype\": \"{}\"}}", name(d));
      }
      std::string operator()(DimId d) const { return dim(d); }
      std::string operator()(const std::vector<DimId>& v) const {
        return items(v, "[]", [&](DimId d) { return dim(d); });
      }
      std::string operator()(const std::vector<double>& v) const {
        return items(v, "{\"floats\": []}", real);
      }
      std::string operator()(const std::vector<std::string>& v) const {
        return items(v, "{\"strs\": []}", [](const std::string& s) { return quoted(s); });
      }
    };
    return std::visit(Printer{context_.dims}, value);
  }

  const Graph& graph_;
  const Context& context_;
  std::string out_;
};

}  // namespace

std::string graph_to_json(const Graph& graph) { return Writer(graph).write(); }

}  // namespace pw
