#include <cmath>
#include <vector>

#include "backends/interpreter/kernels.hpp"
#include "backends/sequences.hpp"
#include "base/hash.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw {
namespace {

/// A layer's internal matrix, which is not an operand. It is generated from the layer's name, like
/// ungiven weights of a run: numbers in [-1, 1), divided by the root of the width that is summed
/// over.
template <class Real>
class LayerMatrix {
 public:
  LayerMatrix(std::string_view layer, std::uint64_t which, std::int64_t summed)
      : seed_(hash_text(layer) + which), scale_(1 / std::sqrt(static_cast<Real>(summed))) {}
  Real operator()(std::int64_t row, std::int64_t column) const {
    const std::uint64_t at = mix(
        seed_ ^ mix(static_cast<std::uint64_t>(row) << 32 ^ static_cast<std::uint64_t>(column)));
    return (static_cast<Real>(at >> 44) / Real(1 << 19) - 1) * scale_;
  }

 private:
  std::uint64_t seed_;
  Real scale_;
};

/// Row-major numbers of one call.
template <class Real>
struct Latents {
  std::vector<Real> q, kv, pe;
  std::int64_t heads, width, latent, turned;  ///< of q, of kv, of pe
  [[nodiscard]] std::int64_t plain() const { return std::max<std::int64_t>(width - turned, 0); }
};

/// Projects a query head to the latents: its part without position times the layer's first matrix.
template <class Real>
std::vector<Real> seen_by_latents(const Latents<Real>& x, const Real* q, std::int64_t head,
                                  const LayerMatrix<Real>& up) {
  std::vector<Real> out(static_cast<std::size_t>(x.latent), Real(0));
  for (std::int64_t d = 0; d < x.plain(); ++d)
    for (std::int64_t r = 0; r < x.latent; ++r)
      out[static_cast<std::size_t>(r)] += q[d] * up(head * x.plain() + d, r);
  return out;
}

/// Sums the latents of the keys that a query sees, weighted by their scores.
template <class Real>
std::vector<Real> weighed(const Latents<Real>& x, const Real* q, const std::vector<Real>& u,
                          std::int64_t first, std::int64_t keys) {
  std::vector<Real> scores(static_cast<std::size_t>(keys));
  const Real scale = 1 / std::sqrt(static_cast<Real>(x.width));
  const std::int64_t turned = x.width - x.plain();
  Real largest = -INFINITY, total = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const Real* kv = x.kv.data() + (first + j) * x.latent;
    const Real* pe = x.pe.data() + (first + j) * x.turned;
    Real dot = 0;
    for (std::int64_t r = 0; r < x.latent; ++r) dot += u[static_cast<std::size_t>(r)] * kv[r];
    for (std::int64_t d = 0; d < turned; ++d) dot += q[x.plain() + d] * pe[d];
    Real& score = scores[static_cast<std::size_t>(j)] = dot * scale;
    largest = score > largest || score != score ? score : largest;
  }
  std::vector<Real> out(static_cast<std::size_t>(x.latent), Real(0));
  for (std::int64_t j = 0; j < keys; ++j) {
    const Real weight = scalar::exp::of(scores[static_cast<std::size_t>(j)] - largest);
    total += weight;
    for (std::int64_t r = 0; r < x.latent; ++r)
      out[static_cast<std::size_t>(r)] +=
          weight * x.kv[static_cast<std::size_t>((first + j) * x.latent + r)];
  }
  for (Real& o : out) o /= total;
  return out;
}

template <class Real>
Status latent_attention(Call& call) {
  const Array& query = call.operand(0);
  const auto keys = seen_keys(call);
  if (!keys) return tl::unexpected(keys.error());
  const Latents<Real> x{elements_of<Real>(query),   elements_of<Real>(keys->k),
                        elements_of<Real>(keys->v), query.extents[1],
                        query.extents[2],           keys->k.extents[2],
                        keys->v.extents[2]};
  Array& y = call.result();
  const std::int64_t width = y.extents[1];
  const std::string layer = layer_name(call.graph, call.node);
  const LayerMatrix<Real> up(layer, 1, std::max<std::int64_t>(x.plain(), 1)),
      values(layer, 2, x.latent);
  const Real divisor = call.operands.size() > 3 && call.operands[3] != nullptr
                           ? elements_of<Real>(call.operand(3))[0]
                           : Real(1);
  std::vector<Real> out(static_cast<std::size_t>(y.count()), Real(0));
  for (std::size_t s = 0; s < keys->keys.size(); ++s) {
    const RowSpan& queries = keys->queries[s];
    for (std::int64_t row = queries.begin; row < queries.end; ++row) {
      for (std::int64_t head = 0; head < x.heads; ++head) {
        const Real* q = x.q.data() + (row * x.heads + head) * x.width;
        const std::vector<Real> o =
            weighed(x, q, seen_by_latents(x, q, head, up), keys->keys[s].begin,
                    keys->past(s) + row - queries.begin + 1);
        const std::int64_t begin = width * head / x.heads, end = width * (head + 1) / x.heads;
        for (std::int64_t c = begin; c < end; ++c) {
          Real& to = out[static_cast<std::size_t>(row * width + c)];
          for (std::int64_t r = 0; r < x.latent; ++r)
            to += o[static_cast<std::size_t>(r)] * values(r, c);
          to /= divisor;
        }
      }
    }
  }
  store_declared(call.result_dtype(), y, 0, 1, y.count(), out.data());
  return {};
}

/// Does nothing: attention receives the same keys and values as operands and stores them.
Status cache_update(Call& call) {
  call.result();  // only orders later nodes
  return {};
}

template <class Real>
constexpr KernelEntry kLatent[] = {{Primitive::unified_mla_attention, latent_attention<Real>},
                                   {Primitive::unified_mla_kv_cache_update, cache_update}};

}  // namespace

template <class Real>
KernelTable interpreter_latent() {
  return kLatent<Real>;
}
template KernelTable interpreter_latent<float>();
template KernelTable interpreter_latent<double>();

}  // namespace pw
