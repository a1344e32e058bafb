#include "splitter/dispatch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "splitter/plan.hpp"

namespace pw {
namespace {

bool contains(const std::vector<DispatchKey>& keys, const DispatchKey& key) {
  return std::binary_search(keys.begin(), keys.end(), key);
}

}  // namespace

std::string_view name(DispatchMode mode) {
  switch (mode) {
    case DispatchMode::none: return "none";
    case DispatchMode::piecewise: return "piecewise";
    case DispatchMode::full: return "full";
  }
  return "";
}

std::string print(const DispatchKey& key) {
  std::string out = key.tokens == 0 ? "static" : counted(key.tokens, "token");
  if (key.requests > 0) out += fmt::format(", {}", counted(key.requests, "request"));
  if (key.query > 0) out += fmt::format(" of {}", key.query);
  if (key.loras > 0) out += fmt::format(", {}", counted(key.loras, "adapter"));
  return out;
}

StepShape shape_of(std::span<const std::int64_t> new_tokens, std::int64_t loras) {
  StepShape shape;
  shape.requests = static_cast<std::int64_t>(new_tokens.size());
  shape.loras = loras;
  for (const std::int64_t n : new_tokens) shape.tokens += n;
  if (!new_tokens.empty() && std::all_of(new_tokens.begin(), new_tokens.end(),
                                         [&](std::int64_t n) { return n == new_tokens.front(); }))
    shape.query = new_tokens.front();
  return shape;
}

Dispatcher::Dispatcher(const Plan& plan)
    : is_static_(plan.tokens.empty()),
      mode_is_none_(plan.mode == pw::name(CaptureMode::none)),
      max_tokens_(plan.max_tokens),
      max_requests_(plan.max_requests),
      decode_query_(1 + plan.speculative_tokens),
      eager_multiple_(plan.eager_multiple),
      sizes_(plan.capture),
      loras_(plan.loras) {
  for (const Capture& capture : plan.captures)
    (capture.mode == DispatchMode::full ? full_ : piecewise_).push_back(capture.key);
  std::sort(full_.begin(), full_.end());
  std::sort(piecewise_.begin(), piecewise_.end());
}

Dispatch Dispatcher::eagerly(std::int64_t tokens, DispatchReason reason) const {
  Dispatch out;
  out.key.tokens = is_static_ ? 0 : round_up(tokens, eager_multiple_);
  out.padding = is_static_ ? 0 : out.key.tokens - tokens;
  out.reason = reason;
  return out;
}

Dispatch Dispatcher::dispatch(const StepShape& step) const {
  const auto refuse = [&](DispatchReason reason) { return eagerly(step.tokens, reason); };
  if (!is_static_ && step.tokens < 1) return refuse(DispatchReason::no_tokens);
  if (!is_static_ && step.tokens > max_tokens_) return refuse(DispatchReason::too_many);
  if (full_.empty() && piecewise_.empty()) return refuse(DispatchReason::nothing);
  const std::int64_t size = is_static_ ? 0 : sizes_.pad(step.tokens);
  if (size < 0) return refuse(DispatchReason::above_largest);
  const auto room = std::lower_bound(loras_.begin(), loras_.end(), step.loras);
  if (room == loras_.end()) return refuse(DispatchReason::loras);

  const std::int64_t padding = is_static_ ? 0 : size - step.tokens;
  const bool decode = step.query == decode_query_ && step.requests * step.query == step.tokens;
  auto why = DispatchReason::captured;
  if (!full_.empty()) {
    const DispatchKey uniform{size, size / decode_query_, decode_query_, *room};
    if (decode && contains(full_, uniform)) return {DispatchMode::full, uniform, padding, why};
    const DispatchKey mixed{size, std::min(size, max_requests_), 0, *room};
    if (contains(full_, mixed) && (is_static_ || step.requests <= mixed.requests))
      return {DispatchMode::full, mixed, padding, why};
    const bool only_decodes = full_.back().query > 0;
    why = only_decodes && !decode ? DispatchReason::differ : DispatchReason::requests;
  }
  const DispatchKey relaxed{size, 0, 0, *room};
  if (contains(piecewise_, relaxed)) return {DispatchMode::piecewise, relaxed, padding, why};
  return refuse(why);
}

std::string Dispatcher::explain(const StepShape& step, const Dispatch& found, bool captures) const {
  const std::string_view made = captures ? "captured" : "planned";
  std::string why;
  switch (found.reason) {
    case DispatchReason::captured: break;
    case DispatchReason::no_tokens: return "the step has no tokens";
    case DispatchReason::too_many:
      return fmt::format("{} tokens exceed the plan's maximum of {}", step.tokens, max_tokens_);
    case DispatchReason::nothing:
      return mode_is_none_ ? "capture mode `none` captures nothing"
                           : fmt::format("no size is {}", made);
    case DispatchReason::above_largest:
      return fmt::format("above the largest {} size, {}", made,
                         sizes_.sizes.empty() ? 0 : sizes_.sizes.back());
    case DispatchReason::loras:
      return fmt::format("{} adapters are in use, but no {} graph has room for more than {}",
                         step.loras, made, loras_.empty() ? 0 : loras_.back());
    case DispatchReason::differ:
      why = decode_query_ == 1
                ? fmt::format("only steps with one new token per sequence are {} whole", made)
                : fmt::format("only steps with {} new tokens per sequence are {} whole",
                              decode_query_, made);
      break;
    case DispatchReason::requests:
      why = fmt::format("no whole graph has room for {} sequences in {}", step.requests,
                        counted(step.tokens, "token"));
      break;
  }
  if (found.mode == DispatchMode::none) return why;
  const std::string size =
      is_static_ ? "the graph is static"
                 : fmt::format("{} {} size", found.padding == 0 ? "a" : "the next", made);
  return why.empty() || !captures ? size : size + "; " + why;
}

std::vector<Capture> captures_of(const Plan& plan) {
  const auto mode = capture_mode_named(plan.mode).value_or(CaptureMode::none);
  std::vector<Capture> out;
  if (mode == CaptureMode::none) return out;
  std::vector<std::int64_t> sizes(plan.capture.sizes.rbegin(), plan.capture.sizes.rend());
  if (plan.tokens.empty()) sizes = {0};
  const std::vector<std::int64_t> loras(plan.loras.rbegin(), plan.loras.rend());
  const std::int64_t query = 1 + plan.speculative_tokens;
  const auto add = [&](DispatchMode of, std::int64_t size, std::int64_t requests, std::int64_t q) {
    for (const std::int64_t room : loras)
      out.push_back({of, {size, requests, q, room}, 0, 0, 0, 0});
  };
  if (captures_pieces(mode))
    for (const std::int64_t size : sizes) add(DispatchMode::piecewise, size, 0, 0);
  if (captures_decodes_whole(mode))
    for (const std::int64_t size : sizes)
      if (size > 0 && size % query == 0 && size / query <= plan.max_requests)
        add(DispatchMode::full, size, size / query, query);
  if (mode == CaptureMode::full)
    for (const std::int64_t size : sizes)
      add(DispatchMode::full, size, std::min(size, plan.max_requests), 0);
  return out;
}

}  // namespace pw
