#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/try.hpp"
#include "graph/foreign.hpp"
#include "graph/graph_format.hpp"
#include "import/fx/call_importer.hpp"
#include "import/fx/module_path.hpp"
#include "import/onnx/call.hpp"
#include "import/onnx/examples.hpp"
#include "import/onnx/export.hpp"
#include "import/onnx/fold.hpp"
#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

constexpr std::int64_t kNewestOpset = 28;  // whose changes the lowerings know
constexpr std::size_t kMostNodes = std::size_t{1} << 20;
constexpr int kDeepestFunction = 64;
// Limit for nodes from inlined functions: bytes of names and attributes, plus a constant for each
// node.
constexpr std::size_t kNodeBytes = 512, kMostInlined = std::size_t{48} << 20, kInlinedTimes = 8;
// Numbers that are calculated while importing, of all nodes.
constexpr std::size_t kMostFolded = std::size_t{1} << 20;
constexpr std::size_t kMostListed = std::size_t{1}
                                    << 16;  // numbers of an attribute of an opaque op

/// Returns the approximate bytes of a copy of the node.
std::size_t bytes_of(const OnnxNode& node) {
  std::size_t out = kNodeBytes + node.name.size() + node.op.size();
  for (const auto* names : {&node.inputs, &node.outputs})
    for (const std::string& name : *names) out += sizeof name + name.size();
  for (const OnnxAttribute& a : node.attributes) {
    out += sizeof a + a.name.size() + (a.text ? a.text->size() : 0) +
           (a.reals.size() + a.integers.size()) * sizeof(std::int64_t);
    for (const std::string& text : a.texts) out += sizeof text + text.size();
    if (a.tensor)
      out += (a.tensor->floats.size() + a.tensor->integers.size() + a.tensor->doubles.size()) *
                 sizeof(std::int64_t) +
             (a.tensor->raw ? a.tensor->raw->size() : 0);
  }
  return out;
}

bool is_standard(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

/// Returns a plain word for an arbitrary name in a file.
std::string word_of(std::string_view text) {
  std::string out = as_name(text);
  if (out.empty() || is_digit(out[0])) out.insert(0, 1, '_');
  return out;
}

/// Returns `onnx.Relu`, or `com.microsoft.Gelu`.
std::string target_of(const OnnxNode& node) {
  if (is_standard(node.domain)) return "onnx." + word_of(node.op);
  std::string out;
  std::string_view rest = node.domain;
  for (std::size_t dot = 0; dot != std::string_view::npos;) {
    dot = rest.find('.');
    out += word_of(rest.substr(0, dot)) + ".";
    if (dot != std::string_view::npos) rest.remove_prefix(dot + 1);
  }
  return out + word_of(node.op);
}

bool is_random(std::string_view op) {
  static constexpr std::string_view kRandom[] = {
      "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
      "Bernoulli",    "Multinomial",      "Dropout"};
  return std::find(std::begin(kRandom), std::end(kRandom), op) != std::end(kRandom);
}

std::optional<std::int64_t> version_of(std::string_view domain, const OpsetVersions& opsets) {
  for (const auto& [name, version] : opsets)
    if (name == domain || (is_standard(name) && is_standard(domain))) return version;
  return std::nullopt;
}

std::string base_of(const OnnxNode& n) {
  for (const std::string& name : n.outputs)
    if (!name.empty()) return name;
  return n.op;
}

/// Types of inputs in the notation of the dump importer, with a symbol for each parameter of dims.
class InputTypes {
 public:
  explicit InputTypes(FxReport& report) : report_(report) {}

  std::string text(const OnnxValue& value) {
    const std::optional<DType> dtype = value.tensor ? dtype_of(value.element) : std::nullopt;
    if (!dtype)
      report_.notes.push_back(
          fmt::format("`{}` is {}: its type stays unknown", value.name,
                      value.tensor ? "of " + element_name(value.element) : "not a tensor"));
    if (!dtype || !value.shape) return "?";
    std::string out(pw::name(*dtype));
    out += "[";
    for (std::size_t i = 0; i < value.shape->size(); ++i)
      out += (i > 0 ? ", " : "") + dim((*value.shape)[i], fmt::format("{}_{}", value.name, i));
    return out + "]";
  }

 private:
  std::string dim(const OnnxDim& dim, const std::string& unnamed) {
    if (dim.extent && *dim.extent >= 0) return std::to_string(*dim.extent);
    const std::string& given = dim.parameter.empty() ? unnamed : dim.parameter;
    if (const auto found = symbols_.find(given); found != symbols_.end()) return found->second;
    std::string word = word_of(given);
    while (dtype_named(word) || !taken_.insert(word).second) word += "_";
    return symbols_.emplace(given, word).first->second;
  }
  FxReport& report_;
  std::map<std::string, std::string> symbols_;
  std::set<std::string> taken_;
};

/// Values visible to the nodes of a graph, or of a function.
struct NodeScope {
  std::map<std::string, ModelValue, std::less<>> values;
  const OpsetVersions* opsets = nullptr;
  std::string prefix;                                 ///< prefix of the names of its local values
  std::map<std::string, std::string> outer;           ///< names of its outputs at the call
  const std::vector<OnnxAttribute>* given = nullptr;  ///< of the function that is called
  const std::vector<OnnxAttribute>* defaults = nullptr;
  int depth = 0;

  [[nodiscard]] std::string name_of(const std::string& value) const {
    const auto found = outer.find(value);
    return found != outer.end() ? found->second : prefix + value;
  }
};

/// Resolves attributes in a function that refer to those of the call; one that the call omits is
/// omitted.
void resolve_references(OnnxNode& n, const NodeScope& scope) {
  std::vector<OnnxAttribute> out;
  for (OnnxAttribute& a : n.attributes) {
    if (a.reference.empty()) {
      out.push_back(std::move(a));
      continue;
    }
    for (const auto* list : {scope.given, scope.defaults}) {
      if (list == nullptr) continue;
      const auto found = std::find_if(list->begin(), list->end(), [&](const OnnxAttribute& g) {
        return g.name == a.reference;
      });
      if (found == list->end()) continue;
      out.push_back(*found);
      out.back().name = a.name;
      break;
    }
  }
  n.attributes = std::move(out);
}

class OnnxImporter {
 public:
  /// Creates an importer. `bytes`: the size of the model's file.
  OnnxImporter(const ContextPtr& context, const OnnxModel& model, std::size_t bytes,
               const FxOptions& options)
      : context_(*context),
        model_(model),
        options_(options),
        inlined_left_(kMostInlined + kInlinedTimes * bytes),
        function_(inputs_of(model)),
        to_(context, options_, function_),
        constants_(to_) {
    const bool absolute = !options.file.empty() && options.file[0] == '/';
    const std::filesystem::path path((absolute ? "" : "./") + options.file);
    if (options.file != "-") files_.folder = path.parent_path().string();
    for (const OnnxFunction& f : model.functions) functions_[{f.domain, f.name, f.overload}] = &f;
  }

  Result<FxImport> run() {
    PW_TRY(check_opsets(model_.opsets));
    if (model_.graph.sparse)
      return fail(error_in(options_.file, "PW0524",
                           "the graph has sparse initialisers, which are not supported"));
    PW_TRY(to_.begin());
    NodeScope scope;
    scope.opsets = &model_.opsets;
    PW_TRY(read_values(scope));
    for (const OnnxNode& n : model_.graph.nodes) PW_TRY(node(n, scope));
    auto outputs = PW_TRY(outputs_of(scope));
    Result<FxImport> out = to_.finish(outputs);
    if (!out) return out;
    out->graph.contents = std::make_shared<const InputContents>(constants_.contents());
    out->report.form = fmt::format("ONNX, opset {}", version_of("", model_.opsets).value_or(0));
    out->report.notes.insert(out->report.notes.end(), notes_.notes.begin(), notes_.notes.end());
    out->report.guessed.clear();
    return out;
  }

 private:
  // ---- before the nodes

  fx::Function inputs_of(const OnnxModel& model) {
    fx::Function out;
    InputTypes types(notes_);
    std::set<std::string> constants;
    for (const OnnxTensor& t : model.graph.initializers) constants.insert(t.name);
    for (const OnnxValue& input : model.graph.inputs) {
      if (constants.contains(input.name)) continue;
      out.parameters.push_back({input.name, {}, types.text(input), {}});
      options_.kinds.emplace(input.name, InputKind::input);
    }
    return out;
  }

  Status check_opsets(const OpsetVersions& opsets) const {
    const std::int64_t version = version_of("", opsets).value_or(1);
    if (version >= 1 && version <= kNewestOpset) return {};
    return fail(
        error_in(options_.file, "PW0523",
                 fmt::format("the model uses opset {}, but only opsets 1 to {} are supported",
                             version, kNewestOpset),
                 "convert it, for example with onnx.version_converter"));
  }

  Status read_values(NodeScope& scope) {
    for (const fx::Parameter& p : function_.parameters)
      if (const fx::Value* value = to_.input(p.name)) scope.values[p.name] = {p.name, *value};
    for (const OnnxTensor& t : model_.graph.initializers) {
      if (scope.values.contains(t.name))
        return fail(error_in(options_.file, "PW0522", "duplicate initialiser `" + t.name + "`"));
      auto contents = PW_TRY(contents_of(t, files_, options_.file));
      scope.values[t.name] = {t.name, {}, std::move(contents)};
    }
    for (const auto* list : {&model_.graph.values, &model_.graph.outputs})
      for (const OnnxValue& v : *list) stated_.emplace(v.name, &v);
    return {};
  }

  Result<std::vector<std::pair<std::string, fx::Value>>> outputs_of(NodeScope& scope) {
    std::vector<std::pair<std::string, fx::Value>> out;
    for (const OnnxValue& output : model_.graph.outputs) {
      const auto found = scope.values.find(output.name);
      if (found == scope.values.end())
        return fail(
            error_in(options_.file, "PW0522", "no node computes the output `" + output.name + "`"));
      try {
        out.emplace_back(output.name, constants_.tensor(found->second));
      } catch (const GiveUp& why) {
        return fail(error_in(fmt::format("{}, output `{}`", options_.file, output.name), "PW0524",
                             why.reason));
      }
      PW_TRY(check_output(output, out.back().second));
    }
    return out;
  }

  /// Checks that the model's statement of an output agrees with the graph; otherwise one of them is
  /// wrong.
  Status check_output(const OnnxValue& output, const fx::Value& value) const {
    const Type* type = value.kind == fx::Value::Kind::tensor ? to_.type(value) : nullptr;
    const std::optional<DType> dtype = dtype_of(output.element);
    if (type == nullptr || !output.tensor || !dtype) return {};
    bool fits = *dtype == type->dtype;
    if (output.shape && !output.shape->empty())
      fits = fits && output.shape->size() == type->shape.size();
    for (std::size_t i = 0; fits && output.shape && i < output.shape->size(); ++i) {
      const auto extent = context_.dims.value(type->shape[i]);
      const auto stated = (*output.shape)[i].extent;
      fits = !extent || !stated || *stated < 0 || *extent == *stated;
    }
    if (fits) return {};
    return fail(error_in(
        fmt::format("{}, output `{}`", options_.file, output.name), "PW0525",
        fmt::format("the model states {}, but its nodes give {}", InputTypes(ignored_).text(output),
                    context_.types.print(context_.types.get(type->dtype, type->shape)))));
  }

  // ---- nodes

  Status node(const OnnxNode& given, NodeScope& scope) {
    if (++nodes_ > kMostNodes)
      return fail(error_in(options_.file, "PW0524",
                           fmt::format("the model has more than {} nodes", kMostNodes)));
    if (auto fine = count_inlined(given, scope); !fine) return fine;
    OnnxNode n = given;
    resolve_references(n, scope);
    std::vector<ModelValue*> inputs;
    for (const std::string& name : n.inputs) {
      const auto found = scope.values.find(name);
      if (!name.empty() && found == scope.values.end())
        return fail(
            error_in(place_of(n), "PW0522", "no earlier node computes the input `" + name + "`"));
      inputs.push_back(name.empty() ? nullptr : &found->second);
    }
    for (const std::string& name : n.outputs)
      if (!name.empty() && scope.values.contains(name))
        return fail(error_in(place_of(n), "PW0522", "duplicate value `" + name + "`"));
    const auto function = functions_.find({n.domain, n.op, n.overload});
    if (function != functions_.end()) return inlined(*function->second, n, inputs, scope);
    if (scope.depth == 0)
      to_.set_group(n.scopes.empty() ? fx::group_of_node_name(n.name)
                                     : fx::group_of_name_scopes(n.scopes));
    auto results = PW_TRY(results_of(n, inputs, scope));
    for (std::size_t i = 0; i < n.outputs.size() && i < results.size(); ++i)
      bind(n.outputs[i], results[i], scope);
    return {};
  }

  /// Limits inlining: a small file whose functions call each other can expand to any number of
  /// nodes.
  Status count_inlined(const OnnxNode& n, const NodeScope& scope) {
    if (scope.depth == 0) return {};
    const std::size_t bytes = bytes_of(n) + scope.prefix.size() * n.outputs.size();
    if (bytes > inlined_left_)
      return fail(error_in(place_of(n), "PW0524",
                           "inlining the model's functions makes the graph too large",
                           "inline its functions first, for example with onnx.inliner"));
    inlined_left_ -= bytes;
    return {};
  }

  void bind(const std::string& name, ModelValue value, NodeScope& scope) {
    if (name.empty()) return;
    value.name = scope.name_of(name);
    if (value.tensor) to_.name(*value.tensor, value.name);
    scope.values[name] = std::move(value);
  }

  Status inlined(const OnnxFunction& f, const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                 NodeScope& scope) {
    if (scope.depth >= kDeepestFunction)
      return fail(error_in(place_of(n), "PW0524", "functions call each other too deeply"));
    if (inputs.size() > f.inputs.size() || n.outputs.size() > f.outputs.size())
      return fail(
          error_in(place_of(n), "PW0522", "the call has more inputs or outputs than the function"));
    NodeScope inner;
    inner.opsets = f.opsets.empty() ? scope.opsets : &f.opsets;
    inner.depth = scope.depth + 1;
    inner.given = &n.attributes;
    inner.defaults = &f.defaults;
    PW_TRY(check_opsets(*inner.opsets));
    inner.prefix = fmt::format("{}_", scope.name_of(n.outputs.empty() ? n.op : n.outputs.front()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != nullptr) inner.values[f.inputs[i]] = *inputs[i];
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      if (!n.outputs[i].empty()) inner.outer[f.outputs[i]] = scope.name_of(n.outputs[i]);
    for (const OnnxNode& body : f.nodes) {
      OnnxNode known = body;  // an input that the call left out is left out in the body
      for (std::string& name : known.inputs)
        if (!inner.values.contains(name) && std::ranges::find(f.inputs, name) != f.inputs.end())
          name.clear();
      if (auto done = node(known, inner); !done) return done;
    }
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      const auto found = inner.values.find(f.outputs[i]);
      if (n.outputs[i].empty()) continue;
      if (found == inner.values.end())
        return fail(error_in(place_of(n), "PW0522",
                             "the function does not compute `" + f.outputs[i] + "`"));
      bind(n.outputs[i], found->second, scope);
    }
    return {};
  }

  Result<ModelValues> results_of(const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                                 const NodeScope& scope) {
    OnnxNode named = n;
    for (std::string& output : named.outputs)
      if (!output.empty()) output = scope.name_of(output);
    std::string why, unknown;
    const std::int64_t version = version_of(n.domain, *scope.opsets).value_or(1);
    if (is_standard(n.domain))
      if (auto known = folded(named, inputs, version, unknown))
        return ModelValues{{"", {}, {}, std::move(*known)}};
    for (std::int64_t since = version; since >= 0; --since) {
      if (auto out = foreign(named, inputs, since, why)) return std::move(*out);
      if (auto out = lowered(named, inputs, version, since, why)) return std::move(*out);
      if (constants_.made_too_much())
        return fail(
            error_in(place_of(n), "PW0524",
                     fmt::format("the constants of the nodes up to this one exceed {} bytes",
                                 Constants::kMostMadeBytes)));
      if (!why.empty()) break;  // there is a meaning at this version, and it does not apply
    }
    return kept(named, inputs, why.empty() ? unknown : why);
  }

  std::optional<KnownNumbers> folded(const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                                     std::int64_t version, std::string& why) {
    if (folded_ > kMostFolded) return std::nullopt;
    for (const ModelValue* input : inputs)
      if (input != nullptr && input->known) folded_ += input->known->numbers.size();
    try {
      OnnxCall call(to_, constants_, n, inputs, version);
      std::optional<KnownNumbers> out = fold(call);
      if (out) call.check_all_read();
      return out;
    } catch (const GiveUp& gave) {
      why = gave.reason;
    }
    return std::nullopt;
  }

  /// Translates by an item of a rule file: `onnx.Softmax.13` holds from version 13 on,
  /// `onnx.Softmax` before the first of those.
  std::optional<ModelValues> foreign(const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                                     std::int64_t since, std::string& why) {
    const std::string target =
        since == 0 ? target_of(n) : fmt::format("{}.v{}", target_of(n), since);
    if (!context_.foreign || context_.foreign->find(target) == nullptr) return std::nullopt;
    auto arguments = arguments_of(n, inputs, why);
    if (!arguments) return std::nullopt;
    auto done = to_.try_call(target, *arguments, base_of(n));
    if (!done) {
      why = done.error();
      return std::nullopt;
    }
    ModelValues out;
    if (done->kind == fx::Value::Kind::list)
      for (fx::Value& item : done->items) out.push_back({"", std::move(item)});
    else
      out.push_back({"", std::move(*done)});
    return out;
  }

  std::optional<ModelValues> lowered(const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                                     std::int64_t version, std::int64_t since, std::string& why) {
    const Lowering* row = is_standard(n.domain) && since > 0 ? find_lowering(n.op, since) : nullptr;
    if (row == nullptr || row->since != since) return std::nullopt;
    try {
      OnnxCall call(to_, constants_, n, inputs, version);
      ModelValues out = row->lower(call);
      call.check_all_read();
      return out;
    } catch (const GiveUp& gave) {
      why = gave.reason;
    } catch (const std::out_of_range&) {  // of a list that is shorter than an operator's are
      why = "a list of numbers is too short";
    }
    return std::nullopt;
  }

  /// Keeps an op of unknown meaning unchanged.
  Result<ModelValues> kept(const OnnxNode& n, const std::vector<ModelValue*>& inputs,
                           std::string why) {
    auto arguments = arguments_of(n, inputs, why);
    if (!arguments) return fail(error_in(place_of(n), "PW0524", why));
    fx::Outputs wanted;
    for (const std::string& name : n.outputs) wanted.push_back({name, stated_type(name), {}});
    const std::int64_t version = version_of(n.domain, model_.opsets).value_or(0);
    if (why.empty())
      why = fmt::format("no rule file or built-in table defines it at version {}", version);
    auto done = PW_TRY(to_.keep_call(target_of(n), *arguments, wanted, is_random(n.op), why));
    ModelValues out;
    for (fx::Value& item : done.items) out.push_back({"", std::move(item)});
    return out;
  }

  [[nodiscard]] TypeId stated_type(const std::string& name) const {
    const auto found = stated_.find(name);
    if (found == stated_.end() || !found->second->tensor || !found->second->shape)
      return Types::unknown();
    const std::optional<DType> dtype = dtype_of(found->second->element);
    Shape shape;
    for (const OnnxDim& dim : *found->second->shape) {
      if (!dim.extent || *dim.extent < 0) return Types::unknown();
      shape.push_back(context_.dims.constant(*dim.extent));
    }
    return dtype ? context_.types.get(*dtype, shape) : Types::unknown();
  }

  /// Returns inputs by position and attributes by keyword. Nothing if one of them cannot be an
  /// argument of a call.
  std::optional<fx::Arguments> arguments_of(const OnnxNode& n,
                                            const std::vector<ModelValue*>& inputs,
                                            std::string& why) {
    fx::Arguments out;
    try {
      for (ModelValue* input : inputs)
        out.positional.push_back(input == nullptr ? none() : constants_.tensor(*input));
      OnnxCall call(to_, constants_, n, {}, 0);
      for (const OnnxAttribute& a : n.attributes)
        out.keywords.emplace_back(word_of(a.name), attribute_value(a, call));
    } catch (const GiveUp& gave) {
      why = gave.reason;
      return std::nullopt;
    }
    return out;
  }

  fx::Value attribute_value(const OnnxAttribute& a, OnnxCall& call) {
    if (a.other)
      throw GiveUp{"attribute `" + a.name + "` holds a graph or another unsupported value"};
    if (std::max({a.integers.size(), a.reals.size(), a.texts.size()}) > kMostListed)
      throw GiveUp{fmt::format("attribute `{}` has more than {} numbers", a.name, kMostListed)};
    if (a.integer) return call.number(*a.integer);
    if (a.real) return pw::onnx::real(double{*a.real});
    if (a.text) return word(*a.text);
    if (!a.integers.empty()) return call.list(a.integers);
    std::vector<fx::Value> items;
    for (const float value : a.reals) items.push_back(pw::onnx::real(double{value}));
    for (const std::string& value : a.texts) items.push_back(word(value));
    if (!a.tensor) return tensor_list(std::move(items));
    auto contents = contents_of(*a.tensor, files_, options_.file);
    if (!contents || !*contents)
      throw GiveUp{"attribute `" + a.name + "` is an unsupported tensor"};
    return constants_.tensor(*contents, a.name);
  }
  std::string place_of(const OnnxNode& n) const {
    return fmt::format("{}, node `{}` ({})", options_.file, n.name.empty() ? base_of(n) : n.name,
                       n.op);
  }
  Context& context_;
  const OnnxModel& model_;
  FxOptions options_;
  ExternalFiles files_;
  std::size_t inlined_left_, folded_ = 0;
  FxReport notes_;
  mutable FxReport ignored_;
  fx::Function function_;
  fx::CallImporter to_;
  Constants constants_;
  std::map<std::tuple<std::string, std::string, std::string>, const OnnxFunction*> functions_;
  std::map<std::string, const OnnxValue*, std::less<>> stated_;
  std::size_t nodes_ = 0;
};

Result<ReadGraph> read_onnx(const ContextPtr& context, const std::string& bytes,
                            const FxOptions& options) {
  auto model = PW_TRY(read_model(bytes, options.file));
  auto import = PW_TRY(OnnxImporter(context, model, bytes.size(), options).run());
  return ReadGraph{std::move(import.graph), std::move(import.report)};
}

}  // namespace
}  // namespace pw::onnx

namespace pw {

GraphFormat onnx_format() {
  GraphFormat format{"ONNX", onnx::looks_like_onnx, onnx::read_onnx, onnx::example_models};
  format.extension = ".onnx";
  format.write = export_onnx;
  return format;
}

}  // namespace pw
