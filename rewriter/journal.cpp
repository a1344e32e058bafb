// Exports Journal: events packed as numbers of seven bits a byte, ids as differences from the one
// before, and what a match erases as places among the nodes it matched.
#include "rewriter/journal.hpp"

#include <algorithm>
#include <bit>

namespace pw {
namespace {

enum class Tag : std::uint8_t { pass_begin, pass_end, match, builtin };
// Beside the tag of a match: what need not be said.
constexpr std::uint8_t kTag = 0x0f;
constexpr std::uint8_t kMirrored = 0x10;  // it erases what it matched, from the last to the first
constexpr std::uint8_t kUsual =
    0x20;                            // it binds the names, of as many nodes, as its rule did first
constexpr std::uint8_t kOne = 0x40;  // it makes one node

/// Small for a small step in either direction.
std::uint32_t zigzag(std::uint32_t step) { return (step << 1) ^ (0u - (step >> 31)); }
std::uint32_t from_zigzag(std::uint32_t coded) { return (coded >> 1) ^ (0u - (coded & 1u)); }

/// Delta coding of value ids, which come from two regions, the graph's inputs and the rest: each is
/// the difference to the nearer of the last ones of both.
class Regions {
 public:
  std::uint64_t code(ValueId value) {
    const std::uint32_t here = zigzag(value.index - here_), there = zigzag(value.index - there_);
    const bool other = there < here;
    if (other) std::swap(here_, there_);
    if (value.valid()) here_ = value.index;
    return (std::uint64_t{other ? there : here} << 1) | (other ? 1 : 0);
  }
  ValueId value(std::uint64_t code) {
    if ((code & 1) != 0) std::swap(here_, there_);
    ValueId out;
    out.index = here_ + from_zigzag(static_cast<std::uint32_t>(code >> 1));
    if (out.valid()) here_ = out.index;
    return out;
  }

 private:
  std::uint32_t here_ = 0, there_ = 0;
};

class Reader {
 public:
  Reader(const TrivialArray<std::uint8_t>& bytes, std::size_t& at) : bytes_(bytes), at_(at) {}

  std::uint8_t byte() { return bytes_[at_++]; }

  std::uint64_t number() {
    std::uint64_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = bytes_[at_++];
      out |= static_cast<std::uint64_t>(byte & 0x7fu) << shift;
      if (byte < 0x80) return out;
    }
  }

  std::string text() {
    const auto size = static_cast<std::size_t>(number());
    std::string out(bytes_.data() + at_, bytes_.data() + at_ + size);
    at_ += size;
    return out;
  }

  std::uint32_t small() { return static_cast<std::uint32_t>(number()); }

  std::size_t size() { return static_cast<std::size_t>(number()); }

  std::vector<NodeId> nodes(std::size_t count) {
    std::vector<NodeId> out(count);
    std::uint32_t last = 0;
    for (NodeId& node : out) {
      last = &node == out.data() ? small() : last + from_zigzag(small());
      node.index = last;
    }
    return out;
  }

  std::vector<NodeId> nodes(const std::vector<NodeId>& known) {
    std::vector<NodeId> out(static_cast<std::size_t>(number()));
    for (NodeId& node : out) {
      const auto place = static_cast<std::size_t>(number());
      node.index = place > 0 ? known[place - 1].index : small();
    }
    return out;
  }

 private:
  const TrivialArray<std::uint8_t>& bytes_;
  std::size_t& at_;
};

constexpr std::size_t kNumber = 10;  // bytes at most

/// Writes one event behind the bytes that are there.
class Writer {
 public:
  /// `most`: bytes behind the tag.
  Writer(TrivialArray<std::uint8_t>& bytes, Tag tag, std::size_t most, std::uint8_t flags = 0)
      : bytes_(bytes), begin_(bytes.room_for(1 + most)), at_(begin_) {
    *at_++ = static_cast<std::uint8_t>(static_cast<std::uint8_t>(tag) | flags);
  }
  ~Writer() { bytes_.add(static_cast<std::size_t>(at_ - begin_)); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void number(std::uint64_t number) {
    std::uint8_t* at = at_;  // bytes may be anything's, also the pointer's own
    for (; number >= 0x80; number >>= 7) *at++ = static_cast<std::uint8_t>(number | 0x80u);
    *at++ = static_cast<std::uint8_t>(number);
    at_ = at;
  }
  void text(std::string_view text) {
    number(text.size());
    at_ = std::copy(text.begin(), text.end(), at_);
  }
  /// Without their number.
  void nodes(std::span<const NodeId> nodes) {
    std::uint32_t last = 0;
    for (const NodeId& node : nodes) {
      number(&node == nodes.data() ? node.index : zigzag(node.index - last));
      last = node.index;
    }
  }
  /// Those among the known ones by their place, from 1 on; the others behind a 0.
  void nodes(std::span<const NodeId> nodes, std::span<const NodeId> known) {
    number(nodes.size());
    for (NodeId node : nodes) {
      const auto place = std::find(known.begin(), known.end(), node);
      number(place == known.end() ? 0 : static_cast<std::uint64_t>(place - known.begin()) + 1);
      if (place == known.end()) number(node.index);
    }
  }

 private:
  TrivialArray<std::uint8_t>& bytes_;
  std::uint8_t *begin_, *at_;
};

}  // namespace

Journal::NamesId Journal::register_names(std::vector<std::string> names) {
  const auto known = std::find(names_.begin(), names_.end(), names);
  if (known != names_.end()) return NamesId(static_cast<std::size_t>(known - names_.begin()));
  names_.push_back(std::move(names));
  return NamesId(names_.size() - 1);
}

void Journal::add(const PassBegin& event) {
  Writer out(bytes_, Tag::pass_begin, event.pass.size() + 3 * kNumber);
  out.text(event.pass);
  out.number(event.hash);
  out.number(event.nodes);
}

void Journal::add(const PassEnd& event) {
  Writer out(bytes_, Tag::pass_end, event.pass.size() + 4 * kNumber);
  out.text(event.pass);
  out.number(event.hash);
  out.number(event.nodes);
  out.number(std::bit_cast<std::uint64_t>(event.seconds));
}

void Journal::add(const MatchEvent& event) {
  std::vector<std::string> names;
  std::vector<ValueId> values;
  for (const auto& [name, value] : event.bindings) {
    names.push_back(name);
    values.push_back(value);
  }
  add_match(event.rule, register_names(std::move(names)), event.matched, values, event.created,
            event.erased);
}

void Journal::add(const BuiltinEvent& event) {
  Writer out(bytes_, Tag::builtin, event.pass.size() + (event.erased.size() + 2) * kNumber);
  out.text(event.pass);
  out.number(event.erased.size());
  out.nodes(event.erased);
}

void Journal::add_match(RuleId rule, NamesId names, std::span<const NodeId> matched,
                        std::span<const ValueId> values, std::span<const NodeId> created,
                        std::span<const NodeId> erased) {
  const std::size_t numbers =
      5 + matched.size() + values.size() + created.size() + 2 * erased.size();
  if (usual_.size() <= rule.index) usual_.resize(rule.index + 1);
  Usual& usual = usual_[rule.index];
  if (!usual.names.valid()) usual = {names, matched.size()};
  std::uint8_t flags = usual.names == names && usual.matched == matched.size() ? kUsual : 0;
  if (created.size() == 1) flags |= kOne;
  if (std::equal(erased.begin(), erased.end(), matched.rbegin(), matched.rend()))
    flags |= kMirrored;
  Writer out(bytes_, Tag::match, numbers * kNumber, flags);
  out.number(rule.index);
  if ((flags & kUsual) == 0) {
    out.number(names.index);
    out.number(matched.size());
  }
  out.nodes(matched);
  Regions regions;
  for (ValueId value : values) out.number(regions.code(value));
  if ((flags & kOne) == 0) out.number(created.size());
  out.nodes(created);
  if ((flags & kMirrored) == 0) out.nodes(erased, matched);
}

JournalEvent Journal::unpack(std::size_t& at) const {
  Reader read(bytes_, at);
  const std::uint8_t first = read.byte();
  switch (static_cast<Tag>(first & kTag)) {
    case Tag::pass_begin: {
      PassBegin out;
      out.pass = read.text();
      out.hash = read.number();
      out.nodes = static_cast<std::size_t>(read.number());
      return out;
    }
    case Tag::pass_end: {
      PassEnd out;
      out.pass = read.text();
      out.hash = read.number();
      out.nodes = static_cast<std::size_t>(read.number());
      out.seconds = std::bit_cast<double>(read.number());
      return out;
    }
    case Tag::builtin: {
      BuiltinEvent out;
      out.pass = read.text();
      out.erased = read.nodes(read.size());
      return out;
    }
    case Tag::match: break;
  }
  MatchEvent out;
  out.rule = RuleId(static_cast<std::size_t>(read.number()));
  Usual form;
  if ((first & kUsual) != 0) {
    form = usual_[out.rule.index];
  } else {
    form.names = NamesId(read.size());
    form.matched = read.size();
  }
  const std::vector<std::string>& names = names_[form.names.index];
  out.matched = read.nodes(form.matched);
  Regions regions;
  for (const std::string& name : names)
    out.bindings.emplace_back(name, regions.value(read.number()));
  out.created = read.nodes((first & kOne) != 0 ? 1 : read.size());
  if ((first & kMirrored) != 0)
    out.erased.assign(out.matched.rbegin(), out.matched.rend());
  else
    out.erased = read.nodes(out.matched);
  return out;
}

std::vector<RuleId> Journal::fired(const RuleSet& set) const {
  const RunRules rules = rules_of(set);
  std::vector<RuleId> out;
  for (const JournalEvent& event : *this)
    if (const auto* match = std::get_if<MatchEvent>(&event))
      out.push_back(rules.loaded(match->rule));
  return out;
}

std::size_t Journal::count(const RuleSet& set, std::string_view reference) const {
  const RunRules rules = rules_of(set);
  const std::vector<RuleId> meant = set.resolve(reference);
  const auto is_meant = [&](RuleId id) {
    return std::find(meant.begin(), meant.end(), rules.loaded(id)) != meant.end();
  };
  std::size_t out = 0;
  for (const JournalEvent& event : *this) {
    if (const auto* match = std::get_if<MatchEvent>(&event)) out += is_meant(match->rule) ? 1 : 0;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event);
        builtin && meant.empty() && builtin->pass == reference)
      out += builtin->erased.size();
  }
  return out;
}

std::size_t Journal::total() const {
  std::size_t out = 0;
  for (const JournalEvent& event : *this) {
    if (std::holds_alternative<MatchEvent>(event)) ++out;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event)) out += builtin->erased.size();
  }
  return out;
}

std::vector<RuleId> Journal::rules_since(Mark mark) const {
  std::vector<RuleId> rules;
  for (Iterator at{this, mark}; !(at == end()); ++at) {
    const JournalEvent event = *at;
    if (const auto* match = std::get_if<MatchEvent>(&event)) rules.push_back(match->rule);
  }
  return rules;
}

Journal without_times(const Journal& journal) {
  Journal out;
  for (JournalEvent event : journal) {
    if (auto* end = std::get_if<PassEnd>(&event)) end->seconds = -1;
    std::visit([&](const auto& e) { out.add(e); }, event);
  }
  out.keep(journal.opened_);
  out.settle();
  return out;
}

}  // namespace pw
