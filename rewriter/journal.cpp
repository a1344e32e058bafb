// Exports Journal: events packed as numbers of seven bits a byte, node ids as differences.
#include "rewriter/journal.hpp"

#include <algorithm>
#include <bit>

namespace pw {
namespace {

enum class Tag : std::uint8_t { pass_begin, pass_end, match, builtin };

class Reader {
 public:
  Reader(const std::vector<std::uint8_t>& bytes, std::size_t& at) : bytes_(bytes), at_(at) {}

  Tag tag() { return static_cast<Tag>(bytes_[at_++]); }

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
    std::string out(bytes_.begin() + static_cast<std::ptrdiff_t>(at_),
                    bytes_.begin() + static_cast<std::ptrdiff_t>(at_ + size));
    at_ += size;
    return out;
  }

  std::vector<NodeId> nodes() {
    std::vector<NodeId> out(static_cast<std::size_t>(number()));
    std::uint32_t last = 0;
    for (NodeId& node : out) {
      const auto coded = static_cast<std::uint32_t>(number());
      last += (coded >> 1) ^ (0u - (coded & 1u));
      node.index = last;
    }
    return out;
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t& at_;
};

}  // namespace

Journal::NamesId Journal::register_names(std::vector<std::string> names) {
  const auto known = std::find(names_.begin(), names_.end(), names);
  if (known != names_.end()) return NamesId(static_cast<std::size_t>(known - names_.begin()));
  names_.push_back(std::move(names));
  return NamesId(names_.size() - 1);
}

void Journal::put(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<std::uint8_t>(number | 0x80u));
  bytes_.push_back(static_cast<std::uint8_t>(number));
}

void Journal::put(std::string_view text) {
  put(text.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

void Journal::put(std::span<const NodeId> nodes) {
  put(nodes.size());
  std::uint32_t last = 0;
  for (NodeId node : nodes) {
    const std::uint32_t step = node.index - last;
    put(std::uint64_t{(step << 1) ^ (0u - (step >> 31))});
    last = node.index;
  }
}

void Journal::add(const PassBegin& event) {
  bytes_.push_back(static_cast<std::uint8_t>(Tag::pass_begin));
  put(event.pass);
  put(event.hash);
  put(event.nodes);
}

void Journal::add(const PassEnd& event) {
  bytes_.push_back(static_cast<std::uint8_t>(Tag::pass_end));
  put(event.pass);
  put(event.hash);
  put(event.nodes);
  put(std::bit_cast<std::uint64_t>(event.seconds));
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
  bytes_.push_back(static_cast<std::uint8_t>(Tag::builtin));
  put(event.pass);
  put(event.erased);
}

void Journal::add_match(RuleId rule, NamesId names, std::span<const NodeId> matched,
                        std::span<const ValueId> values, std::span<const NodeId> created,
                        std::span<const NodeId> erased) {
  bytes_.push_back(static_cast<std::uint8_t>(Tag::match));
  put(rule.index);
  put(names.index);
  put(matched);
  for (ValueId value : values) put(std::uint64_t{value.index});
  put(created);
  put(erased);
}

JournalEvent Journal::unpack(std::size_t& at) const {
  Reader read(bytes_, at);
  switch (read.tag()) {
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
      out.erased = read.nodes();
      return out;
    }
    case Tag::match: break;
  }
  MatchEvent out;
  out.rule = RuleId(static_cast<std::size_t>(read.number()));
  const std::vector<std::string>& names = names_[static_cast<std::size_t>(read.number())];
  out.matched = read.nodes();
  for (const std::string& name : names) {
    ValueId value;
    value.index = static_cast<std::uint32_t>(read.number());
    out.bindings.emplace_back(name, value);
  }
  out.created = read.nodes();
  out.erased = read.nodes();
  return out;
}

std::size_t Journal::count(const RuleSet& rules, std::string_view reference) const {
  std::vector<RuleId> meant = rules.resolve(reference);
  std::size_t out = 0;
  for (const JournalEvent& event : *this) {
    if (const auto* match = std::get_if<MatchEvent>(&event))
      out += std::find(meant.begin(), meant.end(), match->rule) != meant.end() ? 1 : 0;
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

}  // namespace pw
