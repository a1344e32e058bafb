// Fast versions of the gates of engine_legality.cpp, evaluated on the registers of the match
// program before a candidate is read from them.
//
// Most matches are decided here: their values have as many uses as in the pattern, what they read
// precedes what they write, and types and attributes repeat those of the match that followed the
// previous one last time. In any other case the answer is `unknown`, and the full gates decide.
// Invariant: an answer other than `unknown` equals that of the full gates.
#include <algorithm>

#include "rewriter/engine/engine.hpp"

namespace pw {

void RuleEngine::note_registers(std::uint32_t index) {
  const ProgramRule& compiled = program_.rules[index];
  Prepared& rule = rules_[index];
  const auto read = [](const std::vector<std::uint16_t>& registers, std::size_t spare) {
    std::vector<std::uint16_t> out = registers;
    std::replace(out.begin(), out.end(), ProgramRule::kNone, static_cast<std::uint16_t>(spare));
    return out;
  };
  Reading reading;
  reading.nodes = read(compiled.nodes, registers_->nodes.size() - 1);
  reading.values = read(compiled.values, registers_->values.size() - 1);
  reading.swaps = read(compiled.swaps, registers_->swaps.size() - 1);
  for (std::uint32_t v = 0; v < compiled.constants.size(); ++v)
    if (compiled.values[v] == ProgramRule::kNone && compiled.constants[v] != ProgramRule::kNone)
      reading.numbers.emplace_back(v, compiled.constants[v]);
  rule.found.nodes.resize(reading.nodes.size());
  rule.found.swaps.resize(reading.swaps.size());
  rule.found.values.resize(reading.values.size());
  rule.simple =
      rule.memo && !rule.lists && !rule.ast().frontier && !trace_ && compiled.anchor.valid();
  rule.compares = rule.ambiguous && !compiled.first_way;
  rule.settled = rule.simple && rule.lasting && !rule.permutable && !walk_;
  if (rule.simple) {
    Ends& ends = reading.ends = rule.ends;
    const auto move = [](std::uint16_t& place, const std::vector<std::uint16_t>& to) {
      place = to[place];
    };
    for (std::uint16_t& place : ends.own) move(place, reading.nodes);
    for (std::uint16_t& place : ends.outputs) move(place, reading.values);
    for (std::uint16_t& place : ends.reads) move(place, reading.values);
    for (auto& [place, uses] : ends.consumed) move(place, reading.values);
  }
  rule.reading = std::move(reading);
  rule.reading.places = {rule.reading.values, rule.reading.nodes};
}

[[gnu::flatten]] void RuleEngine::read_candidate(const Prepared& rule, Candidate& out) const {
  const Reading& reading = rule.reading;
  const NodeId* const nodes = registers_->nodes.data();
  const ValueId* const values = registers_->values.data();
  const std::uint8_t* const swaps = registers_->swaps.data();
  for (std::size_t i = 0; i < reading.nodes.size(); ++i) {
    out.nodes[i] = nodes[reading.nodes[i]];
    out.swaps[i] = swaps[reading.swaps[i]];
  }
  for (std::size_t i = 0; i < reading.values.size(); ++i) out.values[i] = values[reading.values[i]];
  for (const auto& [value, node] : reading.numbers) out.values[value] = graph_.result(nodes[node]);
}

/// Checks three conditions. Every use of a consumed value is in the pattern; the right side reads
/// nothing that the match makes; and no reader of an output precedes the last producer of a value
/// read. A node that precedes all own nodes is not one of them, and precedes all outputs.
[[gnu::flatten]] RuleEngine::Surely RuleEngine::surely_legal(const Ends& ends, bool always_convex,
                                                             const NodeId* nodes,
                                                             const ValueId* values) const {
  for (const auto& [place, uses] : ends.consumed)
    if (graph_.use_count(values[place]) != uses || graph_.is_output(values[place]))
      return Surely::not_known;
  std::uint64_t first = ~std::uint64_t{0};
  for (const std::uint16_t place : ends.own) first = std::min(first, graph_.label(nodes[place]));
  std::uint64_t last = 0;
  for (const std::uint16_t place : ends.reads) {
    const ValueId value = values[place];
    const NodeId producer = value.valid() ? graph_.producer(value) : NodeId();
    if (!producer.valid() || graph_.label(producer) < first) continue;
    for (const std::uint16_t own : ends.own)
      if (nodes[own] == producer) return Surely::not_known;
    last = std::max(last, graph_.label(producer));
  }
  if (last == 0 && !ends.own.empty()) return Surely::in_place;
  if (always_convex || last == 0) return Surely::legal;
  for (const std::uint16_t place : ends.outputs)
    if (graph_.label(graph_.producer(values[place])) < last) return Surely::not_known;
  return Surely::legal;
}

[[gnu::always_inline]] inline RuleEngine::Gate RuleEngine::pass_gates(Prepared& rule) {
  if (careful_ && run_.barriers) return Gate::unknown;
  const Reading& reading = rule.reading;
  const Guess kind =
      rule.verdicts->guess(reading.places, registers_->values.data(), registers_->nodes.data());
  if (kind == Guess::unknown) return Gate::unknown;
  if (kind == Guess::no) return Gate::no;  // independent of its place
  if ((careful_ || rule.permutable) &&
      surely_legal(reading.ends, rule.always_convex, registers_->nodes.data(),
                   registers_->values.data()) == Surely::not_known)
    return Gate::unknown;
  return careful_ && kind == Guess::yes_perhaps ? Gate::unknown : Gate::yes;
}

/// Returns true if the match in the registers is an entry already: a nearby rewrite caused its
/// anchor to be matched again.
[[gnu::flatten]] bool RuleEngine::waits(std::uint32_t index, NodeId anchor) const {
  if (latest_.size() <= anchor.index) return false;
  const Reading& reading = rules_[index].reading;
  const auto equal = [&](const std::uint32_t* entry) {
    if (entry[kRule] != index) return false;
    std::uint32_t swaps = 0;
    for (std::size_t i = 0; i < reading.nodes.size(); ++i) {
      if (entry[kNodes + i] != registers_->nodes[reading.nodes[i]].index) return false;
      if (i < 32 && registers_->swaps[reading.swaps[i]] != 0) swaps |= 1u << i;
    }
    return entry[kSwaps] == swaps;
  };
  for (std::uint32_t at = latest_[anchor.index]; at != kNoEntry; at = pool_[at + kEarlier])
    if (equal(pool_.data() + at)) return true;
  return false;
}

/// Accepts a structural match. Returns true if the same nodes with exchanged operands need not be
/// tried.
bool RuleEngine::accept(std::uint32_t index, NodeId anchor) {
  Prepared& rule = rules_[index];
  if (rule.swept ? seeding_ : sweeping_) return false;
  if (!rule.simple || (rule.compares && has_choice_of(index)))
    return accept_with_care(index, anchor);
  const bool known = rule.settled && !seeding_ && waits(index, anchor);
  const Gate gate = known ? Gate::yes : pass_gates(rule);
  if (gate == Gate::unknown) return accept_with_care(index, anchor);
  ++rule.stats->hits;
  if (gate == Gate::no) return reject(rule, rule.verdicts->number(rule.verdicts->last()));
  if (rule.compares) {
    Choice& choice = add_choice(choice_count_, index);
    choice.legal = true;
    choice.waits = known;
    read_candidate(rule, choice.best);
    return true;
  }
  if (counting_) {
    ++counted_;
  } else if (sweeping_ && rule.settled && !known && offers_ == 0) {
    read_candidate(rule, rule.taken);  // as push() and offer() leave it
    note_offer(index, rule.verdicts->last());
  } else if (!known) {
    read_candidate(rule, rule.found);
    push(index, anchor, rule.found, rule.verdicts->last());
  }
  return rule.ambiguous;
}

}  // namespace pw
