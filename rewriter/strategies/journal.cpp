// Events packed as numbers of seven bits a byte, but the ids of a match in as many bytes each as
// the largest of them needs. The erased nodes are usually one bit: they equal the matched
// nodes.
#include "rewriter/strategies/journal.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pw {
namespace {

enum class Tag : std::uint8_t { pass_begin, pass_end, match, builtin };
// Flags next to the tag of a match: what is implied, and the width of its ids.
constexpr std::uint8_t kTag = 0x03;
constexpr std::uint8_t kMirrored = 0x04;  // it erases what it matched, from the last to the first
constexpr std::uint8_t kUsual =
    0x08;                            // it binds the names, of as many nodes, as its rule did first
constexpr std::uint8_t kOne = 0x10;  // it makes one node
constexpr unsigned kWidthShift = 5;  // bytes of an id, less one

constexpr std::size_t kNumber = 10;  // bytes of a number at most
constexpr std::size_t kId = sizeof(std::uint32_t);

/// Encodes an id from 1 on: an invalid one is 0.
std::uint32_t coded(std::uint32_t index) { return index + 1; }

/// Encodes a step so that small ones in either direction give small numbers.
std::uint32_t zigzag(std::uint32_t step) { return (step << 1) ^ (0u - (step >> 31)); }
std::uint32_t from_zigzag(std::uint32_t coded) { return (coded >> 1) ^ (0u - (coded & 1u)); }

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

  /// Reads ids of the given width.
  template <class Id>
  Id id(std::size_t width) {
    std::uint32_t coded = 0;
    for (std::size_t i = 0; i < width; ++i) coded |= std::uint32_t{bytes_[at_++]} << (8 * i);
    Id out;
    out.index = coded - 1;
    return out;
  }
  std::vector<NodeId> nodes(std::size_t count, std::size_t width) {
    std::vector<NodeId> out(count);
    for (NodeId& node : out) node = id<NodeId>(width);
    return out;
  }

 private:
  const TrivialArray<std::uint8_t>& bytes_;
  std::size_t& at_;
};

/// Writer of one event after the existing bytes.
class Writer {
 public:
  /// Creates a writer. `most`: upper bound on the bytes after the tag.
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
  /// Writes nodes without their number.
  void nodes(std::span<const NodeId> nodes) {
    std::uint32_t last = 0;
    for (const NodeId& node : nodes) {
      number(&node == nodes.data() ? node.index : zigzag(node.index - last));
      last = node.index;
    }
  }
  /// Writes ids in the width of the tag; returns false, and writes nothing, if they do not fit.
  template <class... Lists>
  bool ids(std::size_t width, const Lists&... lists) {
    static_assert(std::endian::native == std::endian::little);
    std::uint8_t* at = at_;
    std::uint32_t all = 0;  // the bits of all of them
    const auto write = [&](const auto& list) {
      for (const auto id : list) {
        const std::uint32_t code = coded(id.index);
        std::memcpy(at, &code, kId);  // what is too much, the next one overwrites
        at += width;
        all |= code;
      }
    };
    (write(lists), ...);
    if (width < kId && all >> (8 * width) != 0) return false;
    *begin_ |= static_cast<std::uint8_t>((width - 1) << kWidthShift);
    at_ = at;
    return true;
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
  if (usual_.size() <= rule.index) usual_.resize(rule.index + 1);
  Usual& usual = usual_[rule.index];
  if (!usual.names.valid()) usual = {names, matched.size()};
  const bool is_usual = usual.names == names && usual.matched == matched.size();
  const bool mirrored = std::equal(erased.begin(), erased.end(), matched.rbegin(), matched.rend());
  if (mirrored) erased = {};
  const std::size_t ids = matched.size() + values.size() + created.size() + erased.size();
  const auto flags = static_cast<std::uint8_t>(
      (is_usual ? kUsual : 0) | (mirrored ? kMirrored : 0) | (created.size() == 1 ? kOne : 0));
  Writer out(bytes_, Tag::match, 5 * kNumber + (ids + 1) * kId, flags);
  out.number(rule.index);
  if (!is_usual) {
    out.number(names.index);
    out.number(matched.size());
  }
  if (created.size() != 1) out.number(created.size());
  if (!mirrored) out.number(erased.size());
  // Uses the width of the previous match, unless an id does not fit.
  while (!out.ids(width_, matched, values, created, erased)) ++width_;
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
  const std::size_t created = (first & kOne) != 0 ? 1 : read.size();
  const bool mirrored = (first & kMirrored) != 0;
  const std::size_t erased = mirrored ? 0 : read.size();
  const std::size_t width = (first >> kWidthShift) + 1;
  out.matched = read.nodes(form.matched, width);
  for (const std::string& name : names_[form.names.index])
    out.bindings.emplace_back(name, read.id<ValueId>(width));
  out.created = read.nodes(created, width);
  out.erased = read.nodes(erased, width);
  if (mirrored) out.erased.assign(out.matched.rbegin(), out.matched.rend());
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
