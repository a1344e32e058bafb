#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "graph/text/json_checks.hpp"
#include "splitter/check_plan.hpp"
#include "splitter/offsets.hpp"
#include "splitter/plan_text.hpp"

namespace pw {
namespace {

using json::kTop;
using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

constexpr std::string_view kFormat = "piecewise.plan/1";
constexpr std::int64_t kMost = std::int64_t{1} << 56;  // bytes of one value; more than any number
constexpr std::int64_t kMostLaunches = std::int64_t{1} << 32;  // of a piece

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file), check_(file, {"PW0741", "PW0742"}) {}

  Result<PlanDocument> read(std::string_view text) {
    json::Sink sink;
    sink.streamed = {"captures", "steps", "classes"};
    sink.element = [&](std::string_view key, std::size_t i, const Tree& tree) {
      const Pointer list = kTop / key;
      if (!check_.full()) element(key, list / i, tree);
    };
    sink.member = [&](std::string_view key, const Tree& tree) {
      seen_.emplace(key);
      if (!check_.full()) member(key, kTop / key, tree);
    };
    auto scanned = json::scan(text, file_, sink);
    if (!scanned) check_.add(std::move(scanned.error()));
    if (check_.passed()) check_whole();
    if (!check_.passed()) return tl::unexpected(check_.take());
    return std::move(out_);
  }

 private:
  void wrong(const Pointer& at, std::string message) {
    check_.error(at, "PW0743", std::move(message));
  }
  void wrong_at(const std::string& at, std::string message) {
    check_.error_at(at, "PW0743", std::move(message));
  }

  // ---- one value
  std::int64_t integer(const Tree& tree, const Pointer& at, std::int64_t least = 0,
                       std::int64_t most = kMost) {
    if (!check_.expect(tree, Kind::integer, at)) return least;
    if (tree.integer >= least && tree.integer <= most) return tree.integer;
    wrong(at, fmt::format("{} is not in {}..{}", tree.integer, least, most));
    return least;
  }
  std::string string(const Tree& tree, const Pointer& at) {
    return check_.expect(tree, Kind::string, at) ? std::string(tree.text) : std::string();
  }
  std::vector<std::string> strings(const Tree& tree, const Pointer& at) {
    std::vector<std::string> out;
    if (!check_.expect(tree, Kind::array, at)) return out;
    for (std::size_t i = 0; i < tree.items.size(); ++i)
      out.push_back(string(tree.items[i], at / i));
    return out;
  }
  std::vector<std::int64_t> rising(const Tree& tree, const Pointer& at, std::int64_t least) {
    std::vector<std::int64_t> out;
    if (!check_.expect(tree, Kind::array, at)) return out;
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
      const Pointer here = at / i;
      out.push_back(integer(tree.items[i], here, least, kLargestSize));
      if (i > 0 && out[i] <= out[i - 1]) wrong(here, "the numbers do not ascend");
    }
    return out;
  }
  std::pair<std::int64_t, std::int64_t> pair(const Tree& tree, const Pointer& at,
                                             std::int64_t least) {
    if (!check_.expect(tree, Kind::array, at)) return {least, least};
    if (tree.items.size() != 2) {
      check_.error(at, "PW0741", "expected two numbers");
      return {least, least};
    }
    const std::pair<std::int64_t, std::int64_t> out{
        integer(tree.items[0], at / std::size_t{0}, least),
        integer(tree.items[1], at / std::size_t{1}, least)};
    if (out.second < out.first) wrong(at, "the second number is below the first");
    return out;
  }

  // ---- members of an object
  bool known(const Tree& tree, const Pointer& at, std::initializer_list<std::string_view> names) {
    if (!check_.expect(tree, Kind::object, at)) return false;
    check_.known_keys(tree, names, at);
    return true;
  }
  /// Returns the member; null with an error if it is missing.
  const Tree* need(const Tree& tree, std::string_view key, const Pointer& at) {
    const Tree* found = tree.find(key);
    if (found == nullptr)
      check_.error(at, "PW0741", fmt::format("the member `{}` is missing", key));
    return found;
  }
  std::int64_t need_integer(const Tree& tree, std::string_view key, const Pointer& at,
                            std::int64_t least = 0, std::int64_t most = kMost) {
    const Tree* found = need(tree, key, at);
    return found == nullptr ? least : integer(*found, at / key, least, most);
  }
  std::size_t need_size(const Tree& tree, std::string_view key, const Pointer& at) {
    return static_cast<std::size_t>(need_integer(tree, key, at));
  }
  std::int64_t may_integer(const Tree& tree, std::string_view key, const Pointer& at) {
    const Tree* found = tree.find(key);
    return found == nullptr ? 0 : integer(*found, at / key);
  }
  std::string need_string(const Tree& tree, std::string_view key, const Pointer& at) {
    const Tree* found = need(tree, key, at);
    return found == nullptr ? std::string() : string(*found, at / key);
  }
  std::vector<std::string> need_strings(const Tree& tree, std::string_view key, const Pointer& at) {
    const Tree* found = need(tree, key, at);
    return found == nullptr ? std::vector<std::string>{} : strings(*found, at / key);
  }
  bool need_bool(const Tree& tree, std::string_view key, const Pointer& at) {
    const Tree* found = need(tree, key, at);
    return found != nullptr && check_.expect(*found, Kind::boolean, at / key) && found->boolean;
  }

  // ---- the parts of a plan
  void member(std::string_view key, const Pointer& at, const Tree& tree) {
    Plan& plan = out_.plan;
    if (key == "format") {
      const std::string format = string(tree, at);
      if (format != kFormat)
        check_.error(at, "PW0741", fmt::format("unknown format `{}`", format.substr(0, 80)),
                     fmt::format("this program reads {}", kFormat));
    } else if (key == "graph") {
      plan.graph = string(tree, at);
    } else if (key == "mode") {
      plan.mode = string(tree, at);
      if (!capture_mode_named(plan.mode))
        wrong(at, fmt::format("unknown capture mode `{}`", plan.mode.substr(0, 80)));
    } else if (key == "mode_reason") {
      plan.mode_reason = string(tree, at);
    } else if (key == "tokens") {
      if (tree.kind == Kind::null || !known(tree, at, {"symbol", "max"})) return;
      plan.tokens = need_string(tree, "symbol", at);
      plan.max_tokens = need_integer(tree, "max", at, 1);
      if (plan.tokens.empty()) wrong(at, "the symbol has no name");
    } else if (key == "bound") {
      if (!check_.expect(tree, Kind::object, at)) return;
      for (std::size_t i = 0; i < tree.keys.size(); ++i)
        plan.bound.emplace(tree.keys[i], integer(tree.items[i], at / tree.keys[i]));
    } else if (key == "ranges") {
      if (!check_.expect(tree, Kind::array, at)) return;
      for (std::size_t i = 0; i < tree.items.size(); ++i) add_range(tree.items[i], at, i);
    } else if (key == "compile_sizes") {
      plan.compile_sizes = rising(tree, at, 1);
    } else if (key == "capture_sizes") {
      plan.capture.sizes = rising(tree, at, 1);
    } else if (key == "eager_multiple") {
      plan.eager_multiple = integer(tree, at, 1, kLargestSize);
    } else if (key == "max_requests") {
      plan.max_requests = integer(tree, at, 1);
    } else if (key == "speculative_tokens") {
      plan.speculative_tokens = integer(tree, at, 0, kLargestSize);
    } else if (key == "loras") {
      plan.loras = rising(tree, at, 0);
    } else if (key == "notes") {
      plan.notes = strings(tree, at);
    } else if (key == "memory") {
      memory(tree, at);
    } else if (key == "captures" || key == "steps" || key == "classes") {
      check_.expect(tree, Kind::array, at);
    } else {
      check_.unknown_key(
          key,
          {"format", "graph", "mode", "mode_reason", "tokens", "bound", "ranges", "compile_sizes",
           "capture_sizes", "eager_multiple", "max_requests", "speculative_tokens", "loras",
           "notes", "captures", "steps", "classes", "memory"},
          kTop);
    }
  }

  void element(std::string_view key, const Pointer& at, const Tree& tree) {
    if (key == "captures")
      capture(tree, at);
    else if (key == "steps")
      step(tree, at);
    else
      piece_class(tree, at);
  }

  void add_range(const Tree& tree, const Pointer& list, std::size_t i) {
    const Pointer at = list / i;
    const auto [begin, end] = pair(tree, at, 1);
    std::vector<Range>& ranges = out_.plan.ranges;
    if (!ranges.empty() && begin != ranges.back().end + 1)
      wrong(at, "the range does not begin directly after the previous one");
    ranges.push_back({begin, end});
  }

  void capture(const Tree& tree, const Pointer& at) {
    if (!known(tree, at,
               {"mode", "tokens", "requests", "query", "loras", "graphs", "nodes", "input_bytes",
                "live_bytes"}))
      return;
    Capture made;
    const std::string mode = need_string(tree, "mode", at);
    if (mode == name(DispatchMode::full))
      made.mode = DispatchMode::full;
    else if (mode != name(DispatchMode::piecewise))
      wrong(at / "mode", "a capture is piecewise or full");
    made.key = {need_integer(tree, "tokens", at), may_integer(tree, "requests", at),
                may_integer(tree, "query", at), may_integer(tree, "loras", at)};
    made.graphs = need_size(tree, "graphs", at);
    made.nodes = need_size(tree, "nodes", at);
    made.input_bytes = need_integer(tree, "input_bytes", at);
    made.live_bytes = need_integer(tree, "live_bytes", at);
    out_.plan.captures.push_back(made);
  }

  void step(const Tree& tree, const Pointer& at) {
    if (!known(tree, at, {"piece", "class", "captured", "reason", "nodes", "inputs", "outputs"}))
      return;
    PlanDocument::Piece piece{need_string(tree, "piece", at), need_size(tree, "nodes", at),
                              need_strings(tree, "inputs", at), need_strings(tree, "outputs", at)};
    if (!piece_named_.emplace(piece.name, out_.pieces.size()).second)
      wrong(at / "piece", "more than one step runs " + piece.name);
    Plan::Step made;
    made.piece = PieceId(out_.pieces.size());
    made.captured = need_bool(tree, "captured", at);
    if (const Tree* reason = tree.find("reason")) made.reason = string(*reason, at / "reason");
    class_of_.push_back(need_string(tree, "class", at));
    out_.pieces.push_back(std::move(piece));
    out_.plan.steps.push_back(std::move(made));
  }

  void piece_class(const Tree& tree, const Pointer& at) {
    if (!known(tree, at, {"name", "hash", "splitting", "pieces"})) return;
    PlanDocument::Class made;
    made.name = need_string(tree, "name", at);
    const std::string hash = need_string(tree, "hash", at);
    const auto [end, problem] =
        std::from_chars(hash.data(), hash.data() + hash.size(), made.hash, 16);
    if (hash.size() != 16 || problem != std::errc() || end != hash.data() + hash.size())
      wrong(at / "hash", "a hash has 16 hexadecimal digits");
    made.splitting = need_bool(tree, "splitting", at);
    made.pieces = need_strings(tree, "pieces", at);
    if (!class_named_.emplace(made.name, out_.classes.size()).second)
      wrong(at / "name", "duplicate class " + made.name);
    out_.classes.push_back(std::move(made));
  }

  void memory(const Tree& tree, const Pointer& at) {
    if (!known(tree, at,
               {"arena_bytes", "live_bytes", "crossing_bytes", "input_bytes", "weight_bytes",
                "buffer_bytes", "cache_bytes", "workspace", "slots", "scratch"}))
      return;
    MemoryPlan& plan = out_.plan.memory;
    // Sums over many values.
    constexpr std::int64_t kSum = std::numeric_limits<std::int64_t>::max() / 2;
    plan.arena_bytes = need_integer(tree, "arena_bytes", at, 0, kSum);
    plan.live_bytes = need_integer(tree, "live_bytes", at, 0, kSum);
    plan.crossing_bytes = need_integer(tree, "crossing_bytes", at, 0, kSum);
    plan.input_bytes = need_integer(tree, "input_bytes", at, 0, kSum);
    plan.weight_bytes = need_integer(tree, "weight_bytes", at, 0, kSum);
    plan.buffer_bytes = need_integer(tree, "buffer_bytes", at, 0, kSum);
    plan.cache_bytes = may_integer(tree, "cache_bytes", at);
    if (const Tree* workspace = tree.find("workspace");
        workspace != nullptr && known(*workspace, at / "workspace", {"offset", "bytes"})) {
      plan.workspace_offset = need_integer(*workspace, "offset", at / "workspace", 0, kSum);
      plan.workspace_bytes = need_integer(*workspace, "bytes", at / "workspace", 1);
      if (plan.workspace_offset > plan.arena_bytes ||
          plan.workspace_bytes > plan.arena_bytes - plan.workspace_offset)
        wrong(at / "workspace", "the workspace ends beyond the arena");
    }
    const Tree* slots = need(tree, "slots", at);
    if (slots == nullptr || !check_.expect(*slots, Kind::array, at / "slots")) return;
    for (std::size_t i = 0; i < slots->items.size() && !check_.full(); ++i)
      slot(slots->items[i], at / "slots" / i);
    for (std::size_t i = 0; i < storage_of_.size() && !check_.full(); ++i) resolve_storage(i);
    const Tree* scratch = tree.find("scratch");
    if (scratch == nullptr || !check_.expect(*scratch, Kind::array, at / "scratch")) return;
    for (std::size_t i = 0; i < scratch->items.size() && !check_.full(); ++i) {
      const Pointer list = at / "scratch", here = list / i;
      plan.scratch.emplace_back();
      if (!check_.expect(scratch->items[i], Kind::array, here)) continue;
      for (std::size_t j = 0; j < scratch->items[i].items.size() && !check_.full(); ++j)
        plan.scratch.back().push_back(scratch_value(scratch->items[i].items[j], here / j));
    }
  }

  Scratch scratch_value(const Tree& tree, const Pointer& at) {
    Scratch made;
    if (!known(tree, at, {"value", "offset", "bytes", "launches"})) return made;
    made.name = need_string(tree, "value", at);
    place(tree, at, made.offset, made.bytes);
    if (const Tree* launches = need(tree, "launches", at)) {
      const auto [first, last] = pair(*launches, at / "launches", 0);
      if (last > kMostLaunches)
        wrong(at / "launches", "it exceeds the limit of launches of a piece");
      made.first = static_cast<std::size_t>(first);
      made.last = static_cast<std::size_t>(std::min(last, kMostLaunches));
    }
    return made;
  }

  /// Offset and bytes of something in the arena.
  void place(const Tree& tree, const Pointer& at, std::int64_t& offset, std::int64_t& bytes) {
    const std::int64_t arena = out_.plan.memory.arena_bytes;
    offset = need_integer(tree, "offset", at, 0, arena);
    bytes = need_integer(tree, "bytes", at, 0);
    if (offset % kAlignment != 0)
      wrong(at / "offset", fmt::format("the offset is not a multiple of {}", kAlignment));
    if (bytes > arena - offset) wrong(at, "the slot ends beyond the arena");
  }

  void slot(const Tree& tree, const Pointer& at) {
    storage_of_.emplace_back();
    Slot& made = out_.plan.memory.slots.emplace_back();
    made.value = made.storage = ValueId(out_.plan.memory.slots.size() - 1);
    if (!known(tree, at, {"value", "offset", "bytes", "steps", "nodes", "crossing", "storage"}))
      return;
    made.name = need_string(tree, "value", at);
    if (!slot_named_.emplace(made.name, made.value.index).second)
      wrong(at / "value", "duplicate slot of the value " + made.name);
    place(tree, at, made.offset, made.bytes);
    const Tree *steps = need(tree, "steps", at), *nodes = need(tree, "nodes", at);
    const auto bounds = [&](const Tree* bound, const char* key) {
      const auto [first, last] =
          bound == nullptr ? std::pair<std::int64_t, std::int64_t>() : pair(*bound, at / key, 0);
      return std::pair(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
    };
    std::tie(made.first, made.last) = bounds(steps, "steps");
    std::tie(made.begin, made.end) = bounds(nodes, "nodes");
    made.crossing = need_bool(tree, "crossing", at);
    if (tree.find("storage") != nullptr) storage_of_.back() = need_string(tree, "storage", at);
  }

  void resolve_storage(std::size_t i) {
    if (storage_of_[i].empty()) return;
    const std::string at = fmt::format("/memory/slots/{}/storage", i);
    const auto found = slot_named_.find(storage_of_[i]);
    if (found == slot_named_.end() || found->second == i || !storage_of_[found->second].empty()) {
      wrong_at(at, "no slot with its own storage has the value " + storage_of_[i]);
      return;
    }
    std::vector<Slot>& slots = out_.plan.memory.slots;
    if (slots[i].offset != slots[found->second].offset)
      wrong_at(at, "the two values have different offsets");
    slots[i].storage = ValueId(found->second);
  }

  void check_whole() {
    for (const char* key :
         {"format", "graph", "mode", "tokens", "ranges", "compile_sizes", "capture_sizes",
          "eager_multiple", "max_requests", "speculative_tokens", "loras", "memory"})
      if (!seen_.contains(key))
        check_.error(kTop, "PW0741", fmt::format("the member `{}` is missing", key));
    if (!check_.passed()) return;
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
      const auto found = class_named_.find(class_of_[i]);
      if (found == class_named_.end())
        wrong_at(fmt::format("/steps/{}/class", i), "unknown class " + class_of_[i]);
      else
        out_.plan.steps[i].piece_class = PieceClassId(found->second);
    }
    for (std::size_t i = 0; i < out_.classes.size(); ++i)
      for (const std::string& piece : out_.classes[i].pieces)
        if (!piece_named_.contains(piece))
          wrong_at(fmt::format("/classes/{}/pieces", i), "no step runs " + piece);
    for (const Contradiction& found : contradictions(out_.plan)) wrong_at(found.at, found.message);
    CaptureSizes& capture = out_.plan.capture;
    if (check_.passed()) capture = make_capture_sizes(std::move(capture.sizes));
  }

  const std::string& file_;
  json::Checks check_;
  PlanDocument out_;
  std::set<std::string, std::less<>> seen_;
  std::vector<std::string> class_of_, storage_of_;  // by step, by slot
  std::map<std::string, std::size_t> class_named_, piece_named_, slot_named_;
};

}  // namespace

Result<PlanDocument> plan_from_json(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

}  // namespace pw
