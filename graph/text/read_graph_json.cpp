// The text is streamed into short records. Then names are resolved, order and cycles are checked,
// and nodes are built as by any other front end.
#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/json_nodes.hpp"
#include "graph/text/json_symbols.hpp"

namespace pw {
namespace {

using json::kTop;
using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

constexpr std::string_view kFormat = "piecewise.graph/1";

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
    graph_.trust_names(true);  // Definitions guarantees uniqueness
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
    if (check_.passed()) check_symbols(attributes_.symbols(), graph_.facts, check_);
    if (check_.passed()) build();
    if (!check_.passed()) return tl::unexpected<Diagnostics>(check_.take());
    if (!whole) return std::move(graph_);
    if (ops_.any_imported()) {
      graph_.trust_names(false);  // refining makes names up
      PW_TRY(refine_imported(graph_));
    }
    for (const WriteProblem& p : declare_writes(graph_))
      check_.error_at(pointer_to(p.node), kUndeclaredWrite, p.message, p.help);
    if (!check_.passed()) return tl::unexpected<Diagnostics>(check_.take());
    graph_.settle();
    return std::move(graph_);
  }

 private:
  /// Returns the pointer to the node as written, also for what refinement made of an unknown op.
  [[nodiscard]] std::string pointer_to(NodeId node) const {
    for (std::size_t n = 0; n < records_.nodes.size(); ++n)
      if (records_.text(records_.nodes[n].name) == graph_.node_name(node))
        return fmt::format("/nodes/{}", n);
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
      if (check_.expect(tree, Kind::object, pointer))
        declare_symbols(tree, pointer, graph_.facts, check_);
    } else if (key == "conditions") {
      if (check_.expect(tree, Kind::array, pointer))
        read_conditions(tree, pointer, attributes_, graph_.facts, check_);
    } else if (key == "outputs") {
      has_outputs_ = true;
      reader_.outputs(tree, pointer);
    } else if (key == "writes") {
      reader_.writes(tree, pointer);
    } else if (key == "inputs" || key == "nodes" || key == "ops") {
      check_.expect(tree, Kind::array, pointer);
    } else {
      check_.unknown_key(key,
                         {"format", "name", "symbols", "conditions", "ops", "inputs", "nodes",
                          "outputs", "writes"},
                         kTop);
    }
  }
  void element(std::string_view key, std::size_t i, const Tree& tree) {
    if (check_.full()) return;
    const Pointer list = kTop / key, pointer = list / i;
    if (key == "ops") {
      ops_.declare(tree, pointer, parse_op_, reader_);
    } else if (check_.expect(tree, Kind::object, pointer)) {
      if (key == "inputs")
        reader_.input(tree, pointer);
      else
        reader_.node(tree, pointer);
    }
  }
  void build() {
    const Pointer inputs = kTop / "inputs", nodes = kTop / "nodes";
    Definitions definitions(records_, check_);
    RecordBuilder builder(graph_, records_, ops_, definitions, check_);
    for (std::size_t i = 0; i < records_.inputs.size() && !check_.full(); ++i) {
      const InputRecord& record = records_.inputs[i];
      const Pointer at = inputs / i;
      std::optional<TypeId> t = builder.type(record.type, at / "type");
      definitions.define_input(record.name, at / "name");
      if (!t || !check_.passed()) continue;
      const ValueId value = graph_.add_input(
          records_.names.add_to(context_.value_names, record.name), *t, record.kind);
      for (NameId over : record.replicated) graph_.declare_replicated(value, records_.word(over));
      definitions.value(record.name) = value;
    }
    definitions.define_results();
    if (!check_.passed()) return;
    definitions.check_order();
    definitions.check_ends();
    if (!check_.passed()) return;
    for (std::size_t n = 0; n < records_.nodes.size() && !check_.full(); ++n) {
      tell(progress_, "building", n, records_.nodes.size(), "nodes");
      builder.build(records_.nodes[n], nodes / n);
    }
    if (!check_.passed()) return;
    for (NameId output : records_.outputs) graph_.add_output(definitions.value(output));
    for (const auto& [input, value] : records_.writes)
      write(definitions.value(input), definitions.value(value));
  }

  void write(ValueId input, ValueId value) {
    const Pointer writes = kTop / "writes";
    if (graph_.type(input) == graph_.type(value)) return graph_.add_write(input, value);
    check_.error(writes / graph_.value_name(input), "PW1016",
                 fmt::format("it is {}, and `{}` is {}", context_.types.print(graph_.type(input)),
                             graph_.value_name(value), context_.types.print(graph_.type(value))));
  }

  Context& context_;
  const std::string& file_;
  const OpParser& parse_op_;
  const StageProgress& progress_;
  Graph graph_;
  json::Checks check_;
  bool has_format_ = false, has_outputs_ = false;
  GraphRecords records_;
  AttributeReader attributes_{context_, check_};
  RecordReader reader_{records_, attributes_, check_};
  NamedOps ops_{context_, records_, check_};
};

}  // namespace

Result<Graph> graph_from_json(const ContextPtr& context, std::string_view text,
                              const std::string& file, const OpParser& parse_op,
                              const StageProgress& progress, bool whole) {
  return Reader(context, file, parse_op, progress).read(text, whole);
}

}  // namespace pw
