#include "dsl/build/split_items.hpp"

#include <algorithm>

#include "dsl/check/call.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostSizes = 100'000;

void check_when(const RuleSet& set, const Expr& when, Diagnostics& out) {
  visit_scalar(when, Place::guard, [&](const Occurrence& o) {
    if (o.place == Place::function || dtype_named(o.name) ||
        set.params.contains(std::string(o.name)))
      return;
    std::vector<std::string> names;
    for (const auto& [name, param] : set.params) names.push_back(name);
    out.push_back(error_at(o.span, "PW0415", "no param is called " + in_ticks(o.name),
                           did_you_mean(o.name, names, "`when` may read only params")));
  });
}

void add_sizes(const ast::Capture& capture, const ast::Capture::Sizes& sizes,
               std::vector<std::int64_t>& all, Diagnostics& out) {
  if (sizes.first < 1 || sizes.step < 1 || sizes.last < sizes.first) {
    out.push_back(error_at(capture.span, "PW0451",
                           "capture sizes must ascend from at least 1 in steps of at least 1",
                           "write `8..256 by 8`"));
    return;
  }
  if ((sizes.last - sizes.first) / sizes.step >= kMostSizes) {
    out.push_back(error_at(capture.span, "PW0452",
                           "more than " + std::to_string(kMostSizes) + " capture sizes"));
    return;
  }
  for (std::int64_t n = sizes.first; n <= sizes.last; n += sizes.step) all.push_back(n);
}

}  // namespace

void build_splits(const Program& program, RuleSet& set, Diagnostics& out) {
  for (const ast::Split* item : program.splits) {
    SplitRule split;
    split.name = item->name;
    for (const SplitRule& other : set.splits) {
      if (other.name == item->name)
        out.push_back(error_at(item->span, "PW0401",
                               "split " + in_ticks(item->name) + " is declared twice",
                               "rename one of them"));
    }
    for (const ast::Split::At& at : item->at) {
      SplitRule::At built;
      for (const auto& [name, span] : at.ops) {
        const OpId op = set.context->ops.find(name);
        if (op.valid())
          built.ops.push_back(op);
        else
          out.push_back(unknown_op(*set.context, name, span));
      }
      for (const Expr& when : at.when) check_when(set, when, out);
      built.when = at.when;
      split.at.push_back(std::move(built));
    }
    set.splits.push_back(std::move(split));
  }
}

void build_capture(const Program& program, RuleSet& set, Diagnostics& out) {
  if (program.captures.empty()) return;
  const ast::Capture& capture = *program.captures.front();
  CaptureDefaults& defaults = set.capture;
  for (const ast::Capture::Sizes& sizes : capture.sizes)
    add_sizes(capture, sizes, defaults.sizes, out);
  std::sort(defaults.sizes.begin(), defaults.sizes.end());
  defaults.sizes.erase(std::unique(defaults.sizes.begin(), defaults.sizes.end()),
                       defaults.sizes.end());
  defaults.mode = capture.mode;
  const std::vector<std::string> modes{"none", "piecewise", "full", "full_decode_only",
                                       "full_and_piecewise"};
  if (!capture.mode.empty() && std::find(modes.begin(), modes.end(), capture.mode) == modes.end())
    out.push_back(error_at(
        capture.span, "PW0453", "unknown capture mode " + in_ticks(capture.mode),
        did_you_mean(capture.mode, modes,
                     "the modes are none, piecewise, full, full_decode_only, full_and_piecewise")));
}

}  // namespace pw
