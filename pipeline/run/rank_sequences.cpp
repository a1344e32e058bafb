// Exchanges one number per count of tokens, and the sequences themselves only if two numbers
// differ.
#include "pipeline/run/rank_sequences.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "exec/dispatch.hpp"
#include "graph/op.hpp"

namespace pw {
namespace {

using Sequence = std::vector<IssuedCollective>;

std::uint64_t number_of(const Sequence& sequence) {
  std::uint64_t out = sequence.size();
  for (const IssuedCollective& c : sequence) {
    out = combine(out, hash_text(c.op));
    out = combine(out, hash_text(c.group));
    out = combine(out, static_cast<std::uint64_t>(c.bytes));
  }
  return out;
}

/// Names contain no tab and no line break.
std::string text_of(const Sequence& sequence) {
  std::string out;
  for (const IssuedCollective& c : sequence)
    out += fmt::format("{}\t{}\t{}\t{}\n", c.op, c.group, c.node, c.bytes);
  return out;
}

Sequence sequence_of(const std::string& text) {
  Sequence out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    IssuedCollective& c = out.emplace_back();
    std::string bytes;
    std::getline(cells, c.op, '\t');
    std::getline(cells, c.group, '\t');
    std::getline(cells, c.node, '\t');
    std::getline(cells, bytes);
    c.bytes = std::stoll(bytes);
  }
  return out;
}

/// Returns the text of rank `root` on all ranks.
Result<std::string> text_of_rank(Communicator& ranks, std::size_t root, const std::string& own) {
  const Array length = make_array(DType::i64, {1});
  const auto size = static_cast<std::int64_t>(own.size());
  std::memcpy(length.data, &size, sizeof size);
  PW_TRY(ranks.broadcast(length, static_cast<std::int64_t>(root), {}));
  const Array text = make_array(DType::u8, {elements_of<std::int64_t>(length)[0]});
  if (static_cast<std::size_t>(ranks.rank()) == root)
    std::memcpy(text.data, own.data(), own.size());
  if (text.count() > 0) PW_TRY(ranks.broadcast(text, static_cast<std::int64_t>(root), {}));
  return std::string(reinterpret_cast<const char*>(text.data),
                     static_cast<std::size_t>(text.count()));
}

std::string in_words(const Sequence& sequence, std::size_t at) {
  if (at >= sequence.size()) return "nothing more";
  const IssuedCollective& c = sequence[at];
  return fmt::format("{} over `{}` of {} bytes (node {})", c.op, c.group, c.bytes, c.node);
}

/// Returns the first entry that differs; if there is none, the end of the shorter sequence.
std::size_t first_difference(const Sequence& a, const Sequence& b) {
  std::size_t at = 0;
  while (at < std::min(a.size(), b.size()) && a[at].same(b[at])) ++at;
  return at;
}

/// Returns the numbers of all ranks, by rank; each rank has the same count.
Result<std::vector<std::vector<std::uint64_t>>> gathered(Communicator& ranks,
                                                         const std::vector<std::uint64_t>& own) {
  const auto count = static_cast<std::int64_t>(own.size());
  const Array mine = make_array(DType::i64, {count});
  const Array all = make_array(DType::i64, {count * ranks.size()});
  std::memcpy(mine.data, own.data(), own.size() * sizeof own[0]);
  PW_TRY(ranks.all_gather(mine, all, {}));
  std::vector<std::vector<std::uint64_t>> out(static_cast<std::size_t>(ranks.size()), own);
  for (std::size_t r = 0; r < out.size(); ++r)
    std::memcpy(out[r].data(), all.at(static_cast<std::int64_t>(r) * count),
                own.size() * sizeof own[0]);
  return out;
}

class SequenceComparison {
 public:
  SequenceComparison(Communicator& ranks, bool pad, const std::vector<GraphVariant>& variants,
                     const std::vector<RunRecord>& records)
      : ranks_(ranks), pad_(pad), variants_(variants), records_(records) {}

  /// Checks that all ranks plan for the same token counts, and issue the same at each.
  Status compare_plans() {
    std::vector<std::int64_t> counts = token_counts();
    const auto most = static_cast<std::uint64_t>(counts.empty() ? 0 : counts.back());
    const auto planned = PW_TRY(gathered(ranks_, {most, counts.size()}));
    for (std::size_t r = 1; r < planned.size(); ++r)
      if (planned[r] != planned[0])
        return refused(fmt::format("rank 0 plans for at most {} tokens, but rank {} for {}",
                                   planned[0][0], r, planned[r][0]));
    std::vector<std::uint64_t> own;
    for (const std::int64_t tokens : counts) own.push_back(PW_TRY(number_at(tokens)));
    return compare(
        own, [&](std::size_t i) { return counts[i]; },
        [&](std::size_t i) { return fmt::format("at {} tokens", counts[i]); });
  }

  Status compare_steps(const std::vector<PlannedStep>& steps) {
    const auto counts = PW_TRY(gathered(ranks_, {steps.size()}));
    for (std::size_t r = 1; r < counts.size(); ++r)
      if (counts[r] != counts[0])
        return refused(fmt::format("rank 0 has {} steps to run, but rank {} has {}", counts[0][0],
                                   r, counts[r][0]));
    std::vector<std::uint64_t> own;
    for (const PlannedStep& s : steps) own.push_back(PW_TRY(number_at(s.step.tokens())));
    return compare(
        own, [&](std::size_t i) { return steps[i].step.tokens(); },
        [&](std::size_t i) { return fmt::format("in step {}", i + 1); });
  }

 private:
  tl::unexpected<Diagnostics> refused(const std::string& message) const {
    return fail(error_in("ranks", "PW1291", message,
                         "the ranks would deadlock: run the same rules on every rank, with the "
                         "same params, sizes and steps"));
  }

  /// Returns the token counts that may occur; for a graph without a symbol, its own.
  std::vector<std::int64_t> token_counts() const {
    std::vector<std::int64_t> out;
    const SymbolFact declared = variants_.front().declared;
    std::int64_t most = 0;  // of all ranges
    for (const RunRecord& record : records_) most = std::max(most, record.plan.max_tokens);
    for (std::int64_t t = std::max<std::int64_t>(declared.min, 1); t <= most; ++t)
      if (place_of(pad_, variants_, records_, t)) out.push_back(t);
    return out;
  }

  Result<Sequence> sequence_at(std::int64_t tokens) const {
    const StepPlace place = PW_TRY(place_of(pad_, variants_, records_, tokens));
    return issued(records_[place.variant], place.size);
  }

  Result<std::uint64_t> number_at(std::int64_t tokens) {
    const StepPlace place = PW_TRY(place_of(pad_, variants_, records_, tokens));
    const auto [known, added] = numbers_.emplace(std::pair(place.variant, place.size), 0);
    if (added) known->second = number_of(PW_TRY(issued(records_[place.variant], place.size)));
    return known->second;
  }

  template <class Tokens, class Words>
  Status compare(const std::vector<std::uint64_t>& own, const Tokens& tokens, const Words& words) {
    if (own.empty()) return {};
    const auto all = PW_TRY(gathered(ranks_, own));
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r][i] != all[0][i]) return tell(r, tokens(i), words(i));
    return {};
  }

  Status tell(std::size_t other, std::int64_t tokens, const std::string& when) {
    const std::string own = text_of(PW_TRY(sequence_at(tokens)));
    const Sequence first = sequence_of(PW_TRY(text_of_rank(ranks_, 0, own)));
    const Sequence second = sequence_of(PW_TRY(text_of_rank(ranks_, other, own)));
    const std::size_t at = first_difference(first, second);
    return refused(
        fmt::format("{} the ranks diverge at collective {}: rank 0 issues {}, and rank {} {}", when,
                    at + 1, in_words(first, at), other, in_words(second, at)));
  }

  Communicator& ranks_;
  bool pad_;
  const std::vector<GraphVariant>& variants_;
  const std::vector<RunRecord>& records_;
  std::map<std::pair<std::size_t, std::int64_t>, std::uint64_t> numbers_;
};

}  // namespace

Result<StepPlace> place_of(bool pad, const std::vector<GraphVariant>& variants,
                           const std::vector<RunRecord>& records, std::int64_t tokens) {
  const auto runs_as = [&](std::size_t i) {
    if (!pad) return tokens;
    const std::int64_t size = records[i].plan.capture.pad(tokens);
    return size > 0 ? size : round_up(tokens, records[i].plan.eager_multiple);
  };
  const std::size_t variant = PW_TRY(variant_of(variants, tokens, runs_as));
  return StepPlace{variant, runs_as(variant)};
}

Result<std::vector<IssuedCollective>> issued(const RunRecord& record, std::int64_t size) {
  std::vector<IssuedCollective> out;
  const Symbols symbols = symbols_at(record.plan, size);
  for (const Plan::Step& step : record.plan.steps) {
    const Graph& piece = record.pieces->pieces[step.piece].graph;
    for (NodeId n = piece.first(); n.valid(); n = piece.next(n)) {
      const Op& op = piece.op_of(n);
      if (!op.traits.collective) continue;
      const ValueId x = piece.operand(n, 0);
      const DType dtype = piece.context().types[piece.type(x)].dtype;
      const std::string* group = group_name(piece, n);
      out.push_back({op.name, group == nullptr ? "" : *group, std::string(piece.node_name(n)),
                     element_count(PW_TRY(extents_of(piece, x, symbols))) * size_of(dtype)});
    }
  }
  return out;
}

Status check_sequences(Communicator& ranks, bool pad, const std::vector<GraphVariant>& variants,
                       const std::vector<RunRecord>& records,
                       const std::vector<PlannedStep>& steps) {
  if (ranks.size() == 1) return {};
  SequenceComparison comparison(ranks, pad, variants, records);
  auto same = comparison.compare_plans();
  if (same) same = comparison.compare_steps(steps);
  // All ranks have the same result, and exit together.
  if (!same && same.error().front().code == "PW1291") PW_TRY(ranks.finish());
  return same;
}

}  // namespace pw
