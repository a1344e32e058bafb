#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "discover/discover.hpp"
#include "discover/weigh.hpp"

namespace pw::discover {
namespace {

constexpr std::size_t kBeyond = 1000;  // exceeds the number of inputs and outputs

std::vector<std::int64_t> sizes_of(std::size_t count, std::size_t turn) {
  constexpr std::int64_t kSizes[] = {2, 3, 5, 4, 7, 6, 9, 8};
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(kSizes[(i * (turn + 1) + turn) % 8]);
  return out;
}

/// Sizes of which none is a sum or product of a few others, so that no rule holds by chance.
std::vector<std::int64_t> unlike_sizes(std::size_t count) {
  constexpr std::int64_t kSizes[] = {3, 7, 17, 37, 79, 163, 331, 673};
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(kSizes[i % 8] + static_cast<int>(i / 8));
  return out;
}

class Settling {
 public:
  Settling(const ContextPtr& context, std::uint64_t seed, const Judge& judge, const TestRun& test,
           Derivations& earlier, Counts& counts)
      : context_(context),
        evaluator_(context),
        seed_(seed),
        judge_(judge),
        test_(test),
        earlier_(earlier),
        counts_(counts) {}

  void take(const Candidate& candidate) {
    if (candidate.window && replaced_.contains(*candidate.window)) return;
    std::optional<General> general = generalised(*context_, candidate.pair, candidate.parts);
    if (!general || !equal_at(*general, 0) || !equal_at(*general, 1)) {
      ++counts_.other_sizes;
      return;
    }
    const auto bytes = weighed(*context_, *general, candidate.real);
    if (!bytes) {
      ++counts_.other_sizes;
      return;
    }
    auto [before, after] = *bytes;
    // A window is the left side.
    if (!candidate.window && std::tuple(after, general->pair.after.steps.size()) >
                                 std::tuple(before, general->pair.before.steps.size())) {
      std::swap(general->pair.before, general->pair.after);
      std::swap(before, after);
    }
    if (!write(*general, "rule", {})) {
      ++counts_.unwritten;
      return;
    }
    const auto goal = at_sizes(*context_, *general, unlike_sizes(general->symbols.names.size()));
    if (goal && earlier_.derives(*goal)) {
      ++counts_.derived;
      if (candidate.window) replaced_.insert(*candidate.window);
      return;
    }
    if (keep(*general, before, after, candidate.seen) && candidate.window)
      replaced_.insert(*candidate.window);
  }
  std::vector<Rule> kept;

 private:
  bool equal_at(const General& general, std::size_t turn) {
    const auto at = at_sizes(*context_, general, sizes_of(general.symbols.names.size(), turn));
    if (!at) return false;
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < at->inputs.size(); ++i)
      inputs.push_back(random_tensor(*context_, at->inputs[i], seed_ + 17 * turn + 1, i));
    const auto before = types_of(*context_, at->before, at->inputs);
    const auto after = types_of(*context_, at->after, at->inputs);
    if (!before || !after) return false;
    const auto left = values_of(evaluator_, at->before, *before, inputs);
    const auto right = values_of(evaluator_, at->after, *after, inputs);
    if (!left || !right) return false;
    for (std::size_t i = 0; i < at->before.outputs.size(); ++i)
      if ((*left)[at->before.outputs[i]].hash() != (*right)[at->after.outputs[i]].hash())
        return false;
    return true;
  }

  std::optional<std::string> write(const General& general, const std::string& name,
                                   const TextOptions& options) {
    return rule_text(*context_, general, name, options);
  }

  /// All inputs have the same type, and no axis, size or dtype is stated.
  bool of_any_rank(const Pair& pair) {
    for (TypeId type : pair.inputs)
      if (type != pair.inputs[0]) return false;
    for (const Form* form : {&pair.before, &pair.after})
      for (const Step& step : form->steps)
        if (!context_->attributes[step.attributes].empty()) return false;
    const auto types = types_of(*context_, pair.before, pair.inputs);
    const auto others = types_of(*context_, pair.after, pair.inputs);
    const auto alike = [&](const auto& all) {
      return all && std::all_of(all->begin(), all->end(),
                                [&](TypeId type) { return type == pair.inputs[0]; });
    };
    return alike(types) && alike(others);
  }

  bool keep(const General& general, std::int64_t before, std::int64_t after, std::size_t seen) {
    Rule rule;
    rule.name = fresh_name(rule_name(*context_, general.pair));
    const bool loops =
        general.pair.after.steps.size() >= general.pair.before.steps.size() && before == after;
    Judged last{false, "its text is not a rule"};
    for (const TextOptions& options : forms_of(general.pair)) {
      const auto text = write(general, rule.name, options);
      if (!text) continue;
      const auto test =
          test_text(*context_, general, rule.name, sizes_of(general.symbols.names.size(), 1),
                    tolerance_of(general.pair), loops);
      last = judge_(*text, rule.name);
      if (!last.holds) continue;
      if (!test || !test_(*text + *test)) {
        last = {false, "its test does not pass"};
        continue;
      }
      rule.text = *text;
      rule.test = *test;
      rule.verdict = last.words;
      accept(general, std::move(rule), before, after, seen);
      return true;
    }
    names_.erase(rule.name);
    ++counts_.unproved;
    ++counts_.reasons[last.words];
    return false;
  }

  void accept(const General& general, Rule rule, std::int64_t before, std::int64_t after,
              std::size_t seen) {
    rule.bytes_before = before;
    rule.bytes_after = after;
    rule.nodes_before = general.pair.before.steps.size();
    rule.nodes_after = general.pair.after.steps.size();
    rule.seen = seen;
    std::vector<std::string> directions{rule.text};
    General back = general;
    std::swap(back.pair.before, back.pair.after);
    if (const auto text = write(back, "back", {})) directions.push_back(*text);
    std::vector<OpId> ops;
    for (const Form* form : {&general.pair.before, &general.pair.after})
      for (const Step& step : form->steps) ops.push_back(step.op);
    earlier_.add(directions, std::move(ops));
    kept.push_back(std::move(rule));
  }

  std::vector<TextOptions> forms_of(const Pair& pair) {
    std::vector<TextOptions> out;
    if (of_any_rank(pair)) out.push_back({true, true, true});
    out.push_back({false, true, true});
    out.push_back({false, true, false});
    out.push_back({false, false, false});
    return out;
  }

  /// Tolerance for the least precise float that occurs.
  std::string tolerance_of(const Pair& pair) {
    std::size_t least = 8;
    const auto types = types_of(*context_, pair.before, pair.inputs);
    for (TypeId type : types.value_or(pair.inputs))
      if (const DType dtype = context_->types[type].dtype; is_float(dtype))
        least = std::min<std::size_t>(least, size_of(dtype));
    return least >= 4 ? "1e-4" : least == 2 ? "0.02" : "0.07";
  }

  std::string fresh_name(const std::string& base) {
    std::string name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

  ContextPtr context_;
  Evaluator evaluator_;
  std::uint64_t seed_;
  const Judge& judge_;
  const TestRun& test_;
  Derivations& earlier_;
  Counts& counts_;
  std::set<std::string> names_;
  std::set<std::size_t> replaced_;  // windows
};

}  // namespace

std::vector<Rule> settle(const ContextPtr& context, std::vector<Candidate> candidates,
                         std::uint64_t seed, const Judge& judge, const TestRun& test,
                         Derivations& earlier, Counts& counts, const StageProgress& progress) {
  counts.pairs = candidates.size();
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::string, std::size_t>> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Pair& pair = candidates[i].pair;
    const std::size_t nodes = pair.before.steps.size() + pair.after.steps.size();
    if (candidates[i].window)  // the cheapest of a window first; those with more outputs cover all
      order.emplace_back(pair.before.steps.size(), kBeyond - pair.before.outputs.size(), i, "", i);
    else  // those with more inputs first; the others are special cases with merged inputs
      order.emplace_back(nodes, kBeyond - pair.inputs.size(), 0, key_of(*context, pair), i);
  }
  std::sort(order.begin(), order.end());
  Settling settling(context, seed, judge, test, earlier, counts);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (progress) progress("settling", i, order.size(), "pairs");
    settling.take(candidates[std::get<4>(order[i])]);
  }
  std::stable_sort(settling.kept.begin(), settling.kept.end(), [](const Rule& a, const Rule& b) {
    return a.bytes_before - a.bytes_after > b.bytes_before - b.bytes_after;
  });
  return std::move(settling.kept);
}

}  // namespace pw::discover
