#include "splitter/plan_text.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/try.hpp"
#include "splitter/check_plan.hpp"
#include "splitter/row_mixing.hpp"

namespace pw {
namespace {

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId v : values) names.emplace_back(graph.value_name(v));
  return names;
}

tl::unexpected<Diagnostics> other_graph(const Plan& plan, const std::string& what) {
  return fail(error_in("plan of " + plan.graph, "PW0744", "is for another graph: " + what,
                       "create the plan again from this graph, with the same rules and options"));
}

std::map<std::string, ValueId, std::less<>> values_by_name(const Graph& graph) {
  std::map<std::string, ValueId, std::less<>> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    for (std::size_t r = 0; r < graph.result_count(n); ++r)
      out.emplace(graph.value_name(graph.result(n, r)), graph.result(n, r));
  return out;
}

constexpr std::size_t kMostLines = 40;  // of one list of differences

/// Collects lines; those beyond a list's limit are counted.
class Differences {
 public:
  template <class T>
  void compare(const std::string& what, const T& a, const T& b) {
    if (a == b) return;
    out_.push_back(fmt::format("{}: {} → {}", what, shown(a), shown(b)));
  }
  /// Entries of the same key; `compare_entry` adds lines for two that both have.
  template <class Entry, class Key, class Compare>
  void lists(const std::string& what, const std::vector<Entry>& a, const std::vector<Entry>& b,
             Key key, Compare compare_entry) {
    std::vector<std::string> before = std::move(out_);
    out_.clear();
    std::map<std::string, const Entry*> in_b;
    for (const Entry& entry : b) in_b.emplace(key(entry), &entry);
    for (const Entry& entry : a) {
      const auto other = in_b.find(key(entry));
      if (other == in_b.end()) {
        out_.push_back(fmt::format("{} {}: only in the first", what, key(entry)));
      } else {
        compare_entry(entry, *other->second);
        in_b.erase(other);
      }
    }
    for (const Entry& entry : b)
      if (in_b.contains(key(entry)))
        out_.push_back(fmt::format("{} {}: only in the second", what, key(entry)));
    if (out_.size() > kMostLines) {
      const std::size_t more = out_.size() - kMostLines;
      out_.resize(kMostLines);
      out_.push_back(fmt::format("{}: and {} more differences", what, more));
    }
    before.insert(before.end(), out_.begin(), out_.end());
    out_ = std::move(before);
  }
  std::vector<std::string> take() { return std::move(out_); }

 private:
  static std::string shown(bool x) { return x ? "yes" : "no"; }
  static std::string shown(std::int64_t x) { return std::to_string(x); }
  static std::string shown(std::size_t x) { return std::to_string(x); }
  static std::string shown(const std::string& x) { return x.empty() ? "none" : x; }
  static std::string shown(const std::vector<std::int64_t>& x) {
    return fmt::format("[{}]", fmt::join(x, ", "));
  }
  static std::string shown(const std::vector<std::string>& x) {
    return fmt::format("[{}]", fmt::join(x, ", "));
  }
  std::vector<std::string> out_;
};

std::vector<std::string> shown_ranges(const Plan& plan) {
  std::vector<std::string> out;
  for (const Range& range : plan.ranges)
    out.push_back(fmt::format("{}..{}", range.begin, range.end));
  return out;
}

std::vector<std::string> shown_bounds(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& [symbol, bound] : plan.bound) out.push_back(fmt::format("{} {}", symbol, bound));
  return out;
}

void compare_options(Differences& out, const Plan& a, const Plan& b) {
  out.compare("graph", a.graph, b.graph);
  out.compare("mode", a.mode, b.mode);
  out.compare("mode reason", a.mode_reason, b.mode_reason);
  out.compare("tokens", a.tokens, b.tokens);
  out.compare("most tokens", a.max_tokens, b.max_tokens);
  out.compare("other dims", shown_bounds(a), shown_bounds(b));
  out.compare("ranges", shown_ranges(a), shown_ranges(b));
  out.compare("compile sizes", a.compile_sizes, b.compile_sizes);
  out.compare("capture sizes", a.capture.sizes, b.capture.sizes);
  out.compare("eager multiple", a.eager_multiple, b.eager_multiple);
  out.compare("most requests", a.max_requests, b.max_requests);
  out.compare("speculative tokens", a.speculative_tokens, b.speculative_tokens);
  out.compare("adapters", a.loras, b.loras);
  out.compare("notes", a.notes, b.notes);
}

void compare_captures(Differences& out, const Plan& a, const Plan& b) {
  const auto key = [](const Capture& c) {
    return fmt::format("{} {}", name(c.mode), print(c.key));
  };
  out.lists("capture", a.captures, b.captures, key, [&](const Capture& x, const Capture& y) {
    const std::string what = "capture " + key(x);
    out.compare(what + ", graphs", x.graphs, y.graphs);
    out.compare(what + ", nodes", x.nodes, y.nodes);
    out.compare(what + ", input bytes", x.input_bytes, y.input_bytes);
    out.compare(what + ", live bytes", x.live_bytes, y.live_bytes);
  });
}

void compare_pieces(Differences& out, const PlanDocument& a, const PlanDocument& b) {
  struct Both {
    const PlanDocument::Piece* piece;
    const Plan::Step* step;
    std::string piece_class;
  };
  const auto both = [](const PlanDocument& document) {
    std::vector<Both> list;
    for (std::size_t i = 0; i < document.pieces.size(); ++i) {
      const Plan::Step& step = document.plan.steps[i];
      list.push_back({&document.pieces[i], &step, document.classes[step.piece_class.index].name});
    }
    return list;
  };
  const auto key = [](const Both& x) { return x.piece->name; };
  out.lists("piece", both(a), both(b), key, [&](const Both& x, const Both& y) {
    const std::string what = x.piece->name;
    out.compare(what + ", class", x.piece_class, y.piece_class);
    out.compare(what + ", captured", x.step->captured, y.step->captured);
    out.compare(what + ", reason", x.step->reason, y.step->reason);
    out.compare(what + ", nodes", x.piece->nodes, y.piece->nodes);
    out.compare(what + ", inputs", x.piece->inputs, y.piece->inputs);
    out.compare(what + ", outputs", x.piece->outputs, y.piece->outputs);
  });
  const auto class_key = [](const PlanDocument::Class& c) { return c.name; };
  out.lists("class", a.classes, b.classes, class_key,
            [&](const PlanDocument::Class& x, const PlanDocument::Class& y) {
              out.compare(x.name + ", hash", fmt::format("{:016x}", x.hash),
                          fmt::format("{:016x}", y.hash));
              out.compare(x.name + ", splitting", x.splitting, y.splitting);
              out.compare(x.name + ", pieces", x.pieces, y.pieces);
            });
}

void compare_memory(Differences& out, const MemoryPlan& a, const MemoryPlan& b) {
  out.compare("arena bytes", a.arena_bytes, b.arena_bytes);
  out.compare("live bytes", a.live_bytes, b.live_bytes);
  out.compare("crossing bytes", a.crossing_bytes, b.crossing_bytes);
  out.compare("input bytes", a.input_bytes, b.input_bytes);
  out.compare("weight bytes", a.weight_bytes, b.weight_bytes);
  out.compare("buffer bytes", a.buffer_bytes, b.buffer_bytes);
  out.compare("cache bytes", a.cache_bytes, b.cache_bytes);
  out.compare("workspace bytes", a.workspace_bytes, b.workspace_bytes);
  out.compare("workspace offset", a.workspace_offset, b.workspace_offset);
  const auto storage_names = [](const MemoryPlan& memory) {
    std::map<ValueId, std::string> names;
    for (const Slot& slot : memory.slots) names.emplace(slot.value, slot.name);
    return names;
  };
  const auto in_a = storage_names(a), in_b = storage_names(b);
  const auto key = [](const Slot& slot) { return slot.name; };
  out.lists("value", a.slots, b.slots, key, [&](const Slot& x, const Slot& y) {
    const std::string what = "value " + x.name;
    out.compare(what + ", offset", x.offset, y.offset);
    out.compare(what + ", bytes", x.bytes, y.bytes);
    out.compare(what + ", first step", x.first, y.first);
    out.compare(what + ", last step", x.last, y.last);
    out.compare(what + ", first node", x.begin, y.begin);
    out.compare(what + ", last node", x.end, y.end);
    out.compare(what + ", crossing", x.crossing, y.crossing);
    out.compare(what + ", storage", in_a.at(x.storage), in_b.at(y.storage));
  });
  struct Entry {
    std::string key;
    Scratch scratch;
  };
  const auto scratch_of = [](const MemoryPlan& memory) {
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < memory.scratch.size(); ++i)
      for (std::size_t j = 0; j < memory.scratch[i].size(); ++j)
        entries.push_back({fmt::format("{} of step {}", j, i), memory.scratch[i][j]});
    return entries;
  };
  const auto entry_key = [](const Entry& entry) { return entry.key; };
  out.lists("scratch", scratch_of(a), scratch_of(b), entry_key,
            [&](const Entry& x, const Entry& y) {
              const std::string what = "scratch " + x.key;
              out.compare(what + ", value", x.scratch.name, y.scratch.name);
              out.compare(what + ", offset", x.scratch.offset, y.scratch.offset);
              out.compare(what + ", bytes", x.scratch.bytes, y.scratch.bytes);
              out.compare(what + ", first launch", x.scratch.first, y.scratch.first);
              out.compare(what + ", last launch", x.scratch.last, y.scratch.last);
            });
}

}  // namespace

PlanDocument describe(const Plan& plan, const StitchedGraph& pieces) {
  PlanDocument out{plan, {}, {}};
  for (const Plan::Step& step : plan.steps) {
    const Piece& piece = pieces.pieces[step.piece];
    out.pieces.push_back({piece.name, piece.graph.node_count(),
                          names_of(piece.graph, piece.graph.inputs()),
                          names_of(piece.graph, piece.graph.outputs())});
  }
  for (const PieceClass& c : pieces.classes) {
    PlanDocument::Class& made = out.classes.emplace_back();
    made.name = c.name;
    made.hash = c.hash;
    made.splitting = c.splitting;
    for (const PieceId p : c.members) made.pieces.push_back(pieces.pieces[p].name);
  }
  return out;
}

Result<Plan> bind_plan(const PlanDocument& document, const StitchedGraph& pieces,
                       const Graph& source) {
  Plan plan = document.plan;
  if (document.pieces.size() != pieces.pieces.size())
    return other_graph(plan, fmt::format("it has {} pieces, the graph {}", document.pieces.size(),
                                         pieces.pieces.size()));
  const PlanDocument now = describe(plan, pieces);
  for (std::size_t i = 0; i < now.pieces.size(); ++i)
    if (now.pieces[i] != document.pieces[i])
      return other_graph(plan, now.pieces[i].name + " has other nodes, inputs or outputs");
  if (now.classes != document.classes)
    return other_graph(plan, "its pieces belong to other classes, or have other hashes");
  const auto values = values_by_name(source);
  std::map<ValueId, ValueId> bound;
  for (const Slot& slot : plan.memory.slots) {
    const auto found = values.find(slot.name);
    if (found == values.end()) return other_graph(plan, "there is no value " + slot.name);
    bound.emplace(slot.value, found->second);
  }
  for (Slot& slot : plan.memory.slots) {
    slot.storage = bound.at(slot.storage);
    slot.value = bound.at(slot.value);
  }
  PW_TRY(check_memory(plan, pieces, source));
  const bool pads = plan.mode != name(CaptureMode::none) || plan.eager_multiple > 1;
  if (const auto mixing = pads ? row_mixing(source) : std::nullopt)
    return fail(error_in("plan of " + plan.graph, "PW0745", "steps are padded, and " + *mixing,
                         "create the plan again from this graph"));
  return plan;
}

std::vector<std::string> differences(const PlanDocument& a, const PlanDocument& b) {
  Differences out;
  compare_options(out, a.plan, b.plan);
  compare_captures(out, a.plan, b.plan);
  compare_pieces(out, a, b);
  compare_memory(out, a.plan.memory, b.plan.memory);
  return out.take();
}

}  // namespace pw
