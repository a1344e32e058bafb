#include "splitter/piece_class.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/hash.hpp"

namespace pw {
namespace {

bool names_a_layer(std::string_view attribute) {
  return attribute == "layer" || attribute == "layer_name";
}

/// Attributes with layer names replaced by their order of first appearance in the piece: two
/// attentions of one layer differ from two attentions of two layers, but layer 3 is like layer 4.
class LayerNumbers {
 public:
  explicit LayerNumbers(const Graph& graph) : context_(graph.context()) {}

  AttributesId abstract(AttributesId id) {
    AttributeList list = context_.attributes[id];
    bool changed = false;
    for (auto& [name, value] : list) {
      const auto* text = std::get_if<std::string>(&value);
      if (text == nullptr || !names_a_layer(context_.strings.text(name))) continue;
      const auto number = numbers_.emplace(*text, numbers_.size()).first->second;
      value = static_cast<std::int64_t>(number);
      changed = true;
    }
    return changed ? context_.attributes.intern(std::move(list)) : id;
  }

 private:
  Context& context_;
  std::map<std::string, std::size_t> numbers_;
};

/// Calls `word` with each part of the canonical form: a number, or an interned entity with its
/// text.
template <class Number, class OpWord, class AttributesWord, class TypeWord>
void visit_form(const Graph& piece, Number number, OpWord op, AttributesWord attributes,
                TypeWord type) {
  LayerNumbers layers(piece);
  std::vector<std::uint32_t> index(piece.value_bound(), ValueId::kNone);
  std::uint32_t next = 0;
  for (const ValueId v : piece.inputs()) {
    index[v.index] = next++;
    number(static_cast<std::uint32_t>(piece.input_kind(v)));
    type(piece.type(v));
  }
  for (NodeId n = piece.first(); n.valid(); n = piece.next(n)) {
    op(piece.op(n));
    attributes(layers.abstract(piece.attributes(n)));
    number(static_cast<std::uint32_t>(piece.operand_count(n)));
    for (std::size_t i = 0; i < piece.operand_count(n); ++i) {
      const ValueId v = piece.operand(n, i);
      number(v.valid() ? index[v.index] : ValueId::kNone);
    }
    number(static_cast<std::uint32_t>(piece.result_count(n)));
    for (std::size_t i = 0; i < piece.result_count(n); ++i) {
      index[piece.result(n, i).index] = next++;
      type(piece.type(piece.result(n, i)));
    }
  }
  number(static_cast<std::uint32_t>(piece.outputs().size()));
  for (const ValueId v : piece.outputs()) number(index[v.index]);
}

}  // namespace

std::vector<std::uint32_t> canonical_form(const Graph& piece) {
  std::vector<std::uint32_t> form;
  const auto push = [&](auto id) { form.push_back(id.index); };
  visit_form(piece, [&](std::uint32_t x) { form.push_back(x); }, push, push, push);
  return form;
}

std::uint64_t canonical_hash(const Graph& piece) {
  const Context& context = piece.context();
  std::uint64_t h = 0;
  const auto text = [&](std::string_view word) { h = combine(h, hash_text(word)); };
  visit_form(
      piece, [&](std::uint32_t x) { h = combine(h, x); },
      [&](OpId id) { text(context.ops[id].name); },
      [&](AttributesId id) { text(context.attributes.print(id)); },
      [&](TypeId id) { text(context.types.print(id)); });
  return h;
}

void fold_pieces(StitchedGraph& stitched, bool fold) {
  std::map<std::pair<bool, std::vector<std::uint32_t>>, PieceClassId> seen;
  for (std::size_t i = 0; i < stitched.pieces.size(); ++i) {
    Piece& piece = stitched.pieces[PieceId(i)];
    PieceClassId id;
    if (fold) {
      // The whole form is compared, so that pieces with equal hashes never share a class by
      // accident.
      auto [at, fresh] = seen.try_emplace({piece.splitting, canonical_form(piece.graph)});
      if (!fresh) id = at->second;
      if (fresh) at->second = PieceClassId(stitched.classes.size());
    }
    if (!id.valid()) {
      id = stitched.classes.push_back({"class_" + std::to_string(stitched.classes.size()),
                                       canonical_hash(piece.graph),
                                       piece.splitting,
                                       {},
                                       piece.host_op});
    }
    piece.piece_class = id;
    stitched.classes[id].members.push_back(PieceId(i));
  }
}

std::size_t StitchedGraph::capturable() const {
  return static_cast<std::size_t>(std::count_if(
      pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.capturable(); }));
}

std::size_t StitchedGraph::capturable_classes() const {
  return static_cast<std::size_t>(std::count_if(
      classes.begin(), classes.end(), [](const PieceClass& c) { return c.capturable(); }));
}

}  // namespace pw
