// Reductions, products of matrices, convolutions, and collectives. Each binds an index: an axis,
// the channels and positions of a kernel, or the rank. The order of summation of a floating-point
// reduction is not part of a term: `sum` over an index is one function of its body. Two terms with
// equal bodies and extents count as equal bit for bit. For matmuls and convolutions, whose order
// engines choose by size, this is recorded as an assumption.
#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

class ReducedElement : NodeContext {
 public:
  explicit ReducedElement(NodeContext node) : NodeContext(std::move(node)) {}

  TermId run() {
    const Primitive op = primitive();
    if (among(op, {Primitive::mm, Primitive::bmm})) return product(0);
    if (op == Primitive::addmm) return addmm();
    if (op == Primitive::convolution) return convolution();
    if (among(op, {Primitive::all_reduce, Primitive::all_gather, Primitive::reduce_scatter,
                   Primitive::shard}))
      return collective(op);
    return reduction(function_of(op));
  }

 private:
  /// Computes a convolution: a sum over the channels of the group and the kernel positions of each
  /// axis.
  TermId convolution() {
    const std::vector<Ix> x = shape(0), w = shape(1);
    const std::size_t axes = w.size() - 2;
    const std::vector<Ix> stride = sizes("stride"), padding = sizes("padding"),
                          dilation = sizes("dilation");
    if (x.size() != w.size() || stride.size() != axes || padding.size() != axes ||
        dilation.size() != axes)
      throw NoMeaning{"a convolution without a batch"};
    const Ix groups = size("groups"), each = i_.div(w[0], groups);
    const Ix group = i_.div(at_[1], each);
    granted_.insert("convolutions add in an order that their sizes decide");
    std::vector<Ix> places(axes + 1);
    // Products are not rounded before the summation.
    const auto factors = [&](std::uint32_t level) -> std::vector<TermId> {
      std::vector<Ix> from = {at_[0], i_.add(i_.mul(group, w[1]), places[0])};
      std::vector<Ix> kernel = {at_[1], places[0]};
      for (std::size_t a = 0; a < axes; ++a) {
        const Ix place = i_.sub(
            i_.add(i_.mul(at_[a + 2], stride[a]), i_.mul(places[a + 1], dilation[a])), padding[a]);
        // Both factors are 0 in the padding, so an infinite weight gives no NaN there.
        const bool inside =
            at_least(place) && at_least(i_.sub(i_.sub(x[a + 2], i_.constant(1)), place));
        if (!inside) return {terms_.number(0, dtype()), terms_.number(0, dtype())};
        from.push_back(place);
        kernel.push_back(places[a + 1]);
      }
      return {element(input(0), from, rank_, level), element(input(1), kernel, rank_, level)};
    };
    const std::function<TermId(std::size_t, std::uint32_t)> over = [&](std::size_t k,
                                                                       std::uint32_t level) {
      return reduce(k == axes ? Function::dot : Function::sum, dtype(), w[k + 1], level,
                    [&, k](Ix v, std::uint32_t inner) {
                      places[k] = v;
                      return k == axes ? factors(inner) : std::vector<TermId>{over(k + 1, inner)};
                    });
    };
    const TermId sum = over(0, level_);
    if (graph_.operand_count(node_) < 3 || !input(2).valid()) return sum;
    return terms_.call(Function::addmm, dtype(), {operand(2, {at_[1]}), sum});
  }
  // Element `at` of the result reads all positions along axis k; the bound index takes the place of
  // k.
  TermId reduction(Function function) {
    const std::vector<Ix> extents = shape(0);
    const std::size_t k = axis("dim", extents.size());
    const bool keep = flag("keepdim");
    return reduce(function, dtype(), extents[k], level_, [&](Ix v, std::uint32_t level) {
      std::vector<Ix> at = at_;
      if (keep)
        at[k] = v;
      else
        at.insert(at.begin() + static_cast<std::ptrdiff_t>(k), v);
      return std::vector<TermId>{element(input(0), at, rank_, level)};
    });
  }
  // Each batch index is part of `at_`, so mm and bmm differ only in their rank.
  TermId product(std::size_t first) {
    const std::vector<Ix> a = shape(first);
    granted_.insert("products of matrices add in an order that the length of the sum decides");
    return reduce(Function::dot, dtype(), a.back(), level_, [&](Ix v, std::uint32_t level) {
      std::vector<Ix> left = at_, right = at_;
      left.back() = v;
      right[right.size() - 2] = v;
      return std::vector<TermId>{element(input(first), left, rank_, level),
                                 element(input(first + 1), right, rank_, level)};
    });
  }
  TermId addmm() {
    const TermId sum = product(1);
    return terms_.call(Function::addmm, dtype(), {operand(0, {at_.back()}), sum});
  }
  // all_gather reads the rank that holds the position. reduce_scatter and shard read the positions
  // of this rank's part. all_reduce binds an index over all ranks.
  TermId collective(Primitive op) {
    if (!rank_.valid()) throw NoMeaning{"a collective without ranks"};
    const Ix world = world_;
    if (op == Primitive::all_reduce) return over_ranks(at_);
    const std::size_t k = axis("dim", at_.size());
    std::vector<Ix> at = at_;
    if (op == Primitive::all_gather) {
      const Ix part = shape(0)[k];
      const Ix rank = i_.div(at_[k], part);
      at[k] = i_.sub(at_[k], i_.mul(part, rank));
      return element(input(0), at, rank, level_);
    }
    const Ix part = extents(graph_.result(node_, result_))[k];
    if (!i_.equal(i_.mul(part, world), shape(0)[k]))
      throw NoMeaning{fmt::format("{} has to divide {}", i_.print(world), i_.print(shape(0)[k]))};
    at[k] = i_.add(i_.mul(rank_, part), at_[k]);
    return op == Primitive::shard ? operand(0, at) : over_ranks(at);
  }
  TermId over_ranks(const std::vector<Ix>& at) {
    return reduce(Function::ranks, dtype(), world_, level_, [&](Ix v, std::uint32_t level) {
      return std::vector<TermId>{element(input(0), at, v, level)};
    });
  }
};

}  // namespace

TermId reduced_element(NodeContext node) { return ReducedElement(std::move(node)).run(); }

}  // namespace pw::proof
