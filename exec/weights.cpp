#include "exec/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "tensor/array.hpp"
#include "tensor/numerics.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

constexpr double kFp8Deviation = 64;

/// Approximately normal, from the four 16-bit parts of one hash: the sum of four uniforms, scaled
/// to deviation 1.
float normal_at(std::uint64_t key, std::int64_t i) {
  const std::uint64_t h = mix(key + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull);
  const auto sum =
      static_cast<float>((h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48)) -
      131070.0f;
  return sum * (1.7320508f / 65536.0f);
}
std::uint64_t bits_at(std::uint64_t key, std::int64_t i) {
  return mix(key + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull);
}

/// Maps a tensor's rows to random streams: a row that is a token uses its sequence and position, so
/// it has the same contents in every step.
class TokenRows {
 public:
  TokenRows() = default;
  TokenRows(const Step& step, std::int64_t width) : width_(std::max<std::int64_t>(width, 1)) {
    constexpr std::int64_t kLongest = 1 << 24;
    for (const Sequence& s : step.sequences)
      for (std::int64_t i = 0; i < s.new_tokens; ++i) rows_.push_back(s.id * kLongest + s.past + i);
  }
  [[nodiscard]] std::int64_t index(std::int64_t i) const {
    const auto row = static_cast<std::size_t>(i / width_);
    return row < rows_.size() ? rows_[row] * width_ + i % width_ : i;
  }

 private:
  std::vector<std::int64_t> rows_;  // rows other than tokens: each element by its index
  std::int64_t width_ = 1;
};

void fill_normal(const Tensor& tensor, std::uint64_t key, float mean, float deviation,
                 bool positive = false, const TokenRows& rows = {}) {
  const TensorView view = tensor.view();
  parallel_for(view.count(), 1 << 18, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kRun = 1024;
    std::array<float, kRun> run{};
    for (std::int64_t i = begin; i < end; i += kRun) {
      const std::int64_t n = std::min(kRun, end - i);
      for (std::int64_t j = 0; j < n; ++j)
        run[static_cast<std::size_t>(j)] = mean + deviation * normal_at(key, rows.index(i + j));
      for (std::int64_t j = 0; j < n && positive; ++j)
        run[static_cast<std::size_t>(j)] = std::fabs(run[static_cast<std::size_t>(j)]);
      store_run(view.dtype, view.data + i * size_of(view.dtype), 1, n, run.data());
    }
  });
}

/// Row p: cos(p·f_j), then sin(p·f_j), with f_j = 10000^(-2j/width).
void fill_rope(const Tensor& tensor) {
  const TensorView view = tensor.view();
  const std::int64_t width = view.extents.empty() ? 1 : view.extents.back(), half = width / 2;
  const std::int64_t rows = width == 0 ? 0 : view.count() / width;
  for (std::int64_t p = 0; p < rows; ++p) {
    for (std::int64_t j = 0; j < half; ++j) {
      const double angle =
          static_cast<double>(p) *
          std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(width));
      store(view.dtype, view.data, p * width + j, std::cos(angle));
      store(view.dtype, view.data, p * width + half + j, std::sin(angle));
    }
  }
}

void fill_positions(const Tensor& tensor, const Step& step, std::int64_t limit) {
  const TensorView view = tensor.view();
  std::int64_t row = 0;
  for (const Sequence& sequence : step.sequences) {
    for (std::int64_t i = 0; i < sequence.new_tokens && row < view.count(); ++i, ++row) {
      const std::int64_t position = sequence.past + i;
      store(view.dtype, view.data, row,
            static_cast<double>(limit > 0 ? position % limit : position));
    }
  }
}

void fill_indices(const Tensor& tensor, std::uint64_t key, std::int64_t limit,
                  const TokenRows& rows) {
  const TensorView view = tensor.view();
  const auto bound = static_cast<std::uint64_t>(limit > 0 ? limit : 2);
  for (std::int64_t i = 0; i < view.count(); ++i)
    store(view.dtype, view.data, i, static_cast<double>(bits_at(key, rows.index(i)) % bound));
}

/// A number of 31 bits for each sequence, the same in all its rows; otherwise for each element.
void fill_seeds(const Tensor& tensor, std::uint64_t key, const Step& step) {
  constexpr int kDropped = 33;
  const TensorView view = tensor.view();
  std::vector<std::int64_t> ids;
  for (const Sequence& s : step.sequences)
    ids.insert(ids.end(), static_cast<std::size_t>(s.new_tokens), s.id);
  const std::int64_t width = ids.empty() ? 1 : view.count() / view.extents[0];
  for (std::int64_t i = 0; i < view.count(); ++i) {
    const auto row = static_cast<std::size_t>(i / width);
    const std::int64_t id = row < ids.size() ? ids[row] : i;
    store(view.dtype, view.data, i, static_cast<double>(bits_at(key, id) >> kDropped));
  }
}

/// Roles by the operand's name in the op's signature.
std::optional<InputRole> role_of_operand(std::string_view operand) {
  static constexpr std::pair<std::string_view, InputRole> kRoles[] = {
      {"w", InputRole::gain},
      {"s", InputRole::scale},
      {"sa", InputRole::scale},
      {"sb", InputRole::matrix_scale},
      {"bias", InputRole::bias},
      {"cos_sin", InputRole::rope},
      {"positions", InputRole::positions},
      {"ids", InputRole::indices},
      {"seed", InputRole::seed}};
  for (const auto& [name, role] : kRoles) {
    if (name == operand) return role;
  }
  return std::nullopt;
}

bool is_product(Primitive op) {
  return among(op, {Primitive::mm, Primitive::addmm, Primitive::scaled_mm});
}
/// Ops whose result contains the operand's elements unchanged.
bool passes_on(Primitive op) {
  return among(op, {Primitive::transpose, Primitive::reshape, Primitive::detach, Primitive::slice,
                    Primitive::expand, Primitive::cast});
}

const Type* known_type(const Graph& graph, ValueId value) {
  return value.valid() && graph.type(value) != Types::unknown()
             ? &graph.context().types[graph.type(value)]
             : nullptr;
}

struct Found {
  InputRole role;
  DimId size;
};
bool of_integers(InputRole role) {
  return role == InputRole::positions || role == InputRole::indices || role == InputRole::seed;
}
DimId first_dim(const Graph& graph, ValueId value) {
  const Type* type = known_type(graph, value);
  return type != nullptr && !type->shape.empty() ? type->shape[0] : DimId();
}

/// The rows of the table that a node's index operand looks up.
DimId table_rows(const Graph& graph, NodeId node) {
  const Op& op = graph.op_of(node);
  for (std::string_view table : {"table", "cos_sin"}) {
    const int i = op.operand_index(table);
    if (i >= 0) return first_dim(graph, graph.operand(node, static_cast<std::size_t>(i)));
  }
  return {};
}

std::optional<Found> role_at(const Graph& graph, NodeId node, std::size_t operand) {
  const Op& op = graph.op_of(node);
  const std::size_t declared = std::min(operand, op.operands.empty() ? 0 : op.operands.size() - 1);
  const std::string_view name =
      op.operands.empty() ? std::string_view() : std::string_view(op.operands[declared].name);
  if (is_product(op.primitive) && name == "b")
    return Found{InputRole::matrix, first_dim(graph, graph.operand(node, operand))};
  if (is_product(op.primitive) && name == "sb")
    return Found{InputRole::matrix_scale, first_dim(graph, graph.operand(node, 1))};
  if (const auto role = role_of_operand(name)) {
    const bool looks_up = *role == InputRole::positions || *role == InputRole::indices;
    return Found{*role, looks_up ? table_rows(graph, node) : DimId()};
  }
  const Type* type = known_type(graph, graph.operand(node, operand));
  const bool vector = type != nullptr && type->shape.size() <= 1;
  if (op.primitive == Primitive::mul && vector) return Found{InputRole::gain, {}};
  if (op.primitive == Primitive::div && operand == 1) return Found{InputRole::scale, {}};
  return std::nullopt;
}

/// Returns the first use, in depth, that determines the value's role.
std::optional<Found> role_by_use(const Graph& graph, ValueId value, int depth) {
  for (UseId use = graph.first_use(value); use.valid(); use = graph.next_use(use)) {
    const NodeId node = graph.user(use);
    if (auto found = role_at(graph, node, graph.use_operand(use))) return found;
    if (depth > 0 && passes_on(graph.op_of(node).primitive)) {
      if (auto found = role_by_use(graph, graph.result(node), depth - 1)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

Weights::Weights(const Graph& source, std::uint64_t seed, std::int64_t rank,
                 const Replication& replication)
    : context_(source.context_ptr()) {
  const RankGroups groups = stated_groups(source).value_or(RankGroups());
  for (ValueId input : source.inputs()) {
    const std::string input_name(source.value_name(input));
    Use use = use_of(source, input);
    // Contents are equal within each declared group and depend on the group's index.
    const std::int64_t place =
        replication.holds(input_name) ? 0 : replica_of(source.replicated_over(input), rank, groups);
    use.seed = place == 0 ? seed : combine(seed, static_cast<std::uint64_t>(place));
    uses_.emplace(input_name, use);
  }
}

std::vector<Weights> weights_of_ranks(const Graph& source, std::uint64_t seed, std::int64_t ranks,
                                      const Replication& replication) {
  std::vector<Weights> weights;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    weights.emplace_back(source, seed, rank, replication);
  return weights;
}

Weights::Use Weights::use_of(const Graph& graph, ValueId input) const {
  Use use;
  use.type = graph.type(input);
  const Type* type = known_type(graph, input);
  if (type == nullptr) return use;
  use.fixed = std::all_of(type->shape.begin(), type->shape.end(),
                          [&](DimId dim) { return context_->dims.value(dim).has_value(); });
  const auto found = role_by_use(graph, input, 8);
  if (type->dtype == DType::b8) {
    use.role = InputRole::mask;
  } else if (!is_float(type->dtype)) {
    use.role = found && of_integers(found->role) ? found->role : InputRole::indices;
  } else if (found && !of_integers(found->role)) {
    use.role = found->role;
  } else if (graph.input_kind(input) == InputKind::weight && use.fixed) {
    use.role = type->shape.size() < 2 ? InputRole::gain : InputRole::activation;
  }
  if (found) use.size = found->size;
  return use;
}

Tensor Weights::fill(const Use& use, std::string_view input, Extents extents, std::int64_t size,
                     const Step& step) const {
  const std::uint64_t key = combine(use.seed, hash_text(input));
  const Tensor tensor(context_->types[use.type].dtype, std::move(extents));
  const bool fp8 = tensor.dtype() == DType::f8e4m3 || tensor.dtype() == DType::f8e5m2;
  const double fan_in = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(size, 1)));
  const TensorView view = tensor.view();
  const bool of_tokens =
      !use.fixed && step.tokens() > 0 && !view.extents.empty() && view.extents[0] >= step.tokens();
  const TokenRows rows = of_tokens ? TokenRows(step, view.count() / view.extents[0]) : TokenRows();
  switch (use.role) {
    case InputRole::activation:
      fill_normal(tensor, key, 0, fp8 ? static_cast<float>(kFp8Deviation) : 1, false, rows);
      break;
    case InputRole::matrix:
      fill_normal(tensor, key, 0, static_cast<float>(fp8 ? kFp8Deviation : fan_in));
      break;
    case InputRole::matrix_scale: {
      const auto mean = static_cast<float>(fan_in / kFp8Deviation);
      fill_normal(tensor, key, mean, mean * 0.1f, true);
      break;
    }
    case InputRole::scale: fill_normal(tensor, key, 4.5f / 448, 0.4f / 448, true); break;
    case InputRole::gain: fill_normal(tensor, key, 1, 0.1f); break;
    case InputRole::bias: fill_normal(tensor, key, 0, 0.02f); break;
    case InputRole::rope: fill_rope(tensor); break;
    case InputRole::positions: fill_positions(tensor, step, size); break;
    case InputRole::indices: fill_indices(tensor, key, size, rows); break;
    case InputRole::mask: fill_indices(tensor, key, 2, rows); break;
    case InputRole::seed: fill_seeds(tensor, key, of_tokens ? step : Step()); break;
  }
  return tensor;
}

void Weights::give(std::string_view input, Tensor tensor) {
  given_.insert_or_assign(std::string(input), std::move(tensor));
  if (const auto made = made_.find(input); made != made_.end()) made_.erase(made);
}

void Weights::add(std::string_view input, TypeId type, Tensor tensor) {
  Use use;
  use.type = type;
  use.fixed = true;
  uses_.insert_or_assign(std::string(input), use);
  give(input, std::move(tensor));
}

Status Weights::check_files() const {
  for (const MappedFile& file : files_)
    if (auto same = file.check_unchanged(); !same) return same;
  return {};
}

Tensor Weights::kept(const Tensor& tensor) const {
  const bool mapped = std::any_of(files_.begin(), files_.end(),
                                  [&](const MappedFile& file) { return file.maps(tensor.data()); });
  if (!mapped) return tensor;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::memcpy(copy.data(), tensor.data(), tensor.view().bytes());
  return copy;
}

void Weights::keep_last_rows(std::string_view input, const TensorView& written, const Step& step) {
  if (written.extents.empty() || written.extents[0] != step.tokens()) return;
  const std::size_t width = written.bytes() / static_cast<std::size_t>(step.tokens());
  auto& rows = next_[std::string(input)];
  const std::byte* end = written.data;
  for (const Sequence& s : step.sequences) {
    end += static_cast<std::size_t>(s.new_tokens) * width;
    if (s.new_tokens > 0) rows[s.id] = {s.past + s.new_tokens, {end - width, end}};
  }
}

void Weights::put_next_rows(std::string_view input, const TensorView& view,
                            const Step& step) const {
  const auto rows = next_.find(input);
  if (rows == next_.end()) return;
  std::int64_t at = 0;
  for (const Sequence& s : step.sequences) {
    const auto row = rows->second.find(s.id);
    if (row != rows->second.end() && s.new_tokens == 1 && s.past == row->second.past) {
      const std::vector<std::byte>& bytes = row->second.bytes;
      std::memcpy(view.data + at * static_cast<std::int64_t>(bytes.size()), bytes.data(),
                  bytes.size());
    }
    at += s.new_tokens;
  }
}

std::vector<std::string> Weights::write_back(const Graph& graph, const std::vector<Tensor>& outputs,
                                             const Step& step) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i) {
    const ValueId input = graph.written_inputs()[i];
    const auto use = uses_.find(graph.value_name(input));
    if (use == uses_.end()) continue;
    const InputRole role = use->second.role;
    const bool of_tokens = role == InputRole::indices || role == InputRole::positions;
    if (of_tokens && !use->second.fixed)
      keep_last_rows(use->first, outputs[graph.returned_count() + i].view(), step);
    if (graph.input_kind(input) == InputKind::input || !use->second.fixed) continue;
    give(use->first, outputs[graph.returned_count() + i]);
    names.push_back(use->first);
  }
  return names;
}

Result<Tensor> Weights::tensor(std::string_view input, const Symbols& symbols, const Step& step) {
  if (const auto made = made_.find(input); made != made_.end()) return made->second;
  const auto found = uses_.find(input);
  const std::string place = fmt::format("input {}", input);
  if (found == uses_.end())
    return fail(error_in(place, "PW1205", "no graph input with contents has this name"));
  const Use& use = found->second;
  auto extents = extents_of(*context_, use.type, symbols, [&] { return place; });
  if (!extents) return forward(extents);
  if (const auto given = given_.find(input); given != given_.end()) {
    if (given->second.extents() == *extents) return given->second;
    return fail(
        error_in(place, "PW1272",
                 fmt::format("this step needs [{}], but the tensor is [{}]",
                             fmt::join(*extents, ", "), fmt::join(given->second.extents(), ", ")),
                 "run a step with one token per row of the tensor"));
  }
  const std::int64_t size =
      use.size.valid() ? context_->dims.evaluate(use.size, symbols).value_or(0) : 0;
  const Tensor tensor = fill(use, input, std::move(*extents), size, step);
  put_next_rows(input, tensor.view(), step);
  if (use.fixed && use.role != InputRole::positions) made_.emplace(std::string(input), tensor);
  return tensor;
}

}  // namespace pw
