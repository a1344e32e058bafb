#include "dsl/natives.hpp"

#include <array>
#include <limits>
#include <utility>

#include "base/try.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

bool is_of(const Attribute& value, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::int_:
    case AttributeKind::axis: return std::holds_alternative<std::int64_t>(value);
    case AttributeKind::float_:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    case AttributeKind::bool_: return std::holds_alternative<bool>(value);
    case AttributeKind::str: return std::holds_alternative<std::string>(value);
    case AttributeKind::dtype: return std::holds_alternative<DType>(value);
    case AttributeKind::ints:
    case AttributeKind::dims: return std::holds_alternative<std::vector<DimId>>(value);
    case AttributeKind::floats: return std::holds_alternative<std::vector<double>>(value);
    case AttributeKind::strs: return std::holds_alternative<std::vector<std::string>>(value);
  }
  return false;
}

Status fits(std::span<const Attribute> arguments, const std::vector<AttributeKind>& kinds) {
  if (arguments.size() != kinds.size())
    return fail({}, "PW0394",
                "it takes " + std::to_string(kinds.size()) + " arguments, here are " +
                    std::to_string(arguments.size()));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (is_of(arguments[i], kinds[i])) continue;
    const std::string which = "argument " + std::to_string(i + 1);
    if (std::holds_alternative<DimId>(arguments[i]))
      return fail({}, "PW0334", which + " is a dim that is not a number here");
    return fail({}, "PW0394", which + " is not of kind " + in_ticks(name(kinds[i])));
  }
  return {};
}

/// Returns whether attention can quantise its own result, by the kind of quantisation: the op has a
/// static scale and a dtype of its result, and no scales of blocks.
Result<Attribute> fused_output_quant(std::span<const Attribute> arguments) {
  const auto& kind = std::get<std::string>(arguments[1]);
  if (kind == "fp8_static") return Attribute(true);
  if (kind == "fp8_group" || kind == "fp8_token" || kind == "nvfp4") return Attribute(false);
  return Attribute(None{});
}

/// Returns the number of tokens from which sequence parallelism pays: a step then holds as many
/// bytes of hidden states a rank as the device needs to hide the two collectives that replace one.
/// Never for rows that are too short or an unmeasured device. Arguments: hidden size, ranks,
/// capability times ten, dtype; elements of two bytes without a dtype.
Result<Attribute> min_tokens(std::span<const Attribute> arguments) {
  struct Threshold {
    std::int64_t capability, hidden, megabytes;
  };
  constexpr std::array<Threshold, 2> kThresholds{{{90, 8192, 8}, {100, 8192, 32}}};
  constexpr std::int64_t kNever = std::int64_t{1} << 40, kTwoBytes = 2;
  const std::int64_t hidden = std::get<std::int64_t>(arguments[0]);
  const std::int64_t ranks = std::get<std::int64_t>(arguments[1]);
  const std::int64_t capability = std::get<std::int64_t>(arguments[2]);
  const std::int64_t element =
      arguments.size() > 3 ? size_of(std::get<DType>(arguments[3])) : kTwoBytes;
  for (const Threshold& t : kThresholds) {
    if (t.capability != capability || hidden < t.hidden || ranks < 1) continue;
    return Attribute((t.megabytes << 20) * ranks / (hidden * element));
  }
  return Attribute(kNever);
}

}  // namespace

void bind_native(Context& context, const std::string& name, std::vector<AttributeKind> kinds,
                 Native function) {
  context.natives.try_emplace(name,
                              [kinds = std::move(kinds), function = std::move(function)](
                                  std::span<const Attribute> arguments) -> Result<Attribute> {
                                PW_TRY(fits(arguments, kinds));
                                return function(arguments);
                              });
}

void bind_library_natives(Context& context) {
  using K = AttributeKind;
  bind_native(context, "fused_output_quant", {K::str, K::str}, fused_output_quant);
  context.natives.try_emplace("min_tokens", [](std::span<const Attribute> arguments) {
    std::vector<K> kinds{K::int_, K::int_, K::int_};
    if (arguments.size() > kinds.size()) kinds.push_back(K::dtype);
    const auto fit = fits(arguments, kinds);
    return fit ? min_tokens(arguments) : Result<Attribute>(tl::unexpected(fit.error()));
  });
}

}  // namespace pw
