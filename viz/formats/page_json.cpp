// Writes columns of numbers and a table of texts: a hundred thousand nodes take a few megabytes.
#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "base/io/shown_path.hpp"
#include "rewriter/rewriter.hpp"
#include "viz/formats/text_table.hpp"
#include "viz/label.hpp"
#include "viz/overlay.hpp"
#include "viz/page.hpp"
#include "viz/scene.hpp"

namespace pw::viz {
namespace {

using Json = nlohmann::ordered_json;
using Ints = std::vector<std::int64_t>;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string print(const Ints& numbers) {
  std::string out = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  return out + "]";
}

std::int64_t pixels(double value) { return std::llround(value); }

class PageData {
 public:
  explicit PageData(const PageParts& parts)
      : in_(parts), graph_(parts.graph), links_(parts.links) {}

  std::string run() {
    number_values();
    texts_.add("");
    put("title", dump(clean(graph_.versions.back()->graph.name)));
    put("folding", dump(in_.folding.reason));
    put("most", std::to_string(in_.options.most_boxes));
    put("view", dump(std::string(name(in_.options.view))));
    if (in_.options.version) put("version", std::to_string(*in_.options.version));
    Json steps = Json::array();
    for (const Step& step : in_.timeline.steps) steps.push_back(step_json(step));
    put("steps", dump(steps));
    put_inputs();
    put_nodes();
    put_groups();
    put_shapes();
    put("frame", Ints{pixels(Frame::kSide), pixels(Frame::kTop), pixels(Frame::kBottom)});
    put("whole", "{" + level_json(in_.placement.whole, true) + "}");
    put_rewrites();
    if (in_.input.tried != nullptr) put("tried", dump(tried_json(*in_.input.tried)));
    if (in_.input.misses != nullptr) put_misses(*in_.input.misses);
    if (in_.input.pieces != nullptr) put("classes", dump(classes_json(*in_.input.pieces)));
    if (in_.input.plan != nullptr) put_plan(*in_.input.plan);
    put_overlay();
    put("templates", dump(texts_.templates()));
    put("texts", print(texts_.codes()));
    return out_ + "}";
  }

 private:
  void put(const char* name, const std::string& json) {
    out_ += out_.empty() ? "{" : ",\n";
    out_ += "\"" + std::string(name) + "\":" + json;
  }
  void put(const char* name, const Ints& numbers) { put(name, print(numbers)); }

  std::int64_t text(std::string_view words) { return texts_.add(words); }
  [[nodiscard]] std::uint32_t last_version() const {
    return static_cast<std::uint32_t>(graph_.versions.size() - 1);
  }

  // ---- values are numbered: inputs, then the results of the nodes in order

  void number_values() {
    std::int64_t next = static_cast<std::int64_t>(links_.inputs.size());
    for (const UnionNode& node : graph_.nodes) {
      first_value_.push_back(next);
      next += static_cast<std::int64_t>(graph_.graph_of(node).result_count(node.id));
    }
  }

  /// −1: absent; below: a literal, −2 minus the number of its text.
  std::int64_t reference(const Source& source, std::uint32_t version) {
    switch (source.kind) {
      case Source::Kind::none: return -1;
      case Source::Kind::input: return source.index;
      case Source::Kind::node: return first_value_[source.index] + source.result;
      case Source::Kind::literal:
        return -2 - text(operand_text(graph_.versions[version]->graph, source.value));
    }
    return -1;
  }

  void put_inputs() {
    Ints inputs, outputs;
    for (const InputFact& input : links_.inputs)
      inputs.insert(inputs.end(),
                    {text(input.name), text(input.type), static_cast<std::int64_t>(input.kind)});
    for (const Link& link : links_.outputs)
      outputs.insert(outputs.end(),
                     {link.slot, reference(link.source, link.last), link.first, link.last});
    put("inputs", inputs);
    put("outputs", outputs);
  }

  void put_nodes() {
    Ints op, attributes, group, source, results, result, operands, operand, alive, changed, moved;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      tell(in_.options.progress, "writing", at, graph_.nodes.size(), "nodes");
      const UnionNode& node = graph_.nodes[at];
      const Graph& g = graph_.graph_of(node);
      op.push_back(op_text(g, node.id));
      attributes.push_back(attributes_text(g, node.id));
      group.push_back(text(g.group(node.id)));
      source.push_back(text(g.source(node.id)));
      results.push_back(static_cast<std::int64_t>(g.result_count(node.id)));
      for (std::size_t r = 0; r < g.result_count(node.id); ++r) {
        const ValueId v = g.result(node.id, r);
        result.insert(result.end(), {text(g.value_name(v)), type_text(g, g.type(v))});
      }
      if (node.first > 0 || node.last < last_version())
        alive.insert(alive.end(), {at, node.first, node.last});
      for (const std::uint32_t v : node.changed) put_change(at, v, changed);
      std::int64_t count = 0;
      for (const Link& link : links_.of(at)) {
        const std::int64_t value = reference(link.source, link.last);
        if (link.last == node.last) {
          operand.push_back(value);
          ++count;
        }
        if (link.first != node.first || link.last != node.last)
          moved.insert(moved.end(), {at, link.slot, value, link.first, link.last});
      }
      operands.push_back(count);
    }
    put("op", op);
    put("attributes", attributes);
    put("group", group);
    put("source", source);
    put("results", results);
    put("result", result);
    put("operands", operands);
    put("operand", operand);
    put("alive", alive);
    put("changed", changed);
    put("moved", moved);
    put("opKinds", op_kinds_);
  }

  /// Lists, for each changed node, the version, and its previous op and attributes.
  void put_change(std::uint32_t at, std::uint32_t version, Ints& out) {
    const Graph& g = graph_.versions[version - 1]->graph;
    NodeId n = graph_.nodes[at].id;
    if (!in_.input.related) {
      const auto& index = graph_.index[version - 1];
      const auto found = std::find(index.begin(), index.end(), at);
      n = NodeId(static_cast<std::uint32_t>(found - index.begin()));
    }
    out.insert(out.end(), {at, version, op_text(g, n), attributes_text(g, n)});
  }

  std::int64_t op_text(const Graph& g, NodeId n) {
    const auto [known, fresh] = ops_.try_emplace(g.op(n).index, 0);
    if (!fresh) return known->second;
    const Op& op = g.op_of(n);
    known->second = text(op.name);
    const std::int64_t kind = op.traits.splitting ? 2 : op.has_body() || op.traits.view ? 0 : 1;
    op_kinds_.insert(op_kinds_.end(), {known->second, kind});
    return known->second;
  }
  std::int64_t attributes_text(const Graph& g, NodeId n) {
    const auto [known, fresh] = attributes_.try_emplace(g.attributes(n).index, 0);
    if (fresh) known->second = text(g.context().attributes.print(g.attributes(n)));
    return known->second;
  }
  std::int64_t type_text(const Graph& g, TypeId id) {
    const auto [known, fresh] = types_.try_emplace(id.index, 0);
    if (fresh) known->second = text(g.context().types.print(id));
    return known->second;
  }

  // ---- groups and places

  /// Lists groups with nodes: top-level groups first, then the children of each, in order.
  void number_groups() {
    const std::vector<Group>& groups = in_.folding.groups;
    number_of_group_.assign(groups.size(), -1);
    const auto number = [&](std::uint32_t i) {
      number_of_group_[i] = static_cast<std::int64_t>(group_at_.size());
      group_at_.push_back(i);
    };
    for (std::uint32_t i = 0; i < groups.size(); ++i)
      if (groups[i].parent == kNobody && !groups[i].nodes.empty()) number(i);
    for (std::size_t k = 0; k < group_at_.size(); ++k)
      for (const Unit& unit : groups[group_at_[k]].sequence)
        if (unit.group) number(unit.index);
  }

  /// Writes shape, name, kind, parent group or −1, and nodes as runs.
  void put_groups() {
    number_groups();
    Ints shape, name, kind, parent, nodes;
    for (const std::uint32_t i : group_at_) {
      const Group& group = in_.folding.groups[i];
      shape.push_back(in_.placement.shape_of[i]);
      name.push_back(text(group.name));
      kind.push_back(static_cast<std::int64_t>(group.kind));
      parent.push_back(group.parent == kNobody ? -1 : number_of_group_[group.parent]);
      const std::size_t runs = nodes.size();
      nodes.push_back(0);
      for (std::size_t k = 0; k < group.nodes.size();) {
        std::size_t end = k + 1;
        while (end < group.nodes.size() && group.nodes[end] == group.nodes[end - 1] + 1) ++end;
        nodes.insert(nodes.end(), {group.nodes[k], static_cast<std::int64_t>(end - k)});
        ++nodes[runs];
        k = end;
      }
    }
    put("groupShape", shape);
    put("groupName", name);
    put("groupKind", kind);
    put("groupParent", parent);
    put("groupNodes", nodes);
  }

  static std::string sheet_json(const Sheet& sheet) {
    Ints x, size, rank, tops, edges;
    for (std::size_t i = 0; i < sheet.nodes.size(); ++i) {
      x.push_back(pixels(sheet.layout.x[i]));
      size.insert(size.end(), {pixels(sheet.nodes[i].width), pixels(sheet.nodes[i].height)});
      rank.push_back(sheet.layout.rank[i]);
    }
    for (std::size_t r = 0; r < sheet.layout.top.size(); ++r)
      tops.insert(tops.end(), {pixels(sheet.layout.top[r]), pixels(sheet.layout.height[r])});
    for (std::size_t e = 0; e < sheet.edges.size(); ++e) {
      const SheetEdge& edge = sheet.edges[e];
      const std::vector<double>& lanes = sheet.layout.lanes[e];
      edges.insert(edges.end(), {edge.from, edge.to, edge.first, edge.last,
                                 static_cast<std::int64_t>(lanes.size())});
      for (const double lane : lanes) edges.push_back(pixels(lane));
    }
    return "\"x\":" + print(x) + ",\"size\":" + print(size) + ",\"rank\":" + print(rank) +
           ",\"rows\":" + print(tops) + ",\"edges\":" + print(edges) +
           ",\"width\":" + std::to_string(pixels(sheet.layout.width)) +
           ",\"height\":" + std::to_string(pixels(sheet.layout.total)) +
           ",\"next\":" + std::to_string(sheet.next);
  }

  std::string items_json(const std::vector<Item>& items, bool whole) const {
    Ints kind, index;
    for (const Item& item : items) {
      kind.push_back(static_cast<std::int64_t>(item.kind));
      index.push_back(whole && item.kind == Item::Kind::group ? number_of_group_[item.index]
                                                              : item.index);
    }
    return ",\"kind\":" + print(kind) + ",\"index\":" + print(index);
  }

  /// Omits the items of a group without inner groups: ports, nodes, ports.
  [[nodiscard]] std::string level_json(const Level& level, bool whole) const {
    const bool plain = !whole && !level.any_group();
    std::string out = "\"folded\":{" + sheet_json(level.folded) +
                      (plain ? "" : items_json(level.items, whole)) + "}";
    if (level.any_group()) out += ",\"opened\":{" + sheet_json(level.opened) + "}";
    if (!level.unfolded_items.empty())
      out += ",\"unfolded\":{" + sheet_json(level.unfolded) +
             items_json(level.unfolded_items, whole) + "}";
    return out;
  }

  void put_shapes() {
    std::string out = "[";
    for (const Shape& shape : in_.placement.shapes) {
      const Ints leaves(shape.leaves.begin(), shape.leaves.end());
      const Ints ports(shape.ports.begin(), shape.ports.end());
      out += (out.size() > 1 ? ",\n{" : "{") + level_json(shape.level, false) +
             ",\"sources\":" + std::to_string(shape.sources) + ",\"ports\":" + print(ports) +
             ",\"leaves\":" + print(leaves) + "}";
    }
    put("shapes", out + "]");
  }

  // ---- changes

  static Json step_json(const Step& step) {
    Json out = {{"pass", step.pass},       {"nodes", step.nodes},     {"added", step.added},
                {"removed", step.removed}, {"changed", step.changed}, {"hidden", step.hidden}};
    if (step.matches) out["matches"] = *step.matches;
    if (step.seconds >= 0) out["ms"] = step.seconds * 1000;
    if (!step.rules.empty()) out["rules"] = step.rules;
    return out;
  }

  /// A flat list: rule or −1, version, then each list with its length before it.
  void put_rewrites() {
    Json rules = Json::array();
    std::map<std::string, std::int64_t> number;
    Ints all;
    const auto nodes = [&](const std::vector<Touched>& list) {
      all.push_back(static_cast<std::int64_t>(list.size()));
      for (const Touched& one : list)
        all.push_back(one.at != kNobody ? static_cast<std::int64_t>(one.at)
                                        : -1 - static_cast<std::int64_t>(one.id.index));
    };
    for (const Rewrite& rewrite : in_.timeline.rewrites) {
      std::int64_t rule = -1;
      if (!rewrite.rule.empty()) {
        const auto [known, fresh] =
            number.try_emplace(rewrite.rule, static_cast<std::int64_t>(rules.size()));
        if (fresh) rules.push_back(rule_json(rewrite.rule));
        rule = known->second;
      }
      all.insert(all.end(), {rule, rewrite.version});
      nodes(rewrite.matched);
      nodes(rewrite.created);
      nodes(rewrite.erased);
      all.push_back(static_cast<std::int64_t>(rewrite.bindings.size()));
      for (const auto& [name, source] : rewrite.bindings)
        all.insert(all.end(),
                   {text(name),
                    source.kind == Source::Kind::none ? -1 : reference(source, rewrite.version)});
    }
    put("rules", dump(rules));
    put("rewrites", all);
  }

  /// Writes, for each version, the rules of its pass that had a node to try. As in the journal, the
  /// n-th pass made version n + 1, as long as the names agree.
  [[nodiscard]] Json tried_json(const std::vector<PassStats>& passes) const {
    Json out = Json::object();
    std::size_t version = 0;
    for (const PassStats& pass : passes) {
      const auto& steps = in_.timeline.steps;
      if (version + 1 >= steps.size() || clean(pass.pass) != steps[version + 1].pass) continue;
      Json rules = Json::array();
      for (const auto& [rule, stats] : pass.rules) {
        if (stats.attempts == 0) continue;
        Json codes = Json::array();
        for (const auto& [code, times] : stats.rejections) codes.push_back({code, times});
        rules.push_back({clean(rule), stats.attempts, stats.hits, stats.matches, codes});
      }
      out[std::to_string(++version)] = std::move(rules);
    }
    return out;
  }

  /// A flat list: rule, code, message and help as texts, matched, size, where it stopped or −1, and
  /// the nodes that it matched with their number before them.
  void put_misses(const PageMisses& misses) {
    Ints all;
    const std::size_t last = graph_.versions.size() - 1;
    const auto place = [&](NodeId n) -> std::int64_t {
      const std::uint32_t at = n.valid() ? graph_.position(last, n) : kNobody;
      return at == kNobody ? -1 : static_cast<std::int64_t>(at);
    };
    for (const PageMiss& miss : misses.all) {
      all.insert(all.end(), {text(miss.rule), text(miss.code), text(miss.message), text(miss.help),
                             miss.matched, static_cast<std::int64_t>(miss.size), place(miss.at),
                             static_cast<std::int64_t>(miss.nodes.size())});
      for (const NodeId n : miss.nodes) all.push_back(place(n));
    }
    put("misses", all);
    put("whyNoMisses", dump(clean(misses.why_none)));
  }

  [[nodiscard]] Json rule_json(const std::string& name) const {
    Json out = {{"name", clean(name)}};
    if (in_.input.rules == nullptr) return out;
    const auto& rules = in_.input.rules->rules;
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == name; });
    if (rule == rules.end() || !rule->name_span.valid()) return out;
    const SourceMap& sources = in_.input.rules->context->sources;
    const Span span = rule->span.valid() ? rule->span : rule->name_span;
    out["file"] = clean(shown_path(sources.name(span.source)));
    out["line"] = sources.position(span.source, span.begin).line;
    out["text"] =
        clean(rule->span.valid() ? sources.text(span) : sources.line(span.source, span.begin));
    return out;
  }

  // ---- pieces, plan, overlay

  static Json classes_json(const StitchedGraph& stitched) {
    Json out = Json::array();
    for (const PieceClass& c : stitched.classes) {
      const Piece& first = stitched.pieces[c.members.front()];
      out.push_back({{"name", c.name},
                     {"first", first.name},
                     {"count", c.members.size()},
                     {"nodes", first.graph.node_count()},
                     {"captured", c.capturable()}});
    }
    return out;
  }

  void put_plan(const Plan& plan) {
    Json ranges = Json::array(), captures = Json::array();
    for (const Range& range : plan.ranges) ranges.push_back({range.begin, range.end});
    for (const Capture& capture : plan.captures)
      captures.push_back({{"mode", std::string(name(capture.mode))},
                          {"key", print(capture.key)},
                          {"tokens", capture.key.tokens},
                          {"graphs", capture.graphs},
                          {"nodes", capture.nodes},
                          {"input", capture.input_bytes},
                          {"live", capture.live_bytes}});
    put("plan", dump(Json{{"mode", plan.mode},
                          {"reason", plan.mode_reason},
                          {"tokens", clean(plan.tokens)},
                          {"max", plan.max_tokens},
                          {"multiple", plan.eager_multiple},
                          {"ranges", ranges},
                          {"sizes", plan.capture.sizes},
                          {"captures", captures},
                          {"notes", plan.notes},
                          {"arena", plan.memory.arena_bytes},
                          {"live", plan.memory.live_bytes},
                          {"workspace", plan.memory.workspace_bytes},
                          {"weights", plan.memory.weight_bytes}}));
    put_steps(plan);
    put_slots(plan.memory);
    put_padding(plan);
  }

  void put_steps(const Plan& plan) {
    Json reasons = Json::array();
    Ints captured;
    for (const Plan::Step& step : plan.steps) {
      captured.push_back(step.captured ? 1 : 0);
      reasons.push_back(step.reason);
    }
    put("stepCaptured", captured);
    if (in_.input.pieces != nullptr) {
      Ints names;
      for (const Plan::Step& step : plan.steps)
        names.push_back(text(in_.input.pieces->pieces[step.piece].name));
      put("stepName", names);
    }
  }

  /// Once for each storage: name, first step, further steps, begin in the schedule, further nodes,
  /// and the places of its bytes and its offset in their lists, which are short.
  void put_slots(const MemoryPlan& memory) {
    Ints out, sizes, offsets;
    std::map<std::int64_t, std::int64_t> known_sizes, known_offsets;
    const auto place = [](std::map<std::int64_t, std::int64_t>& known, Ints& list,
                          std::int64_t number) {
      const auto next = static_cast<std::int64_t>(list.size());
      const auto [found, fresh] = known.try_emplace(number, next);
      if (fresh) list.push_back(number);
      return found->second;
    };
    for (const Slot& slot : memory.slots) {
      if (slot.storage.valid() && slot.storage != slot.value) continue;
      out.insert(
          out.end(),
          {text(slot.name), static_cast<std::int64_t>(slot.first),
           static_cast<std::int64_t>(slot.last - slot.first), static_cast<std::int64_t>(slot.begin),
           static_cast<std::int64_t>(slot.end - slot.begin), place(known_sizes, sizes, slot.bytes),
           place(known_offsets, offsets, slot.offset)});
    }
    put("slots", out);
    put("slotBytes", sizes);
    put("slotOffsets", offsets);
  }

  /// The size of each token count: first, last, rows, mode; one range a line. Rows 0: as many as
  /// tokens, rounded up to the plan's multiple. Above the largest size all steps are alike.
  void put_padding(const Plan& plan) {
    if (plan.tokens.empty()) return;
    const Dispatcher dispatcher(plan);
    const std::int64_t largest = plan.capture.sizes.empty() ? 0 : plan.capture.sizes.back();
    struct Run {
      std::int64_t first = 1, last = 1, rows = 0, mode = 0;
    };
    std::vector<Run> runs;
    for (std::int64_t tokens = 1; tokens <= std::min(plan.max_tokens, largest + 1); ++tokens) {
      const Dispatch found = dispatcher.dispatch({tokens, 1, tokens, 0});
      const bool alone = found.mode == DispatchMode::none &&
                         found.key.tokens == round_up(tokens, plan.eager_multiple);
      const Run run{tokens, tokens, alone ? 0 : found.key.tokens,
                    static_cast<std::int64_t>(found.mode)};
      if (!runs.empty() && runs.back().rows == run.rows && runs.back().mode == run.mode)
        runs.back().last = tokens;
      else
        runs.push_back(run);
    }
    if (!runs.empty() && runs.back().last > largest) runs.back().last = plan.max_tokens;
    Ints out;
    for (const Run& run : runs) out.insert(out.end(), {run.first, run.last, run.rows, run.mode});
    put("padding", out);
  }

  void put_overlay() {
    const Overlay* overlay = in_.options.overlay;
    if (overlay == nullptr) return;
    Json nodes = Json::array(), numbers = Json::array();
    for (const auto& [at, number] : numbers_of(graph_, *overlay)) {
      nodes.push_back(at);
      numbers.push_back(number);
    }
    put("overlay", dump(Json{{"title", clean(overlay->title)},
                             {"given", overlay->numbers.size()},
                             {"nodes", nodes},
                             {"numbers", numbers}}));
  }

  const PageParts& in_;
  const UnionGraph& graph_;
  const Links& links_;
  TextTable texts_;
  std::string out_;
  std::vector<std::int64_t> first_value_;      // by union position
  std::vector<std::int64_t> number_of_group_;  // on the page
  std::vector<std::uint32_t> group_at_;        // by number on the page
  std::map<std::uint32_t, std::int64_t> ops_, attributes_, types_;
  Ints op_kinds_;
};

std::string escape_for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else
      out += c;
  }
  return out;
}

}  // namespace

std::string page_data_json(const PageParts& parts) {
  return escape_for_script(PageData(parts).run());
}

}  // namespace pw::viz
