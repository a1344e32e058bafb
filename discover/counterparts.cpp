#include "discover/counterparts.hpp"

#include <algorithm>
#include <set>

#include "discover/bank.hpp"

namespace pw::discover {
namespace {

constexpr std::size_t kMostTried = 400000;  // graphs of the window's ops

class Counterparts {
 public:
  Counterparts(const ContextPtr& context, Evaluator& evaluator, const Window& window,
               std::uint64_t seed, std::size_t& tried)
      : context_(context), evaluator_(evaluator), window_(window), seed_(seed), tried_(tried) {}

  std::vector<Form> run() {
    if (!learn_targets()) return {};
    for (const std::string& name : context_->ops.names()) try_op(context_->ops.find(name));
    try_small_graphs();
    std::stable_sort(out_.begin(), out_.end(),
                     [](const Form& a, const Form& b) { return a.steps.size() < b.steps.size(); });
    return std::move(out_);
  }

 private:
  bool learn_targets() {
    const Pair& pair = window_.pair;
    const auto types = types_of(*context_, pair.before, pair.inputs);
    if (!types) return false;
    for (std::size_t i = 0; i < pair.inputs.size(); ++i)
      inputs_.push_back(random_tensor(*context_, pair.inputs[i], seed_, i));
    const auto values = values_of(evaluator_, pair.before, *types, inputs_);
    if (!values) return false;
    for (std::size_t output : pair.before.outputs)
      targets_.push_back(combine((*values)[output].hash(), (*types)[output].index));
    for (const Step& step : pair.before.steps)
      for (const auto& [name, value] : context_->attributes[step.attributes])
        given_.emplace(context_->strings.text(name), value);
    return true;
  }

  void keep(Form form) {
    Pair pair = window_.pair;
    pair.after = std::move(form);
    if (seen_.insert(key_of(*context_, pair)).second) out_.push_back(std::move(pair.after));
  }

  // ---- one op of the library

  void try_op(OpId id) {
    const Op& op = context_->ops[id];
    if (!op.has_body() || op.traits.effect || op.imported) return;
    if (op.operands.size() < inputs_.size() ||
        (!op.operands.empty() && op.operands.back().variadic))
      return;
    std::vector<std::size_t> operands;
    place(id, operands, 0);
  }

  /// Uses each input once; optional operands may be absent.
  void place(OpId id, std::vector<std::size_t>& operands, std::size_t placed) {
    const Op& op = context_->ops[id];
    if (operands.size() == op.operands.size()) {
      if (placed == inputs_.size())
        for (const AttributeList& list : lists(op)) check(id, operands, list);
      return;
    }
    const std::size_t left = op.operands.size() - operands.size();
    if (left < inputs_.size() - placed) return;
    for (std::size_t input = 0; input < inputs_.size(); ++input) {
      if (std::find(operands.begin(), operands.end(), input) != operands.end()) continue;
      if (op.traits.commutative && operands.size() == 1 && operands[0] != kAbsent &&
          input < operands[0])
        continue;
      operands.push_back(input);
      place(id, operands, placed + 1);
      operands.pop_back();
    }
    if (!op.operands[operands.size()].optional) return;
    operands.push_back(kAbsent);
    place(id, operands, placed);
    operands.pop_back();
  }

  /// Attributes equal to the window's of the same name, otherwise their defaults; tries both values
  /// of flags.
  [[nodiscard]] std::vector<AttributeList> lists(const Op& op) const {
    std::vector<AttributeList> out{{}};
    for (const AttributeDecl& attribute : op.attributes) {
      const auto given = given_.find(attribute.name);
      const NameId name = context_->strings.intern(attribute.name);
      std::vector<Attribute> values;
      if (given != given_.end())
        values.push_back(given->second);
      else if (attribute.kind == AttributeKind::bool_ && attribute.default_value)
        values = {*attribute.default_value, other(*attribute.default_value)};
      else
        continue;
      std::vector<AttributeList> next;
      for (const Attribute& value : values)
        for (AttributeList list : out) {
          list.emplace_back(name, value);
          next.push_back(std::move(list));
        }
      out = std::move(next);
    }
    return out;
  }

  static Attribute other(const Attribute& flag) {
    const bool* value = std::get_if<bool>(&flag);
    return !(value && *value);
  }

  void check(OpId id, const std::vector<std::size_t>& operands, const AttributeList& given) {
    const Op& op = context_->ops[id];
    std::vector<TypeId> types;
    std::vector<const Tensor*> tensors;
    for (std::size_t operand : operands) {
      types.push_back(operand == kAbsent ? TypeId() : window_.pair.inputs[operand]);
      tensors.push_back(operand == kAbsent ? nullptr : &inputs_[operand]);
    }
    const auto attributes = complete_attributes(*context_, op, given, types);
    if (!attributes) return;
    const auto results = infer_types(*context_, id, types, *attributes);
    if (!results || results->empty()) return;
    ++tried_;
    const auto values = evaluator_.run(id, tensors, types, *attributes, *results);
    if (!values) return;
    std::vector<std::uint64_t> made;
    for (std::size_t i = 0; i < values->size(); ++i)
      made.push_back(combine((*values)[i].hash(), (*results)[i].index));
    Form form{{{id, operands, *attributes, values->size()}}, {}};
    for (std::uint64_t target : targets_) {
      const auto found = std::find(made.begin(), made.end(), target);
      if (found == made.end()) return;
      form.outputs.push_back(inputs_.size() + static_cast<std::size_t>(found - made.begin()));
    }
    if (result_of_flag(form)) return;
    keep(std::move(form));
  }

  /// Returns true if the same op on the same operands was kept with other flags.
  [[nodiscard]] bool result_of_flag(const Form& form) const {
    return std::any_of(out_.begin(), out_.end(), [&](const Form& other) {
      return other.steps.size() == 1 && other.steps[0].op == form.steps[0].op &&
             other.outputs == form.outputs;
    });
  }

  // ---- small graphs

  [[nodiscard]] Vocabulary vocabulary() const {
    Vocabulary out;
    std::set<OpId> ops;
    for (const Step& step : window_.pair.before.steps) ops.insert(step.op);
    for (const Primitive primitive : {Primitive::cat, Primitive::split})
      if (const OpId op = context_->ops.find(primitive); op.valid()) ops.insert(op);
    for (OpId op : ops) {
      AttributeList given;
      for (const AttributeDecl& attribute : context_->ops[op].attributes)
        if (const auto value = given_.find(attribute.name); value != given_.end() &&
                                                            attribute.kind != AttributeKind::axis &&
                                                            attribute.kind != AttributeKind::dims)
          given.emplace_back(context_->strings.intern(attribute.name), value->second);
      out.choices.push_back({op, std::move(given)});
    }
    out.variadic = 3;
    add_sums(out);
    return out;
  }

  /// Concatenations of two or three sizes, and the splits in the window.
  void add_sums(Vocabulary& out) const {
    std::set<std::int64_t> sizes;
    for (const auto& [size, number] : window_.real) sizes.insert(size);
    std::map<std::int64_t, std::set<std::vector<std::int64_t>>> sums;
    for (const auto& [size, parts] : window_.parts) sums[size].insert(parts);
    for (std::int64_t a : sizes)
      for (std::int64_t b : sizes) {
        sums[a + b].insert({a, b});
        for (std::int64_t c : sizes) sums[a + b + c].insert({a, b, c});
      }
    for (const auto& [size, parts] : sums) out.parts[size].assign(parts.begin(), parts.end());
  }

  void try_small_graphs() {
    const Vocabulary words = vocabulary();
    Bank bank(context_, evaluator_, words, window_.pair.inputs, seed_);
    const Bank::Found found = [&](const Made& node, const std::vector<std::uint32_t>&) {
      if (const auto outputs = bank.covering(targets_, node)) keep(bank.form(*outputs, &node));
      return bank.tried() < kMostTried;
    };
    for (std::size_t nodes = 1; nodes <= kMostNodes; ++nodes)
      bank.grow(nodes, nodes == kMostNodes, found);
    tried_ += bank.tried();
  }

  ContextPtr context_;
  Evaluator& evaluator_;
  const Window& window_;
  std::uint64_t seed_;
  std::size_t& tried_;
  std::vector<Tensor> inputs_;
  std::vector<std::uint64_t> targets_;
  std::map<std::string, Attribute, std::less<>> given_;
  std::set<std::string> seen_;
  std::vector<Form> out_;
};

}  // namespace

std::vector<Form> counterparts(const ContextPtr& context, Evaluator& evaluator,
                               const Window& window, std::uint64_t seed, std::size_t& tried) {
  return Counterparts(context, evaluator, window, seed, tried).run();
}

}  // namespace pw::discover
