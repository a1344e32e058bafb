#include "discover/weigh.hpp"

namespace pw::discover {
namespace {

constexpr std::int64_t kNominal = 1024;

}  // namespace

std::optional<Weighed> weighed(Context& context, const General& general,
                               const std::map<std::int64_t, std::int64_t>& real) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t value : general.symbols.values) {
    const auto known = real.find(value);
    sizes.push_back(known == real.end() ? kNominal : known->second);
  }
  const auto at = at_sizes(context, general, sizes);
  const auto before = at ? types_of(context, at->before, at->inputs) : std::nullopt;
  const auto after = at ? types_of(context, at->after, at->inputs) : std::nullopt;
  if (!before || !after) return std::nullopt;
  return Weighed{bytes_of(context, at->before, *before, *at),
                 bytes_of(context, at->after, *after, *at)};
}

}  // namespace pw::discover
