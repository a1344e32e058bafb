#include "models/decoder_nodes.hpp"

#include <algorithm>

namespace pw {

namespace {

constexpr const char* kGroup = "tp:0";

}  // namespace

DecoderNodes::DecoderNodes(const ContextPtr& context, const FamilyOptions& family_options,
                           const ModelFamily& family, const ModelSizes& family_sizes)
    : NodeMaker(context, std::string(family.name)),
      options(family_options),
      parts(family.parts),
      sizes(family_sizes),
      eps(options.eps.value_or(parts.eps)),
      heads(sizes.heads / options.tp),
      kv_heads(std::max<std::int64_t>(1, sizes.kv_heads / options.tp)),
      turned(parts.latent ? sizes.head / 2 : sizes.head) {
  graph.facts.symbols["n"] = {1, options.max_tokens, 1, "tokens"};
  tokens = context->dims.symbol("n");
  ids = everywhere(graph.add_input("ids", type(DType::i32, {tokens}), InputKind::input));
  positions =
      everywhere(graph.add_input("positions", type(DType::i64, {tokens}), InputKind::input));
  if (parts.position_offset < 0)
    cos_sin = everywhere(graph.add_input(
        "cos_sin", type(DType::bf16, dims({options.positions, turned})), InputKind::buffer));
}

std::string DecoderNodes::group_of_ranks() const { return options.tp > 1 ? kGroup : ""; }

ValueId DecoderNodes::everywhere(ValueId input) {
  if (options.tp > 1) graph.declare_replicated(input, kGroup);
  return input;
}

ValueId DecoderNodes::norm_weight(const std::string& name, std::int64_t width) {
  const ValueId w = everywhere(weight(name + "_w", DType::bf16, {width}));
  if (parts.norm != NormKind::rms_plus_one) return w;
  const ValueId wide = call("cast", {w}, {{"dtype", DType::f32}}, {name + "_w32"});
  return call("add", {wide, constant(1.0, DType::f64, name + "_one")}, {}, {name + "_w1"});
}

ValueId DecoderNodes::constant(double value, DType dtype, const std::string& name) {
  return call("constant", {}, {{"value", value}, {"dtype", dtype}}, {name});
}

ValueId DecoderNodes::reduced(ValueId x, const std::string& name) {
  if (options.tp == 1) return x;
  return call("all_reduce", {x}, {{"group", std::string(kGroup)}}, {name});
}

Values DecoderNodes::split(ValueId x, const Shape& widths, std::vector<std::string> names) {
  return calls("split", {x}, {{"dim", std::int64_t{1}}, {"sizes", widths}}, std::move(names));
}

ValueId DecoderNodes::scattered(ValueId x, ValueId from, std::int64_t axis, std::int64_t start,
                                std::int64_t end, const char* name) {
  return call("slice_scatter", {x, from}, {{"dim", axis}, {"start", start}, {"end", end}}, {name});
}

ValueId DecoderNodes::part(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t end,
                           const char* name) {
  return call("slice", {x}, {{"dim", axis}, {"start", start}, {"end", end}}, {name});
}

ValueId DecoderNodes::in_heads(ValueId x, std::int64_t count, std::int64_t width,
                               const std::string& name) {
  return call("reshape", {x}, {{"shape", rows(count, width)}}, {name});
}

ValueId DecoderNodes::flat_rows(ValueId x, std::int64_t width, const std::string& name) {
  return call("reshape", {x}, {{"shape", Shape{tokens, dim(width)}}}, {name});
}

ValueId DecoderNodes::transposed(ValueId x, const std::string& name) {
  return call("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}, {name});
}

ValueId DecoderNodes::one_element(ValueId x, const std::string& name) {
  return call("reshape", {x}, {{"shape", dims({1})}}, {name});
}

}  // namespace pw
