#include "splitter/modes.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace pw {
namespace {

constexpr std::array<std::string_view, 5> kNames{"none", "piecewise", "full", "full_decode_only",
                                                 "full_and_piecewise"};

/// The op of a step that allows the least.
struct Weakest {
  const Op* op = nullptr;  ///< null where every piece is captured
  Capturable allows = Capturable::always;
  bool lacks_kernel = false;
};

/// Returns what an op allows. An op with a body that splits only by request is captured as in any
/// other piece.
Capturable allowed(const Op& op) {
  const bool plain =
      op.has_body() && !op.traits.splitting && !op.traits.effect && !op.traits.collective;
  return plain ? Capturable::always : op.traits.capturable;
}

Weakest weakest(const StitchedGraph& pieces, const Graph& source) {
  Weakest least;
  const OpTable& ops = source.context().ops;
  for (const Piece& piece : pieces.pieces) {
    if (piece.capturable()) continue;
    if (!piece.splitting) {
      const Op& op = ops[ops.find(piece.host_op)];
      return {&op, Capturable::never, !op.traits.splitting};
    }
    for (const NodeId n : piece.nodes) {
      const Op& op = source.op_of(n);
      if (op.is_literal()) continue;  // a literal's copy
      if (least.op == nullptr || allowed(op) < least.allows) least = {&op, allowed(op)};
    }
  }
  return least;
}

std::string limits(const Weakest& least) {
  const Op& op = *least.op;
  if (least.lacks_kernel) return fmt::format("op {} has no kernel", op.name);
  if (op.imported) return fmt::format("op {} is unknown", op.name);
  switch (op.traits.capturable) {
    case Capturable::never: return fmt::format("op {} is not declared capturable", op.name);
    case Capturable::decode:
      return fmt::format("op {} is capturable only with one new token per sequence", op.name);
    case Capturable::uniform:
      return fmt::format(
          "op {} is capturable only with the same number of new tokens for every sequence",
          op.name);
    case Capturable::always: break;
  }
  return "";
}

}  // namespace

std::string_view name(CaptureMode mode) { return kNames[static_cast<std::size_t>(mode)]; }

std::optional<CaptureMode> capture_mode_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<CaptureMode>(found - kNames.begin());
}

bool captures_pieces(CaptureMode mode) {
  return mode == CaptureMode::piecewise || mode == CaptureMode::full_and_piecewise;
}

bool captures_decodes_whole(CaptureMode mode) {
  return mode == CaptureMode::full_decode_only || mode == CaptureMode::full_and_piecewise;
}

ModeChoice allowed_mode(CaptureMode wanted, const StitchedGraph& pieces, const Graph& source,
                        std::int64_t speculative_tokens) {
  const Weakest least = weakest(pieces, source);
  const Capturable most = least.allows;
  const bool decodes = most >= (speculative_tokens > 0 ? Capturable::uniform : Capturable::decode);
  const bool has_pieces = pieces.capturable() > 0;
  const auto lowered = [&](CaptureMode mode, const std::string& why) {
    return ModeChoice{mode, fmt::format("{} is not possible: {}", name(wanted), why)};
  };
  const std::string no_pieces =
      pieces.pieces.size() == 1 && !pieces.pieces[PieceId(0)].splitting && !has_pieces
          ? limits(least)
          : "every piece has a splitting op, an op without a kernel, or an op that must not be "
            "captured";
  if (wanted == CaptureMode::none) return {};
  if (wanted == CaptureMode::full && most == Capturable::always) return {wanted, ""};
  if (wanted == CaptureMode::piecewise || !decodes) {
    if (!has_pieces) return lowered(CaptureMode::none, no_pieces);
    if (wanted == CaptureMode::piecewise) return {wanted, ""};
    return lowered(CaptureMode::piecewise, limits(least));
  }
  if (wanted == CaptureMode::full_decode_only) return {wanted, ""};
  if (wanted == CaptureMode::full)
    return lowered(has_pieces ? CaptureMode::full_and_piecewise : CaptureMode::full_decode_only,
                   limits(least));
  if (!has_pieces) return lowered(CaptureMode::full_decode_only, no_pieces);
  return {wanted, ""};
}

}  // namespace pw
