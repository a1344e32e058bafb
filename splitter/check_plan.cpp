#include "splitter/check_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "graph/infer/symbol_fact.hpp"

namespace pw {
namespace {

class Check {
 public:
  explicit Check(const Plan& plan) : plan_(plan) {}

  std::vector<Contradiction> run() {
    check_sizes();
    check_captures();
    check_slots();
    return std::move(out_);
  }

 private:
  void wrong(std::string at, std::string message) {
    out_.push_back({std::move(at), std::move(message)});
  }

  void check_sizes() {
    const auto above = [&](const std::vector<std::int64_t>& sizes) {
      return !sizes.empty() && sizes.back() > plan_.max_tokens;
    };
    if (plan_.loras.empty() || plan_.loras.front() != 0) wrong("/loras", "0 is missing");
    if (above(plan_.compile_sizes)) wrong("/compile_sizes", "the last exceeds max_tokens");
    if (above(plan_.capture.sizes)) wrong("/capture_sizes", "the last exceeds max_tokens");
    if (!plan_.ranges.empty() && plan_.ranges.back().end != plan_.max_tokens)
      wrong("/ranges", "the last does not end at max_tokens");
  }

  /// A dispatcher looks captures up: those of a size that nothing pads to would never run.
  void check_captures() {
    const std::vector<std::int64_t>& sizes = plan_.capture.sizes;
    std::set<std::pair<DispatchMode, DispatchKey>> seen;
    for (std::size_t i = 0; i < plan_.captures.size(); ++i) {
      const Capture& capture = plan_.captures[i];
      const std::string at = fmt::format("/captures/{}", i);
      const bool sized = plan_.tokens.empty()
                             ? capture.key.tokens == 0
                             : std::binary_search(sizes.begin(), sizes.end(), capture.key.tokens);
      if (!sized) wrong(at + "/tokens", "it is not a capture size");
      if (!std::binary_search(plan_.loras.begin(), plan_.loras.end(), capture.key.loras))
        wrong(at + "/loras", "it is not one of the plan's");
      if (!seen.emplace(capture.mode, capture.key).second) wrong(at, "it occurs twice");
    }
  }

  /// Bytes of the arena in an interval of positions, inclusive.
  struct Place {
    std::size_t begin, end;
    std::int64_t offset, bytes;
    const std::string* name;
    std::string at;
  };

  void check_slots() {
    const MemoryPlan& memory = plan_.memory;
    std::vector<Place> places;
    const auto add_slots = [&](auto position_of) {
      for (std::size_t i = 0; i < memory.slots.size(); ++i) {
        const Slot& slot = memory.slots[i];
        const auto [begin, end] = position_of(slot);
        if (slot.storage == slot.value && slot.bytes > 0)
          places.push_back({begin, end, slot.offset, slot.bytes, &slot.name,
                            fmt::format("/memory/slots/{}", i)});
      }
    };
    if (memory.scratch.empty()) {
      add_slots([](const Slot& slot) { return std::pair(slot.begin, slot.end); });
      return check_places(places);
    }
    if (memory.scratch.size() != plan_.steps.size())
      return wrong("/memory/scratch", "it does not have an entry for each step");
    // The launches of all pieces, one after the other. A slot is alive in whole pieces.
    std::vector<std::size_t> begins{0};
    for (std::size_t i = 0; i < memory.scratch.size(); ++i) {
      std::size_t launches = 1;
      for (std::size_t j = 0; j < memory.scratch[i].size(); ++j) {
        const Scratch& s = memory.scratch[i][j];
        launches = std::max(launches, s.last + 1);
        if (s.bytes > 0)
          places.push_back({begins[i] + s.first, begins[i] + s.last, s.offset, s.bytes, &s.name,
                            fmt::format("/memory/scratch/{}/{}", i, j)});
      }
      begins.push_back(begins[i] + launches);
    }
    for (const Slot& slot : memory.slots)
      if (slot.last >= plan_.steps.size())
        return wrong("/memory/slots", slot.name + " is alive beyond the last step");
    add_slots(
        [&](const Slot& slot) { return std::pair(begins[slot.first], begins[slot.last + 1] - 1); });
    check_places(places);
  }

  void check_places(std::vector<Place>& places) {
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.begin < b.begin; });
    std::map<std::int64_t, const Place*> alive;             // by offset
    std::set<std::pair<std::size_t, std::int64_t>> by_end;  // end, offset
    for (const Place& place : places) {
      while (!by_end.empty() && by_end.begin()->first < place.begin) {
        alive.erase(by_end.begin()->second);
        by_end.erase(by_end.begin());
      }
      const auto after = alive.lower_bound(place.offset);
      const Place* other = nullptr;
      if (after != alive.end() && after->first < place.offset + place.bytes)
        other = after->second;
      else if (after != alive.begin() &&
               std::prev(after)->first + std::prev(after)->second->bytes > place.offset)
        other = std::prev(after)->second;
      if (other != nullptr)
        return wrong(place.at, fmt::format("{} and {} share bytes while both are alive",
                                           *place.name, *other->name));
      alive.emplace(place.offset, &place);
      by_end.emplace(place.end, place.offset);
    }
  }

  const Plan& plan_;
  std::vector<Contradiction> out_;
};

/// Returns why steps of the plan would run with row counts that the graph excludes, or empty.
std::string outside_facts(const Plan& plan, const Graph& source) {
  const SymbolFact* fact = source.facts.find(plan.tokens);
  if (fact == nullptr) return "";
  const std::int64_t multiple = std::max<std::int64_t>(fact->multiple, 1);
  const auto declares = [&](const std::string& what) {
    return fmt::format("{}, but the graph declares {} in {}", what, plan.tokens,
                       print_range(*fact));
  };
  if (plan.max_tokens > greatest_value(*fact))
    return declares(fmt::format("it is planned for {}", counted(plan.max_tokens, "token")));
  const std::vector<std::int64_t>* const both[] = {&plan.compile_sizes, &plan.capture.sizes};
  for (const auto* sizes : both)
    for (const std::int64_t size : *sizes)
      if (size < fact->min || size % multiple != 0)
        return declares(fmt::format("{} is a size", size));
  if (plan.mode != name(CaptureMode::none) && plan.eager_multiple % multiple != 0)
    return declares(fmt::format("steps pad to multiples of {}", plan.eager_multiple));
  return "";
}

}  // namespace

std::vector<Contradiction> contradictions(const Plan& plan) { return Check(plan).run(); }

Status check_memory(const Plan& plan, const StitchedGraph& pieces, const Graph& source) {
  const auto refuse = [&](const std::string& at, const std::string& why) {
    return fail(error_in(at, "PW0745", why, "create the plan again from this graph"));
  };
  const std::string whole = "plan of " + plan.graph;
  for (const Contradiction& found : contradictions(plan))
    return refuse(whole + " at " + found.at, found.message);
  if (const std::string why = outside_facts(plan, source); !why.empty()) return refuse(whole, why);
  const bool launches = !plan.memory.scratch.empty();
  std::vector<PieceSchedule> schedules(launches ? pieces.pieces.size() : 0);
  auto needed =
      plan_memory(pieces, source, round_up(plan.max_tokens, plan.eager_multiple), schedules);
  if (!needed) return forward(needed);
  std::map<ValueId, const Slot*> slots;
  for (const Slot& slot : plan.memory.slots) slots.emplace(slot.value, &slot);
  if (slots.size() != needed->slots.size())
    return refuse(
        whole, fmt::format("the plan has slots for {} values, but {} values of the graph need one",
                           slots.size(), needed->slots.size()));
  for (const Slot& need : needed->slots) {
    const std::string at = fmt::format("{} at value {}", whole, need.name);
    const auto found = slots.find(need.value);
    if (found == slots.end()) return refuse(at, "it has no slot");
    const Slot& slot = *found->second;
    const auto alive = [&](const char* unit, std::size_t first, std::size_t last, std::size_t from,
                           std::size_t to) {
      return fmt::format("it is alive in {} {}..{} of the plan, but needed in {}..{}", unit, from,
                         to, first, last);
    };
    if (slot.storage != need.storage) return refuse(at, "it shares the slot of another value");
    if (slot.bytes < need.bytes)
      return refuse(at,
                    fmt::format("its slot has {} bytes, but it needs {}", slot.bytes, need.bytes));
    if (slot.first > need.first || slot.last < need.last)
      return refuse(at, alive("steps", need.first, need.last, slot.first, slot.last));
    if (!launches && (slot.begin > need.begin || slot.end < need.end))
      return refuse(at, alive("nodes", need.begin, need.end, slot.begin, slot.end));
  }
  return {};
}

}  // namespace pw
