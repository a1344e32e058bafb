#include <algorithm>
#include <tuple>

#include "discover/counterparts.hpp"
#include "discover/weigh.hpp"

namespace pw::discover {
namespace {

constexpr std::size_t kMostOfOne = 3;  // counterparts of a window that are tried

struct Offer {
  Weighed bytes;
  Candidate candidate;
};

/// If the given sizes fail, tries one that an op halves.
std::optional<General> generalised(Context& context, Candidate& candidate) {
  if (auto out = generalised(context, candidate.pair, candidate.parts)) return out;
  for (const auto& [size, number] : candidate.real) {
    if (size % 2 != 0 || number % 2 != 0 || candidate.parts.contains(size)) continue;
    Candidate halved = candidate;
    halved.parts[size] = {size / 2, size / 2};
    halved.real.emplace(size / 2, number / 2);
    if (auto out = generalised(context, halved.pair, halved.parts)) {
      candidate = std::move(halved);
      return out;
    }
  }
  return std::nullopt;
}

/// Sorts the cheapest first.
std::vector<Offer> offers(const ContextPtr& context, const Window& window, std::size_t number,
                          std::vector<Form> forms, Counts& counts) {
  std::vector<Offer> out;
  for (Form& form : forms) {
    Candidate candidate{window.pair, window.parts, window.real, window.seen, number};
    candidate.pair.after = std::move(form);
    const std::optional<General> general = generalised(*context, candidate);
    const auto bytes = general ? weighed(*context, *general, candidate.real) : std::nullopt;
    if (!bytes) {
      ++counts.other_sizes;
      continue;
    }
    const std::tuple before(bytes->before, window.pair.before.steps.size());
    if (std::tuple(bytes->after, candidate.pair.after.steps.size()) >= before) {
      ++counts.dearer;
      continue;
    }
    out.push_back({*bytes, std::move(candidate)});
  }
  std::stable_sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) {
    return std::tuple(a.bytes.after, a.candidate.pair.after.steps.size()) <
           std::tuple(b.bytes.after, b.candidate.pair.after.steps.size());
  });
  if (out.size() > kMostOfOne) out.erase(out.begin() + kMostOfOne, out.end());
  return out;
}

}  // namespace

std::vector<Candidate> replace_windows(const ContextPtr& context, const std::vector<Graph>& graphs,
                                       const Search& search, std::size_t often, Counts& counts,
                                       const StageProgress& progress) {
  std::vector<Candidate> out;
  Evaluator evaluator(context);
  const std::vector<Window> windows = windows_of(graphs, search.nodes, counts);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (progress) progress("searching for equal graphs", i, windows.size(), "windows");
    if (windows[i].seen < often) continue;
    std::vector<Form> forms =
        counterparts(context, evaluator, windows[i], search.seed, counts.graphs);
    for (Offer& offer : offers(context, windows[i], i, std::move(forms), counts))
      out.push_back(std::move(offer.candidate));
  }
  return out;
}

}  // namespace pw::discover
