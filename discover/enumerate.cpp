// Enumerates pairs of equal graphs for each multiset of input shapes. The bank (bank.hpp) grows by
// one node at a time; a new node with the fingerprint of an earlier value yields a candidate pair,
// as in rule synthesis by observational equivalence (Nandi et al., "Rewrite Rule Inference Using
// Equality Saturation", 2021). Pairs are deduplicated by a canonical text. The cost is exponential
// in the number of nodes, which is at most that of the search.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "discover/bank.hpp"
#include "discover/discover.hpp"

namespace pw::discover {
namespace {

constexpr std::int64_t kUnit = 2;  // elements of the shortest axis

Result<Vocabulary> vocabulary_of(const ContextPtr& context, const std::vector<std::string>& ops) {
  Vocabulary out;
  for (const std::string& name : ops) {
    const OpId op = context->ops.find(name);
    if (!op.valid())
      return fail(error_in("--ops", "PW1440", fmt::format("there is no op `{}`", name),
                           nearest(name, context->ops.names())));
    const Op& found = context->ops[op];
    if (found.traits.effect || found.traits.collective || found.imported)
      return fail(error_in("--ops", "PW1440",
                           fmt::format("`{}` is not a function of its operands alone", name)));
    out.choices.push_back({op, {}});
  }
  for (std::int64_t units = 2; units <= 4; ++units)
    for (std::int64_t first = 1; first < units; ++first)
      out.parts[units * kUnit].push_back({first * kUnit, (units - first) * kUnit});
  return out;
}

/// Shapes of the inputs, as multisets: each input is a matrix of one or two units each way.
std::vector<std::vector<TypeId>> shapes_of_inputs(Context& context, std::size_t inputs) {
  std::vector<TypeId> shapes;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}})
    shapes.push_back(context.types.get(
        DType::f32, {context.dims.constant(rows * kUnit), context.dims.constant(columns * kUnit)}));
  std::vector<std::vector<TypeId>> out{{}};
  for (std::size_t i = 0; i < inputs; ++i) {
    std::vector<std::vector<TypeId>> next;
    for (const auto& list : out)
      for (TypeId shape : shapes)
        if (list.empty() || !(shape < list.back())) {
          next.push_back(list);
          next.back().push_back(shape);
        }
    out = std::move(next);
  }
  return out;
}

class Enumeration {
 public:
  Enumeration(const ContextPtr& context, const Vocabulary& vocabulary, const Search& search,
              Counts& counts)
      : context_(context),
        evaluator_(context),
        vocabulary_(vocabulary),
        search_(search),
        counts_(counts) {}

  void run(const std::vector<TypeId>& inputs) {
    Bank bank(context_, evaluator_, vocabulary_, inputs, search_.seed);
    const Bank::Found each = [&](const Made& node, const std::vector<std::uint32_t>& equal) {
      take(bank, node, equal);
      return true;
    };
    for (std::size_t nodes = 1; nodes <= search_.nodes; ++nodes)
      bank.grow(nodes, nodes == search_.nodes, each);
    counts_.graphs += bank.tried();
  }
  std::vector<Candidate> found;

 private:
  void take(const Bank& bank, const Made& node, const std::vector<std::uint32_t>& equal) {
    std::vector<std::uint32_t> fresh, known;
    for (std::uint32_t i = 0; i < node.results; ++i) {
      if (equal[i] == node.first + i) continue;
      fresh.push_back(node.first + i);
      known.push_back(equal[i]);
    }
    if (known.empty()) return;
    // Outputs must be distinct values.
    Pair pair{bank.inputs(), {}, bank.form(fresh, &node), bank.form(known, nullptr)};
    pair = without_unused(pair);
    if (!seen_.insert(key_of(*context_, pair)).second) return;
    Parts parts;
    for (std::int64_t units = 2; units <= 2; ++units)
      parts[units * kUnit] = std::vector<std::int64_t>(static_cast<std::size_t>(units), kUnit);
    found.push_back({std::move(pair), std::move(parts), {}, 1, {}});
  }

  ContextPtr context_;
  Evaluator evaluator_;
  const Vocabulary& vocabulary_;
  const Search& search_;
  Counts& counts_;
  std::set<std::string> seen_;
};

}  // namespace

Result<std::vector<Candidate>> enumerate(const ContextPtr& context, const Search& search,
                                         Counts& counts, const StageProgress& progress) {
  Vocabulary vocabulary = PW_TRY(vocabulary_of(context, search.ops));
  Enumeration all(context, vocabulary, search, counts);
  const auto shapes = shapes_of_inputs(*context, search.inputs);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (progress) progress("enumerating", i, shapes.size(), "shapes of inputs");
    all.run(shapes[i]);
  }
  return std::move(all.found);
}

}  // namespace pw::discover
