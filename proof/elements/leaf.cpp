// Ops without operands, and opaque ops: uninterpreted functions of whole tensors.
#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

class LeafElement : NodeContext {
 public:
  explicit LeafElement(NodeContext node) : NodeContext(std::move(node)) {}

  TermId run() {
    const Primitive op = primitive();
    if (op == Primitive::empty) return terms_.number(0, dtype());
    if (op == Primitive::iota) return position();
    if (op == Primitive::extent) return terms_.index(size("value"), dtype());
    if (among(op, {Primitive::constant, Primitive::full}))
      return terms_.number(real("value"), dtype());
    return opaque();
  }

 private:
  /// Returns the last index in the result's dtype. A narrow dtype rounds or wraps large indices, so
  /// these are casts from i64.
  TermId position() {
    const Ix at = at_.empty() ? i_.constant(0) : at_.back();
    if (represents(dtype(), at)) return terms_.index(at, dtype());
    return terms_.call(Function::cast, dtype(), {terms_.index(at, DType::i64)});
  }
  TermId opaque() {
    const Op& op = graph_.op_of(node_);
    granted_.insert(fmt::format("`{}` gives equal results for equal operands", op.name));
    Term term;
    term.kind = Term::Kind::opaque;
    term.dtype = dtype();
    term.level = static_cast<std::uint32_t>(result_);
    term.name = op.name + context().attributes.print(graph_.attributes(node_));
    for (std::size_t i = 0; i < graph_.operand_count(node_); ++i) {
      if (!input(i).valid()) {
        term.args.push_back(terms_.number(0, DType::b8));
        term.name += fmt::format(" none {}", i);
        continue;
      }
      Term lambda;
      lambda.kind = Term::Kind::lambda;
      lambda.dtype = context().types[graph_.type(input(i))].dtype;
      lambda.at = shape(i);
      lambda.level = level_;
      std::vector<Ix> at;
      for (std::size_t k = 0; k < lambda.at.size(); ++k)
        at.push_back(i_.variable(level_ + static_cast<std::uint32_t>(k), lambda.at[k]));
      lambda.args = {
          element(input(i), at, rank_, level_ + static_cast<std::uint32_t>(lambda.at.size()))};
      term.args.push_back(terms_.make(std::move(lambda)));
    }
    term.at = at_;
    return terms_.make(std::move(term));
  }
};

}  // namespace

TermId leaf_element(NodeContext node) { return LeafElement(std::move(node)).run(); }

}  // namespace pw::proof
