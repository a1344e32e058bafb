// Nodes that differ only in operands and names share a kind. Kinds are written as graph.json, so
// that reading them checks ops, attributes and types; each node is a few numbers. If an attribute
// names the layer, every layer would need its own kind: those are variants of one.
#include "graph/text/graph_binary.hpp"

#include <array>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/text/binary_layout.hpp"

namespace pw {
namespace {

using binary::Counts;
using Numbers = std::vector<std::uint32_t>;

class BinaryWriter {
 public:
  explicit BinaryWriter(const Graph& graph)
      : graph_(graph), kinds_(graph.context_ptr(), graph.name) {
    kinds_.facts = graph.facts;
  }

  std::string write() {
    number_.assign(graph_.value_bound(), binary::kNone);
    for (ValueId v : graph_.inputs()) input(v);
    // Appended to the inputs that are kinds: those that the kinds of nodes read.
    counts_[Counts::input_kinds] = static_cast<std::uint32_t>(kinds_.inputs().size());
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) node(n);
    for (ValueId v : graph_.outputs()) column(Counts::outputs).push_back(number_[v.index]);
    const auto& written = graph_.written_inputs();
    Numbers& outputs = column(Counts::outputs);
    for (std::size_t i = 0; i < written.size(); ++i)
      append(Counts::writes, {number_[written[i].index], outputs[graph_.returned_count() + i]});
    outputs.resize(graph_.returned_count());
    return put_together();
  }

 private:
  Numbers& column(std::size_t i) { return columns_[i]; }
  void append(std::size_t i, std::initializer_list<std::uint32_t> numbers) {
    column(i).insert(column(i).end(), numbers);
  }

  void input(ValueId v) {
    const Numbers key = [&] {
      Numbers out{graph_.type(v).index, static_cast<std::uint32_t>(graph_.input_kind(v))};
      for (const std::string& over : graph_.replicated_over(v)) out.push_back(text(over));
      return out;
    }();
    const auto [kind, fresh] = input_kinds_.try_emplace(key, input_kinds_.size());
    if (fresh) {
      const ValueId shown = kinds_.add_input("v", graph_.type(v), graph_.input_kind(v));
      for (const std::string& over : graph_.replicated_over(v))
        kinds_.declare_replicated(shown, over);
    }
    append(Counts::inputs, {static_cast<std::uint32_t>(kind->second), name(graph_.value_name(v))});
    number_[v.index] = values_++;
  }

  void node(NodeId n) {
    const Varied& varied = varied_of(graph_.attributes(n));
    Numbers key{graph_.op(n).index, varied.base.index,
                static_cast<std::uint32_t>(graph_.operand_count(n))};
    std::vector<TypeId> reads, gives;
    for (std::size_t i = 0; i < graph_.operand_count(n); ++i) {
      const ValueId v = graph_.operand(n, i);
      reads.push_back(v.valid() ? graph_.type(v) : TypeId());
      column(Counts::operands).push_back(v.valid() ? number_[v.index] : binary::kNone);
    }
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      gives.push_back(graph_.type(graph_.result(n, i)));
    for (TypeId type : reads) key.push_back(type.index);
    for (TypeId type : gives) key.push_back(type.index);
    const auto [kind, fresh] = node_kinds_.try_emplace(std::move(key), node_kinds_.size());
    if (fresh) show(n, varied.base, reads, gives);
    append(Counts::nodes, {variant(static_cast<std::uint32_t>(kind->second), varied), place(n)});
    const std::string_view own = graph_.node_name(n);
    if (gives.empty() || own != graph_.value_name(graph_.result(n)))
      append(Counts::own_names, {nodes_, text(own)});
    for (std::size_t i = 0; i < gives.size(); ++i) {
      const ValueId v = graph_.result(n, i);
      column(Counts::results).push_back(name(graph_.value_name(v)));
      number_[v.index] = values_++;
    }
    ++nodes_;
  }

  /// Attribute list that equals a base except for one phrase.
  struct Varied {
    AttributesId base;
    std::uint32_t attribute = binary::kNone, words = 0;  // a text; none: they are the base
  };
  /// Finds the base by the first attribute of words that contain a number. The base is the first
  /// list encountered of those that differ only in this number.
  const Varied& varied_of(AttributesId id) {
    const auto [it, fresh] = varied_.try_emplace(id, Varied{id});
    if (!fresh) return it->second;
    const Context& context = graph_.context();
    std::string rest;
    const std::string* words = nullptr;
    for (const auto& [key, value] : context.attributes[id]) {
      const auto* text_of = std::get_if<std::string>(&value);
      rest += fmt::format("{} = ", context.strings.text(key));
      if (words == nullptr && text_of != nullptr && name_parts(*text_of).numbered()) {
        words = text_of;
        it->second.attribute = text(context.strings.text(key));
        const NameParts parts = name_parts(*words);
        rest += quote(parts.before) + " " + quote(parts.after);
      } else {
        rest += context.attributes.print(value);
      }
      rest += '\n';
    }
    if (words == nullptr) return it->second;
    it->second.base = bases_.try_emplace(rest, id).first->second;
    if (it->second.base == id)
      it->second.attribute = binary::kNone;
    else
      it->second.words = phrase(*words);
    return it->second;
  }
  std::uint32_t variant(std::uint32_t kind, const Varied& varied) {
    if (varied.attribute == binary::kNone) return kind;
    const std::array row{kind, varied.attribute, varied.words};
    const auto [found, fresh] = variants_.try_emplace(row, variants_.size());
    if (fresh) append(Counts::variants, {row[0], row[1], row[2]});
    return binary::kVariantBit | static_cast<std::uint32_t>(found->second);
  }

  void show(NodeId n, AttributesId attributes, const std::vector<TypeId>& reads,
            const std::vector<TypeId>& gives) {
    std::vector<ValueId> operands;
    for (TypeId type : reads) {
      if (!type.valid()) {
        operands.emplace_back();
        continue;
      }
      const auto [found, fresh] = read_.try_emplace(type);
      if (fresh) found->second = kinds_.add_input("v", type, InputKind::input);
      operands.push_back(found->second);
    }
    kinds_.add_node(graph_.op(n), operands, attributes, gives, NodeId());
  }

  std::uint32_t place(NodeId n) {
    const std::string_view group = graph_.group(n), source = graph_.source(n);
    if (group.empty() && source.empty()) return 0;
    const auto number = [&](std::string_view words) {
      return words.empty() ? binary::kNone : phrase(words);
    };
    const std::uint64_t key = std::uint64_t{number(group)} << 32 | number(source);
    const auto [found, fresh] = places_.try_emplace(key, places_.size() + 1);
    if (fresh) append(Counts::places, {number(group), number(source)});
    return static_cast<std::uint32_t>(found->second);
  }

  std::uint32_t text(std::string_view words) {
    const auto [found, fresh] = texts_.try_emplace(std::string(words), texts_.size());
    if (fresh) {
      characters_ += words;
      column(Counts::texts).push_back(static_cast<std::uint32_t>(characters_.size()));
    }
    return static_cast<std::uint32_t>(found->second);
  }

  std::uint32_t name(std::string_view words) { return words_of(words, binary::kMostPatterns); }
  /// Returns the id of a phrase that is not a name; patterns are reserved for names.
  std::uint32_t phrase(std::string_view words) {
    return words_of(words, binary::kMostPatterns / 2);
  }
  std::uint32_t words_of(std::string_view words, std::size_t most_patterns) {
    const NameParts parts = name_parts(words);
    if (!parts.numbered()) return text(words);
    const std::pair key(text(parts.before), text(parts.after));
    auto found = patterns_.find(key);
    if (found == patterns_.end()) {
      if (patterns_.size() >= most_patterns) return text(words);
      found = patterns_.emplace(key, patterns_.size()).first;
      append(Counts::patterns, {key.first, key.second});
    }
    return binary::kPatternBit |
           static_cast<std::uint32_t>(found->second << NameParts::kNumberBits) | parts.number;
  }

  std::string put_together() {
    const std::string json = graph_to_json(kinds_);
    counts_[Counts::json] = static_cast<std::uint32_t>(json.size());
    counts_[Counts::characters] = static_cast<std::uint32_t>(characters_.size());
    for (std::size_t i = 0; i < Counts::count; ++i)
      if (binary::kWidths[i] > 0)
        counts_[i] = static_cast<std::uint32_t>(columns_[i].size() / binary::kWidths[i]);
    std::string body;
    for (const std::uint32_t count : counts_.of) put(body, count, 4);
    body += json;
    body += characters_;
    for (const Numbers& numbers : columns_)
      for (const std::uint32_t number : numbers) put(body, number, 4);
    std::string out(binary::kMagic);
    put(out, binary::kVersion, 4);
    put(out, checksum(body), 8);
    return out + body;
  }
  static void put(std::string& out, std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
  }

  const Graph& graph_;
  Graph kinds_;
  Counts counts_;
  std::array<Numbers, Counts::count> columns_;
  std::string characters_;
  std::vector<std::uint32_t> number_;  // by value
  std::uint32_t values_ = 0, nodes_ = 0;
  std::map<Numbers, std::size_t> input_kinds_, node_kinds_;
  std::map<TypeId, ValueId> read_;
  std::map<AttributesId, Varied> varied_;
  std::map<std::string, AttributesId> bases_;
  std::map<std::array<std::uint32_t, 3>, std::size_t> variants_;
  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::unordered_map<std::string, std::size_t> texts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> patterns_;
};

}  // namespace

std::string graph_to_binary(const Graph& graph) { return BinaryWriter(graph).write(); }

}  // namespace pw
