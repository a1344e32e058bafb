// Cuts the bytes of a statement into names, op, attributes and types without tokens or a tree. The
// first node of a kind (op, attributes and stated types as written, types of operands) is built by
// the grammar and build_statement; later ones are copies of its result.
#include "dsl/syntax/plain_graph.hpp"

#include <algorithm>
#include <array>

#include "dsl/syntax/grammar.hpp"
#include "dsl/syntax/graph_header.hpp"
#include "dsl/syntax/plain_text.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/foreign.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/numbered_names.hpp"

namespace pw {
namespace {

using Kind = Expr::Kind;

/// Parses a text of one graph by the grammar; nothing if it is anything else.
std::optional<ast::GraphItem> parse_item_text(std::string_view text, SourceId source) {
  const Lexed lexed = lex(text, source);
  if (lexed.fatal || !lexed.diagnostics.empty() || lexed.tokens.size() < 2) return std::nullopt;
  const Token* begin = lexed.tokens.data();
  const Token* end = begin + lexed.tokens.size() - 1;
  if (begin->kind != Tok::graph) return std::nullopt;
  Builder builder(text, source, begin);
  try {
    if (parse_item(begin, end, builder) != end || builder.items().size() != 1) return std::nullopt;
  } catch (const Refused&) {
    return std::nullopt;
  }
  auto* item = std::get_if<ast::GraphItem>(&builder.items().front());
  return item == nullptr ? std::nullopt : std::optional(std::move(*item));
}

/// Returns true if the expression means the same in any place: numbers, texts, dtypes and symbols
/// alone.
bool stands_alone(const Expr& e, const Facts& facts) {
  switch (e.kind) {
    case Kind::integer:
    case Kind::real:
    case Kind::string:
    case Kind::boolean:
    case Kind::none: return true;
    case Kind::path: return facts.find(e.text) != nullptr || dtype_named(e.text).has_value();
    case Kind::list:
    case Kind::negate:
    case Kind::binary:
      return std::all_of(e.args.begin(), e.args.end(),
                         [&](const Expr& arg) { return stands_alone(arg, facts); });
    case Kind::call:
    case Kind::not_:
    case Kind::in_set:
    case Kind::in_range:
    case Kind::index:
    case Kind::spread:
    case Kind::star:
    case Kind::fuse: return false;
  }
  return false;
}

/// Returns true for a dim of numbers and names.
bool is_plain_dim(const Expr& e) {
  if (e.kind == Kind::path) return e.text.find('.') == std::string::npos;
  if (e.kind != Kind::integer && e.kind != Kind::negate && e.kind != Kind::binary) return false;
  return std::all_of(e.args.begin(), e.args.end(), is_plain_dim);
}

class PlainReader {
 public:
  PlainReader(const ContextPtr& context, std::string_view text, SourceId source)
      : context_ptr_(context), context_(*context), source_(source), text_(text), graph_(context) {}

  std::optional<Graph> read() {
    const bool read = text_.all().size() <= kMaxFileBytes && header() && inputs() && begin() &&
                      nodes() && outputs() && text_.at_end() && finish();
    return read ? std::optional(std::move(graph_)) : std::nullopt;
  }

 private:
  struct Input {
    NameId name, type;
    InputKind kind = InputKind::input;
    std::vector<std::string> replicated;
  };
  /// Data of a type as written.
  struct TypeText {
    TypeExpr expr;
    TypeId type;  // after a lookup in the graph; unknown if it states no shape
  };
  /// Data of an op as written.
  struct OpText {
    OpId op;
    bool reserved = false;  // the word has another meaning, unless it is quoted
  };
  /// A built node that others copy.
  struct Known {
    NameId op, attributes;  // of words_
    std::vector<TypeId> operands;
    std::vector<NameId> stated;  // of words_, by result; invalid: not stated
    OpId made;
    AttributesId completed;
    std::vector<TypeId> results;
  };

  // ---- the header, and inputs
  bool header() {
    const std::size_t at = text_.first_line_of("in");
    if (at == std::string_view::npos) return false;
    auto item = parse_item_text(std::string(text_.all().substr(0, at)) + " out }", source_);
    if (!item || !item->nodes.empty() || !item->inputs.empty()) return false;
    item_ = std::move(*item);
    text_.go_to(at);
    return true;
  }

  bool inputs() {
    while (text_.take_word("in"))
      if (!list_of_inputs()) return false;
    return !inputs_.empty();
  }
  bool list_of_inputs() {
    PlainWord word;
    if (!text_.word(word)) return false;
    Input kind;
    if (!word.quoted && (word.text == "weight" || word.text == "buffer") && text_.at_word()) {
      kind.kind = word.text == "weight" ? InputKind::weight : InputKind::buffer;
      if (!text_.word(word)) return false;
    }
    while (true) {
      Input input = kind;
      std::string_view type;
      input.name = names_.intern(word.text);
      if (!text_.take(':') || !text_.type(type) || !type_text(type, input.type)) return false;
      if (!text_.take_replicated(input.replicated)) return false;
      inputs_.push_back(std::move(input));
      if (!text_.take(',')) return true;
      if (!text_.word(word)) return false;
    }
  }

  /// Interns a type; returns false if it is not a plain type.
  bool type_text(std::string_view spelt, NameId& out) {
    out = words_.intern(spelt);
    if (out.index < types_.size() && !types_[out].expr.dtype.empty()) return true;
    types_.resize(words_.size());
    auto item = parse_item_text("graph { in v: " + std::string(spelt) + " out }", source_);
    if (!item || item->inputs.size() != 1) return false;
    TypeExpr& expr = item->inputs.front().type;
    const bool plain = expr.dtype.size() == 1 && expr.dtype.front().kind == Kind::path &&
                       dtype_named(expr.dtype.front().text) &&
                       std::all_of(expr.dims.begin(), expr.dims.end(),
                                   [](const Expr& e) { return is_plain_dim(e); });
    if (!plain) return false;
    types_[out].expr = std::move(expr);
    return true;
  }

  /// Declares the header's items, and adds the inputs.
  bool begin() {
    for (const Input& input : inputs_) note_type(input.type);
    GraphHeader header = build_header(context_ptr_, item_);
    if (!header.errors.empty()) return false;
    graph_ = std::move(header.graph);
    env_ = std::move(header.env);
    imported_ = header.imported;
    graph_.trust_names(true);  // define() guarantees uniqueness
    for (const std::string_view word : kNoNames) define_none(word);
    for (int i = 0; i < kDTypeCount; ++i) define_none(name(static_cast<DType>(i)));
    for (const auto& [name, meant] : env_) define_none(name);
    for (const Input& input : inputs_) {
      if (!free(input.name)) return false;
      const auto type = type_of(input.type);
      if (!type || *type == Types::unknown()) return false;
      const ValueId v =
          graph_.add_input(names_.add_to(context_.value_names, input.name), *type, input.kind);
      for (const std::string& over : input.replicated) graph_.declare_replicated(v, over);
      values_[input.name] = v;
    }
    return true;
  }
  /// Notes each type once, in order of first occurrence, and so its symbols.
  void note_type(NameId type) {
    if (noted_.size() <= type.index) noted_.resize(words_.size());
    if (noted_[type.index]) return;
    noted_[type.index] = true;
    item_.inputs.push_back({{}, "", types_[type].expr, "", {}});
  }
  /// Returns the type; nothing on failure; unknown if it states no shape.
  std::optional<TypeId> type_of(NameId spelt) {
    TypeText& known = types_[spelt];
    if (known.type.valid()) return known.type;
    bool symbols_known = true;
    visit_type(known.expr, [&](const Occurrence& o) {
      if (o.place == Place::dim)
        symbols_known = symbols_known && graph_.facts.find(o.name) != nullptr;
    });
    if (!symbols_known) return std::nullopt;
    if (known.expr.any_shape) return known.type = Types::unknown();
    const auto type = instantiate_type(context_, known.expr, env_);
    return type ? std::optional(known.type = *type) : std::nullopt;
  }

  // ---- names
  /// Words that cannot name a value here: those of the language, dtypes, symbols.
  static constexpr std::array<std::string_view, 16> kNoNames{
      "where", "assume", "given", "unless", "many", "and", "or",  "not",
      "in",    "out",    "true",  "false",  "none", "inf", "nan", "_"};
  static bool is_no_name(std::string_view word) {
    return std::find(kNoNames.begin(), kNoNames.end(), word) != kNoNames.end();
  }
  void define_none(std::string_view word) {
    const NameId id = names_.intern(word);
    fit_values();
    none_[id.index] = true;
  }
  void fit_values() {
    if (values_.size() == names_.size()) return;
    values_.resize(names_.size());
    none_.resize(names_.size());
  }
  bool free(NameId name) {
    fit_values();
    return !values_[name].valid() && !none_[name.index];
  }

  // ---- nodes
  bool nodes() {
    while (true) {
      text_.skip();
      statement_begin_ = text_.at();
      PlainWord word;
      if (!text_.word(word)) return false;
      if (!word.quoted && word.text == "out") return true;
      if (!node(word)) return false;
    }
  }

  bool node(const PlainWord& first) {
    result_ids_.clear();
    stated_.clear();
    PlainWord op = first;
    // The grammar's path names a node without results.
    if (text_.at_call() || !binders(first) || !text_.word(op)) return false;
    if (!text_.rest_of_path(op) || !text_.take('(') || !operands()) return false;
    std::string_view attributes;
    if (!text_.attributes(attributes)) return false;
    const std::size_t statement_end = text_.at();
    TextId group, source;
    if (text_.take('@') && !provenance(group, source)) return false;
    const NameId op_word = words_.intern(op.text), attribute_word = words_.intern(attributes);
    const OpText& meant = op_text(op_word);
    if (!meant.op.valid() || (meant.reserved && !op.quoted)) return false;
    std::uint64_t hash = combine(op_word.index, attribute_word.index);
    for (const TypeId type : operand_types_) hash = combine(hash, type.index);
    for (const NameId type : stated_) hash = combine(hash, type.index + 1);
    const std::uint32_t known = known_index_.find(hash, [&](std::uint32_t i) {
      const Known& k = known_[i];
      return k.op == op_word && k.attributes == attribute_word && k.operands == operand_types_ &&
             k.stated == stated_;
    });
    if (known != HashIndex::kNone) return copy(known_[known], group, source);
    const std::string_view statement =
        text_.all().substr(statement_begin_, statement_end - statement_begin_);
    if (!build(statement, group, source)) return false;
    const NodeId made = graph_.last();
    Known kind{op_word, attribute_word,  operand_types_,
               stated_, graph_.op(made), graph_.attributes(made),
               {}};
    for (std::size_t i = 0; i < stated_.size(); ++i)
      kind.results.push_back(graph_.type(graph_.result(made, i)));
    known_index_.insert(hash, static_cast<std::uint32_t>(known_.size()));
    known_.push_back(std::move(kind));
    return true;
  }

  bool binders(PlainWord word) {
    while (true) {
      result_ids_.push_back(names_.intern(word.text));
      NameId type;
      if (text_.take(':')) {
        std::string_view spelt;
        if (!text_.type(spelt) || !type_text(spelt, type) || !type_of(type)) return false;
      }
      stated_.push_back(type);
      if (!text_.take(',')) return text_.take_assign();
      if (!text_.word(word)) return false;
    }
  }

  /// Reads the operands after the bracket.
  bool operands() {
    operands_.clear();
    operand_types_.clear();
    operand_names_.clear();
    while (!text_.take(')')) {
      PlainWord word;
      if (!text_.word(word)) return false;
      if (!word.quoted && word.text == "none") {
        operands_.emplace_back();
        operand_types_.emplace_back();
      } else {
        const NameId id = names_.intern(word.text);
        if (id.index >= values_.size() || !values_[id].valid()) return false;
        operands_.push_back(values_[id]);
        operand_types_.push_back(graph_.type(values_[id]));
        operand_names_.push_back(word.text);
      }
      if (text_.take(',')) continue;
      return text_.take(')');
    }
    return true;
  }

  bool provenance(TextId& group, TextId& source) {
    std::string_view text;
    if (!text_.string(text)) return false;
    group = place_text(text);
    if (!text_.at_string()) return true;
    if (!text_.string(text)) return false;
    source = place_text(text);
    return true;
  }
  TextId place_text(std::string_view text) {
    if (text.empty()) return {};
    const NameId spelt = words_.intern(text);
    if (place_texts_.size() <= spelt.index) place_texts_.resize(words_.size());
    TextId& known = place_texts_[spelt];
    if (!known.valid()) known = context_.value_names.intern(text);
    return known;
  }

  const OpText& op_text(NameId word) {
    if (ops_.size() <= word.index) ops_.resize(words_.size());
    OpText& known = ops_[word];
    if (known.op.valid()) return known;
    const std::string spelt(words_.text(word));
    if (dtype_named(spelt)) return known;  // a cast
    const auto meant = env_.find(spelt);
    const auto* other = meant == env_.end() ? nullptr : std::get_if<Attribute>(&meant->second);
    const auto* called = other == nullptr ? nullptr : std::get_if<std::string>(other);
    if (meant != env_.end() && called == nullptr) return known;
    known.op = context_.ops.find(called == nullptr ? spelt : *called);
    known.reserved = is_no_name(spelt.substr(0, spelt.find('.')));
    return known;
  }

  /// Gives the results names that are not in use.
  bool name_results() {
    result_names_.clear();
    const auto first = static_cast<std::uint32_t>(graph_.value_bound());
    for (std::size_t i = 0; i < result_ids_.size(); ++i) {
      if (!free(result_ids_[i])) return false;
      values_[result_ids_[i]] = ValueId(std::size_t{first} + i);
    }
    return true;
  }

  bool copy(const Known& known, TextId group, TextId source) {
    if (!name_results()) return false;
    for (const NameId id : result_ids_)
      result_names_.push_back(names_.add_to(context_.value_names, id));
    graph_.add_node(known.made, operands_, known.completed, known.results, result_names_,
                    graph_.place_of(group, source));
    return true;
  }

  /// Builds a node by the grammar and the builder of all statements.
  bool build(std::string_view spelt, TextId group, TextId source) {
    if (!name_results()) return false;
    const auto item = parse_item_text("graph {" + std::string(spelt) + " out }", source_);
    if (!item || item->nodes.size() != 1) return false;
    const Statement& statement = item->nodes.front().statement;
    const Expr& call = statement.value;
    const bool plain =
        call.kind == Kind::call && !call.open && !call.optional &&
        statement.binders.size() == result_ids_.size() && call.args.size() == operands_.size() &&
        std::all_of(call.attributes.begin(), call.attributes.end(), [&](const AttributeArg& a) {
          return !a.value.empty() && stands_alone(a.value.front(), graph_.facts);
        });
    if (!plain) return false;
    for (std::size_t i = 0, k = 0; i < operands_.size(); ++i)
      if (operands_[i].valid())
        env_.insert_or_assign(std::string(operand_names_[k++]), operands_[i]);
    BuildOptions options;
    options.group = context_.value_names.text(group);
    options.source = context_.value_names.text(source);
    const std::size_t before = graph_.node_bound(), values = graph_.value_bound();
    const auto built = build_statement(graph_, statement, env_, options);
    for (const std::string_view operand : operand_names_) env_.erase(std::string(operand));
    for (const Binder& binder : statement.binders) env_.erase(binder.name);
    return built && graph_.node_bound() == before + 1 &&
           graph_.value_bound() == values + result_ids_.size();
  }

  // ---- outputs
  bool outputs() {
    PlainWord word;
    ValueId value;
    if (!text_.at_write()) do {
        if (!text_.word(word) || !value_named(word, value)) return false;
        graph_.add_output(value);
      } while (text_.take(','));
    while (text_.at_write()) {
      ValueId input;
      const bool read = text_.take_word("write") && text_.word(word) && value_named(word, input) &&
                        text_.take_assign() && text_.word(word) && value_named(word, value);
      if (!read || !write(input, value)) return false;
    }
    return text_.take('}') && !graph_.outputs().empty();
  }
  bool value_named(const PlainWord& word, ValueId& out) {
    const NameId id = names_.intern(word.text);
    if (id.index >= values_.size() || !values_[id].valid()) return false;
    out = values_[id];
    return true;
  }
  bool write(ValueId input, ValueId value) {
    const std::vector<ValueId>& written = graph_.written_inputs();
    if (!graph_.is_input(input) || graph_.type(input) != graph_.type(value) ||
        std::find(written.begin(), written.end(), input) != written.end())
      return false;
    graph_.add_write(input, value);
    return true;
  }

  bool finish() {
    if (imported_) {
      graph_.trust_names(false);  // refining makes names up
      if (!refine_imported(graph_)) return false;
    }
    if (!declare_writes(graph_).empty()) return false;
    settle_numbers(graph_);
    graph_.settle();
    return true;
  }

  const ContextPtr& context_ptr_;
  Context& context_;
  SourceId source_;
  PlainText text_;
  Graph graph_;
  Env env_;
  ast::GraphItem item_;  // the header
  bool imported_ = false;
  std::vector<Input> inputs_;
  NumberedNames names_;                // of values
  IdVec<NameId, ValueId> values_;      // by name
  std::vector<bool> none_;             // by name: no value may have it
  Strings words_;                      // what else is written: ops, attributes, types, groups
  IdVec<NameId, TypeText> types_;      // by word
  std::vector<bool> noted_;            // the same
  IdVec<NameId, OpText> ops_;          // the same
  IdVec<NameId, TextId> place_texts_;  // the same
  std::vector<Known> known_;
  HashIndex known_index_;
  // State of the current statement.
  std::size_t statement_begin_ = 0;
  std::vector<NameId> result_ids_, stated_;
  std::vector<ValueId> operands_;
  std::vector<TypeId> operand_types_;
  std::vector<std::string_view> operand_names_;  // of those that are there
  std::vector<ValueNameId> result_names_;
};

}  // namespace

std::optional<Graph> read_plain_graph(const ContextPtr& context, std::string_view text,
                                      SourceId source) {
  return PlainReader(context, text, source).read();
}

}  // namespace pw
