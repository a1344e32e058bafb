// Exports contradictions.
#include "splitter/check_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

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
    if (plan_.loras.empty() || plan_.loras.front() != 0) wrong("/loras", "0 is not among them");
    if (above(plan_.compile_sizes)) wrong("/compile_sizes", "the last is above the most tokens");
    if (above(plan_.capture.sizes)) wrong("/capture_sizes", "the last is above the most tokens");
    if (!plan_.ranges.empty() && plan_.ranges.back().end != plan_.max_tokens)
      wrong("/ranges", "the last does not end with the most tokens");
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
      if (!sized) wrong(at + "/tokens", "it is no capture size");
      if (!std::binary_search(plan_.loras.begin(), plan_.loras.end(), capture.key.loras))
        wrong(at + "/loras", "it is not among the plan's");
      if (!seen.emplace(capture.mode, capture.key).second) wrong(at, "it is there twice");
    }
  }

  void check_slots() {
    const std::vector<Slot>& slots = plan_.memory.slots;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].storage == slots[i].value && slots[i].bytes > 0) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return slots[a].begin < slots[b].begin; });
    std::map<std::int64_t, std::size_t> alive;              // by offset
    std::set<std::pair<std::size_t, std::int64_t>> by_end;  // end, offset
    for (const std::size_t i : order) {
      const Slot& slot = slots[i];
      while (!by_end.empty() && by_end.begin()->first < slot.begin) {
        alive.erase(by_end.begin()->second);
        by_end.erase(by_end.begin());
      }
      const auto after = alive.lower_bound(slot.offset);
      const Slot* other = nullptr;
      if (after != alive.end() && after->first < slot.offset + slot.bytes)
        other = &slots[after->second];
      else if (after != alive.begin() && end_of(std::prev(after)->second) > slot.offset)
        other = &slots[std::prev(after)->second];
      if (other != nullptr)
        return wrong(
            fmt::format("/memory/slots/{}", i),
            fmt::format("{} and {} share bytes while both are alive", slot.name, other->name));
      alive.emplace(slot.offset, i);
      by_end.emplace(slot.end, slot.offset);
    }
  }
  [[nodiscard]] std::int64_t end_of(std::size_t i) const {
    return plan_.memory.slots[i].offset + plan_.memory.slots[i].bytes;
  }

  const Plan& plan_;
  std::vector<Contradiction> out_;
};

}  // namespace

std::vector<Contradiction> contradictions(const Plan& plan) { return Check(plan).run(); }

}  // namespace pw
