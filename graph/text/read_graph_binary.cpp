// All counts are checked against the size of the file before anything is allocated, and all numbers
// against the counts.
#include <fmt/format.h>

#include "base/try.hpp"
#include "base/utf8.hpp"
#include "graph/foreign.hpp"
#include "graph/infer/infer.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/binary_layout.hpp"
#include "graph/text/graph_binary.hpp"

namespace pw {
namespace {

using binary::Counts;
using binary::kNone;

/// Set of numbers that were seen.
class Seen {
 public:
  /// Adds a number; returns false if it was seen before.
  bool add(std::uint32_t number) {
    const std::size_t word = number / 64;
    if (bits_.size() <= word) bits_.resize(std::max(word + 1, bits_.size() * 2));
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    const bool fresh = (bits_[word] & bit) == 0;
    bits_[word] |= bit;
    return fresh;
  }

 private:
  std::vector<std::uint64_t> bits_;
};

bool mentions(const std::vector<Expr>& exprs, std::string_view word) {
  return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& e) {
    return e.text.find(word) != std::string::npos || mentions(e.args, word);
  });
}

/// Returns true if the types of results may depend on the attribute: they come from the body, or
/// the signature names it.
bool may_type_by(const Op& op, std::string_view attribute) {
  if (op.imported) return false;  // they are stated
  const auto type_mentions = [&](const auto& decl) {
    return decl.type &&
           (mentions(decl.type->dtype, attribute) || mentions(decl.type->dims, attribute));
  };
  return op.has_body() || std::any_of(op.operands.begin(), op.operands.end(), type_mentions) ||
         std::any_of(op.results.begin(), op.results.end(), type_mentions);
}

class BinaryReader {
 public:
  BinaryReader(const ContextPtr& context, std::string_view bytes, const std::string& file,
               const OpParser& parse_op, const StageProgress& progress)
      : context_(context),
        bytes_(bytes),
        file_(file),
        parse_op_(parse_op),
        progress_(progress),
        graph_(context) {
    graph_.trust_names(true);  // take() guarantees uniqueness
  }

  Result<Graph> read() {
    PW_TRY(header());
    PW_TRY(texts());
    PW_TRY(patterns());
    PW_TRY(kinds());
    PW_TRY(variants());
    PW_TRY(places());
    graph_.expect(counts_[Counts::nodes],
                  std::size_t{counts_[Counts::inputs]} + counts_[Counts::results],
                  counts_[Counts::operands]);
    for (std::uint32_t i = 0; i < counts_[Counts::inputs]; ++i) PW_TRY(input(i));
    for (std::uint32_t i = 0; i < counts_[Counts::nodes]; ++i) {
      if (i % 65536 == 0) tell(progress_, "building", i, counts_[Counts::nodes], "nodes");
      PW_TRY(node(i));
    }
    if (operand_ != counts_[Counts::operands] || result_ != counts_[Counts::results])
      return wrong("its nodes have fewer operands or results than the file");
    PW_TRY(own_names());
    PW_TRY(outputs());
    return finish();
  }

 private:
  /// Returns the i-th entry of a column, or its part `k`.
  [[nodiscard]] std::uint32_t at(std::size_t column, std::size_t i, std::size_t k = 0) const {
    return number_at(bytes_, begin_[column] + 4 * (i * binary::kWidths[column] + k));
  }
  [[nodiscard]] tl::unexpected<Diagnostics> damaged(std::string why) const {
    return fail(error_in(file_, "PW1040", std::move(why), "copy or write it again"));
  }
  [[nodiscard]] tl::unexpected<Diagnostics> wrong(std::string why) const {
    return fail(
        error_in(file_, "PW1041", std::move(why), "this is a bug in the program that wrote it"));
  }

  Status header() {
    if (bytes_.size() < binary::kHeader) return damaged("the file ends in its header");
    const std::uint32_t version = number_at(bytes_, binary::kMagic.size());
    if (version != binary::kVersion)
      return fail(error_in(file_, "PW1040", fmt::format("its version is {}", version),
                           fmt::format("this program reads version {}", binary::kVersion)));
    std::size_t end = binary::kHeader;
    for (std::size_t i = 0; i < Counts::count; ++i) {
      counts_[i] = number_at(bytes_, binary::kBody + 4 * i);
      begin_[i] = end;
      if (i == Counts::json || i == Counts::characters) end += counts_[i];
      end += std::size_t{4} * binary::kWidths[i] * counts_[i];
    }
    if (end != bytes_.size())
      return damaged(fmt::format("it has {} bytes, but its header states {}", bytes_.size(), end));
    const std::size_t place = binary::kMagic.size() + 4;
    const std::uint64_t stated =
        number_at(bytes_, place) | std::uint64_t{number_at(bytes_, place + 4)} << 32;
    if (checksum(bytes_.substr(binary::kBody)) != stated)
      return damaged("its checksum does not match: bytes were changed");
    return {};
  }

  Status texts() {
    const std::string_view characters =
        bytes_.substr(begin_[Counts::characters], counts_[Counts::characters]);
    std::size_t begin = 0;
    HashIndex index;
    for (std::uint32_t i = 0; i < counts_[Counts::texts]; ++i) {
      const std::size_t end = at(Counts::texts, i);
      if (end < begin || end > characters.size()) return wrong("a text ends before it begins");
      texts_.push_back(characters.substr(begin, end - begin));
      if (!is_utf8(texts_.back())) return wrong("a text is not UTF-8");
      const std::uint64_t hash = hash_text(texts_.back());
      if (index.find(hash, [&](std::uint32_t k) { return texts_[k] == texts_.back(); }) !=
          HashIndex::kNone)
        return wrong("a text is duplicated");
      index.insert(hash, i);
      begin = end;
    }
    return {};
  }
  Result<std::string_view> text(std::uint32_t i) const {
    if (i >= texts_.size()) return wrong("a text is missing");
    return texts_[i];
  }

  /// Words given by a text, or by a pattern and its number.
  struct Words {
    std::string_view before, after;
    std::uint32_t pattern = kNone, number = 0;
    [[nodiscard]] std::string put_together() const {
      return pattern == kNone ? std::string(before) : fmt::format("{}{}{}", before, number, after);
    }
  };
  Result<Words> words(std::uint32_t id) const {
    if ((id & binary::kPatternBit) == 0) return Words{PW_TRY(text(id)), {}};
    const std::uint32_t pattern = (id & ~binary::kPatternBit) >> NameParts::kNumberBits;
    if (pattern >= patterns_.size()) return wrong("a pattern of names is missing");
    const Pattern& p = patterns_[pattern];
    return Words{p.before, p.after, pattern, id & (NameParts::kNumbers - 1)};
  }
  Status patterns() {
    named_.resize(counts_[Counts::patterns]);
    for (std::uint32_t i = 0; i < counts_[Counts::patterns]; ++i) {
      const std::string_view before = PW_TRY(text(at(Counts::patterns, i, 0)));
      const std::string_view after = PW_TRY(text(at(Counts::patterns, i, 1)));
      if (!is_name_pattern(before, after)) return wrong("a pattern of names is not in normal form");
      if (!known_patterns_.insert({std::string(before), std::string(after)}).second)
        return wrong("a pattern of names is duplicated");
      patterns_.push_back({before, after, {}, {}});
    }
    return {};
  }

  struct Kind {
    OpId op;
    AttributesId attributes;
    std::vector<TypeId> reads, gives;
  };
  Status kinds() {
    const std::string_view json = bytes_.substr(begin_[Counts::json], counts_[Counts::json]);
    const Graph kinds =
        PW_TRY(graph_from_json(context_, json, file_ + " (kinds)", parse_op_, {}, false));
    if (kinds.inputs().size() < counts_[Counts::input_kinds]) return wrong("a kind is missing");
    graph_.name = kinds.name;
    graph_.facts = kinds.facts;
    for (std::uint32_t i = 0; i < counts_[Counts::input_kinds]; ++i) {
      const ValueId v = kinds.inputs()[i];
      input_kinds_.push_back({kinds.type(v), kinds.input_kind(v), kinds.replicated_over(v)});
    }
    for (NodeId n = kinds.first(); n.valid(); n = kinds.next(n)) {
      Kind kind{kinds.op(n), kinds.attributes(n), {}, {}};
      for (ValueId v : kinds.operands(n))
        kind.reads.push_back(v.valid() ? kinds.type(v) : TypeId());
      for (std::size_t i = 0; i < kinds.result_count(n); ++i)
        kind.gives.push_back(kinds.type(kinds.result(n, i)));
      imported_ = imported_ || kinds.op_of(n).imported;
      kinds_.push_back(std::move(kind));
    }
    return {};
  }

  /// Reads the variants, and checks each like its kind if a type may depend on the words.
  Status variants() {
    for (std::uint32_t i = 0; i < counts_[Counts::variants]; ++i) {
      const std::uint32_t number = at(Counts::variants, i, 0);
      if (number >= kinds_.size()) return wrong("a kind is missing");
      const Kind& kind = kinds_[number];
      const std::string_view attribute = PW_TRY(text(at(Counts::variants, i, 1)));
      const NameId key = context_->strings.find(attribute);
      AttributeList list = context_->attributes[kind.attributes];
      const auto varied = std::find_if(list.begin(), list.end(),
                                       [&](const auto& other) { return other.first == key; });
      if (varied == list.end() || !std::holds_alternative<std::string>(varied->second))
        return wrong("a variant of a kind has other attributes");
      varied->second = PW_TRY(words(at(Counts::variants, i, 2))).put_together();
      const AttributesId attributes = context_->attributes.intern(std::move(list));
      if (may_type_by(context_->ops[kind.op], attribute) &&
          PW_TRY(types_of(kind, attributes)) != PW_TRY(types_of(kind, kind.attributes)))
        return wrong("a variant of a kind has other types");
      variants_.push_back({number, attributes});
    }
    return {};
  }
  [[nodiscard]] Result<std::vector<TypeId>> types_of(const Kind& kind,
                                                     AttributesId attributes) const {
    return infer_types(*context_, graph_.facts, kind.op, kind.reads, attributes,
                       static_cast<int>(kind.gives.size()));
  }

  /// Implements take() for most names: those of a known pattern.
  std::optional<ValueNameId> take_numbered(std::uint32_t name) {
    const std::uint32_t pattern = (name & ~binary::kPatternBit) >> NameParts::kNumberBits;
    if ((name & binary::kPatternBit) == 0 || pattern >= patterns_.size()) return std::nullopt;
    const auto& first = patterns_[pattern].first_name;
    const std::uint32_t number = name & (NameParts::kNumbers - 1);
    if (!first || !*first || !named_[pattern].add(number)) return std::nullopt;
    return ValueNameId((*first)->index + number);
  }
  /// Returns the id of a name that is not in use yet.
  Result<ValueNameId> take(std::uint32_t name) {
    if (const auto known = take_numbered(name)) return *known;
    const Words called = PW_TRY(words(name));
    ValueNames& names = context_->value_names;
    if (called.pattern == kNone) {
      const NameParts parts = name_parts(called.before);
      if (called.before.empty() ||
          (parts.numbered() &&
           known_patterns_.contains({std::string(parts.before), std::string(parts.after)})))
        return wrong("a name is empty, or is a pattern's");
      if (!texts_named_.add(name)) return taken(called);
      return names.add(called.before);
    }
    if (!named_[called.pattern].add(called.number)) return taken(called);
    auto& first = patterns_[called.pattern].first_name;
    if (!first) first = names.add_pattern(called.before, called.after);
    if (*first) return ValueNameId((*first)->index + called.number);
    return names.add(called.put_together());
  }
  [[nodiscard]] tl::unexpected<Diagnostics> taken(const Words& name) const {
    return wrong(fmt::format("two values are called `{}`", name.put_together().substr(0, 80)));
  }

  Status places() {
    const auto place = [&](std::uint32_t id) -> Result<TextId> {
      if (id == kNone) return TextId();
      const Words called = PW_TRY(words(id));
      ValueNames& names = context_->value_names;
      if (called.pattern == kNone)
        return called.before.empty() ? TextId() : names.intern(called.before);
      auto& first = patterns_[called.pattern].first_text;
      if (!first) first = names.intern_pattern(called.before, called.after);
      return *first ? TextId((*first)->index + called.number) : names.intern(called.put_together());
    };
    places_.push_back(graph_.place_of({}, {}));
    for (std::uint32_t i = 0; i < counts_[Counts::places]; ++i) {
      const TextId group = PW_TRY(place(at(Counts::places, i, 0)));
      const TextId source = PW_TRY(place(at(Counts::places, i, 1)));
      places_.push_back(graph_.place_of(group, source));
    }
    return {};
  }

  Status input(std::uint32_t i) {
    const std::uint32_t kind = at(Counts::inputs, i, 0);
    if (kind >= input_kinds_.size()) return wrong("a kind is missing");
    const InputShown& shown = input_kinds_[kind];
    const ValueNameId name = PW_TRY(take(at(Counts::inputs, i, 1)));
    const ValueId v = graph_.add_input(name, shown.type, shown.kind);
    for (const std::string& over : shown.replicated) graph_.declare_replicated(v, over);
    return {};
  }

  Status node(std::uint32_t i) {
    const std::uint32_t number = at(Counts::nodes, i, 0), place = at(Counts::nodes, i, 1);
    const bool varies = (number & binary::kVariantBit) != 0;
    const std::uint32_t variant = number & ~binary::kVariantBit;
    if (variant >= (varies ? variants_.size() : kinds_.size()) || place >= places_.size())
      return wrong("a kind or a place is missing");
    const Kind& kind = kinds_[varies ? variants_[variant].kind : number];
    const AttributesId attributes = varies ? variants_[variant].attributes : kind.attributes;
    if (kind.reads.size() > counts_[Counts::operands] - operand_ ||
        kind.gives.size() > counts_[Counts::results] - result_)
      return wrong("its nodes have more operands or results than the file");
    operands_.clear();
    for (const TypeId type : kind.reads) {
      const std::uint32_t v = at(Counts::operands, operand_++);
      if (v == kNone && !type.valid()) {
        operands_.emplace_back();
        continue;
      }
      if (v >= graph_.value_bound())
        return wrong(fmt::format("node {} reads a value before its definition", i));
      if (graph_.type(ValueId(v)) != type)
        return wrong(fmt::format("node {} reads a value of a different type than its kind", i));
      operands_.emplace_back(v);
    }
    results_.clear();
    for (std::size_t k = 0; k < kind.gives.size(); ++k)
      results_.push_back(PW_TRY(take(at(Counts::results, result_++))));
    graph_.add_node(kind.op, operands_, attributes, kind.gives, results_, places_[place]);
    return {};
  }

  Status own_names() {
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < counts_[Counts::own_names]; ++i) {
      const std::uint32_t node = at(Counts::own_names, i, 0);
      if (node < next || node >= counts_[Counts::nodes]) return wrong("a node has two names");
      graph_.give_name(NodeId(node), PW_TRY(text(at(Counts::own_names, i, 1))));
      next = node + 1;
    }
    return {};
  }

  Status outputs() {
    const auto value = [&](std::uint32_t v) -> Result<ValueId> {
      return v < graph_.value_bound() ? Result<ValueId>(ValueId(v)) : wrong("an output is missing");
    };
    for (std::uint32_t i = 0; i < counts_[Counts::outputs]; ++i)
      graph_.add_output(PW_TRY(value(at(Counts::outputs, i))));
    for (std::uint32_t i = 0; i < counts_[Counts::writes]; ++i) {
      const ValueId input = PW_TRY(value(at(Counts::writes, i, 0)));
      const ValueId written = PW_TRY(value(at(Counts::writes, i, 1)));
      if (!graph_.is_input(input) || graph_.type(input) != graph_.type(written))
        return wrong("a write is not to an input, or of a different type");
      graph_.add_write(input, written);
    }
    return {};
  }

  Result<Graph> finish() {
    if (imported_) {
      graph_.trust_names(false);  // refining makes names up
      PW_TRY(refine_imported(graph_));
    }
    for (const WriteProblem& p : declare_writes(graph_))
      return fail(error_in(file_, kUndeclaredWrite, p.message, p.help));
    graph_.settle();
    return std::move(graph_);
  }

  ContextPtr context_;
  std::string_view bytes_;
  const std::string& file_;
  const OpParser& parse_op_;
  const StageProgress& progress_;
  Graph graph_;
  Counts counts_;
  std::array<std::size_t, Counts::count> begin_{};
  std::vector<std::string_view> texts_;
  struct InputShown {
    TypeId type;
    InputKind kind;
    std::vector<std::string> replicated;
  };
  std::vector<InputShown> input_kinds_;
  std::vector<Kind> kinds_;
  struct Variant {
    std::uint32_t kind;
    AttributesId attributes;
  };
  std::vector<Variant> variants_;
  struct Pattern {
    std::string_view before, after;
    // Id of the number 0, once queried; nothing if the context has no room for it.
    std::optional<std::optional<ValueNameId>> first_name;
    std::optional<std::optional<TextId>> first_text;
  };
  std::vector<Pattern> patterns_;
  std::set<std::pair<std::string, std::string>> known_patterns_;
  std::vector<Seen> named_;  // by pattern
  Seen texts_named_;
  std::vector<std::uint32_t> places_;
  std::uint32_t operand_ = 0, result_ = 0;  // the next ones
  bool imported_ = false;
  std::vector<ValueId> operands_;  // of the current node
  std::vector<ValueNameId> results_;
};

}  // namespace

bool looks_like_binary_graph(std::string_view bytes) { return bytes.starts_with(binary::kMagic); }

Result<Graph> graph_from_binary(const ContextPtr& context, std::string_view bytes,
                                const std::string& file, const OpParser& parse_op,
                                const StageProgress& progress) {
  return BinaryReader(context, bytes, file, parse_op, progress).read();
}

}  // namespace pw
