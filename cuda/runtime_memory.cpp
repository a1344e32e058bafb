#include "cuda/runtime_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "backends/sequences.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "cuda/joined_products.hpp"
#include "cuda/kernels/matmul/streamed_product.hpp"
#include "exec/dispatch.hpp"
#include "splitter/check_plan.hpp"

namespace pw::cuda {

RuntimeMemory::~RuntimeMemory() {
  for (Address block : blocks_) task_.driver.release(block);
}

/// Returns the launches of each piece, and the values that live between them.
Result<std::vector<PieceSchedule>> RuntimeMemory::scratch_schedules() const {
  const Symbols largest = symbols_at(task_.plan, task_.plan.max_tokens);
  const Symbols few = symbols_at(task_.plan, std::min(task_.plan.max_tokens, kFewRows));
  const Context& context = task_.source.context();
  std::vector<PieceSchedule> schedules;
  for (const Piece& piece : task_.stitched.pieces) {
    const PieceProgram& program = pieces_.classes()[piece.piece_class.index].program;
    PieceSchedule& schedule = schedules.emplace_back();
    schedule.launches = std::max<std::size_t>({program.launches.size(), program.few.size(), 1});
    for (const ScratchValue& s : program.scratch) {
      auto extents = extents_of(context, s.type, s.of_few ? few : largest,
                                [&] { return fmt::format("{} at value {}", piece.name, s.name); });
      if (!extents) return forward(extents);
      const DeviceTensor tensor{context.types[s.type].dtype, std::move(*extents), 0};
      schedule.scratch.push_back({s.name, s.first, s.last, tensor.bytes(), 0});
    }
  }
  return schedules;
}

Status RuntimeMemory::lay_out() {
  const auto schedules = PW_TRY(scratch_schedules());
  if (!task_.plan.memory.scratch.empty()) return take_layout(schedules);
  layout_ = PW_TRY(plan_memory(task_.stitched, task_.source,
                               std::max<std::int64_t>(task_.plan.max_tokens, 1), schedules,
                               pieces_.workspace_bytes()));
  return {};
}

/// A plan with scratch places comes from an earlier runtime.
Status RuntimeMemory::take_layout(const std::vector<PieceSchedule>& needed) {
  if (auto done = check_memory(task_.plan, task_.stitched, task_.source); !done) return done;
  for (std::size_t i = 0; i < needed.size(); ++i)
    PW_TRY(check_scratch(PieceId(i), needed[i].scratch));
  if (auto done = check_workspace(); !done) return done;
  layout_ = task_.plan.memory;
  return {};
}

/// Checks that the plan has a place for each value between the launches of a piece.
Status RuntimeMemory::check_scratch(PieceId piece, const std::vector<Scratch>& needed) const {
  const std::vector<Scratch>& planned = task_.plan.memory.scratch[piece.index];
  const auto refuse = [&](const std::string& why) {
    return fail(error_in(
        fmt::format("plan of {} at {}", task_.plan.graph, task_.stitched.pieces[piece].name),
        "PW1256", why, "run without the plan, or with the options it was created with"));
  };
  if (planned.size() != needed.size())
    return refuse(fmt::format("it has places for {} values between launches, but {} need one",
                              planned.size(), needed.size()));
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const Scratch &place = planned[i], &value = needed[i];
    if (place.bytes < value.bytes)
      return refuse(fmt::format("value {} needs {} bytes, but its place has {}", value.name,
                                value.bytes, place.bytes));
    if (place.first > value.first || place.last < value.last)
      return refuse(fmt::format("value {} is needed in launches {}..{}, but alive in {}..{}",
                                value.name, value.first, value.last, place.first, place.last));
  }
  return {};
}

/// Checks that nothing else in the plan is alive in the workspace while a library call runs.
Status RuntimeMemory::check_workspace() const {
  const MemoryPlan& memory = task_.plan.memory;
  const std::int64_t begin = memory.workspace_offset, end = begin + memory.workspace_bytes;
  if (pieces_.workspace_bytes() == 0 || begin == end) return {};
  const auto refuse = [&](const std::string& why) {
    return fail(error_in("plan of " + task_.plan.graph, "PW1256",
                         "the workspace of library calls " + why, "run without the plan"));
  };
  const auto meets = [&](const auto& place) {
    return place.offset < end && begin < place.offset + place.bytes;
  };
  if (begin % 256 != 0) return refuse("is not aligned to 256 bytes");
  for (std::size_t i = 0; i < task_.stitched.pieces.size(); ++i) {
    const PieceProgram& program = pieces_.class_of(PieceId(i)).program;
    for (const auto* launches : {&program.launches, &program.few}) {
      for (std::size_t l = 0; l < launches->size(); ++l) {
        if (!(*launches)[l].product) continue;
        for (const Scratch& s : memory.scratch[i])
          if (s.first <= l && l <= s.last && meets(s)) return refuse("is where " + s.name + " is");
        for (const Slot& s : memory.slots)
          if (s.first <= i && i <= s.last && meets(s)) return refuse("is where " + s.name + " is");
      }
    }
  }
  return {};
}

std::string RuntimeMemory::table() const {
  std::map<std::string, std::pair<std::size_t, std::int64_t>> rows;
  for (const auto& [what, bytes] : requested_) {
    ++rows[what].first;
    rows[what].second += bytes;
  }
  std::string out = "requested so far:";
  for (const auto& [what, row] : rows)
    out += fmt::format("\n  {}: {} bytes in {}", what, row.second, row.first);
  return out;
}

Result<Address> RuntimeMemory::allocate(std::int64_t bytes, const std::string& what) {
  requested_.emplace_back(what, bytes);
  auto address = task_.driver.allocate(bytes);
  if (!address) {
    Diagnostics why = address.error();
    why.front().help = table();
    return tl::unexpected(std::move(why));
  }
  ++log_.counters.allocations;
  blocks_.push_back(*address);
  return address;
}

Status RuntimeMemory::allocate_tensors() {
  address_.assign(task_.source.value_bound(), 0);
  arena_ = PW_TRY(allocate(layout_.arena_bytes, "arena"));
  for (const Slot& slot : layout_.slots)
    address_[slot.value.index] = arena_ + static_cast<Address>(slot.offset);
  PW_TRY(allocate_workspace());
  for (ValueId v : task_.source.inputs())
    if (!task_.stays(v) && !has_no_tensor(task_.source, v)) PW_TRY(allocate_value(v, "inputs"));
  // Literals and views of inputs that cross pieces.
  for (const Piece& piece : task_.stitched.pieces)
    for (ValueId v : piece.outputs)
      if (address_[v.index] == 0) PW_TRY(allocate_value(v, "values outside the arena"));
  if (pieces_.reads_valid()) valid_ = PW_TRY(allocate(sizeof(std::int32_t), "valid tokens"));
  return allocate_zeros();
}

Status RuntimeMemory::allocate_workspace() {
  const std::int64_t bytes = pieces_.workspace_bytes();
  if (bytes <= 0) return {};
  workspace_ = {DType::u8, {bytes}, arena_ + static_cast<Address>(layout_.workspace_offset)};
  if (layout_.workspace_bytes < bytes)  // the plan was made when no call needed a workspace
    workspace_.address = PW_TRY(allocate(bytes, "workspace of library calls"));
  return {};
}

Status RuntimeMemory::allocate_value(ValueId value, const char* what) {
  const DeviceTensor largest = PW_TRY(tensor(value, symbols_at(task_.plan, task_.plan.max_tokens)));
  address_[value.index] = PW_TRY(allocate(largest.bytes(), what));
  return {};
}

Status RuntimeMemory::allocate_literals() {
  for (const CompiledPieces::Class& c : pieces_.classes()) {
    std::vector<Address>& addresses = literals_.emplace_back();
    for (const Tensor& t : c.program.literals) {
      const auto bytes = static_cast<std::int64_t>(t.view().bytes());
      const Address address = PW_TRY(allocate(bytes, "literals"));
      addresses.push_back(address);
      if (auto done = task_.driver.write(address, t.data(), bytes); !done) return done;
    }
  }
  return {};
}

/// Each launch has its own tensor, sized for the most tokens, because launches without shared data
/// may run concurrently.
Status RuntimeMemory::allocate_zeros() {
  constexpr std::int64_t kApart = 256;
  const Symbols largest = symbols_at(task_.plan, task_.plan.max_tokens);
  std::int64_t bytes = 0;
  for (const Piece& piece : task_.stitched.pieces) {
    std::vector<Address>& offsets = zeros_.emplace_back();
    for (const TypeId type : pieces_.classes()[piece.piece_class.index].program.zeros) {
      auto extents = extents_of(task_.source.context(), type, largest, [&] { return piece.name; });
      if (!extents) return forward(extents);
      const DeviceTensor tensor{task_.source.context().types[type].dtype, std::move(*extents), 0};
      offsets.push_back(static_cast<Address>(bytes));
      bytes += round_up(tensor.bytes(), kApart);
    }
  }
  if (bytes == 0) return {};
  auto address = PW_TRY(allocate(bytes, "numbers of pieces of tiles"));
  for (std::vector<Address>& of_piece : zeros_)
    for (Address& at : of_piece) at += address;
  return task_.driver.fill(address, 0, bytes);
}

Status RuntimeMemory::load(Weights& weights) {
  const Symbols symbols = symbols_at(task_.plan, task_.plan.max_tokens);
  for (ValueId v : task_.source.inputs()) {
    if (!task_.stays(v) || has_no_tensor(task_.source, v)) continue;
    auto tensor = weights.tensor(task_.source.value_name(v), symbols, Step{});
    if (!tensor) return forward(tensor);
    const auto bytes = static_cast<std::int64_t>(tensor->view().bytes());
    auto address = PW_TRY(allocate(bytes, "weights"));
    if (const Address old = std::exchange(address_[v.index], address); old != 0) {
      std::erase(blocks_, old);
      task_.driver.release(old);
    }
    if (auto done = task_.driver.write(address, tensor->data(), bytes); !done) return done;
  }
  return {};
}

Status RuntimeMemory::reserve_weights() {
  for (ValueId v : task_.source.inputs())
    if (task_.stays(v) && !has_no_tensor(task_.source, v)) PW_TRY(allocate_value(v, "weights"));
  return {};
}

std::vector<DeviceTensor> RuntimeMemory::weights() const {
  std::vector<DeviceTensor> out;
  for (ValueId v : task_.source.inputs()) {
    if (!task_.stays(v) || has_no_tensor(task_.source, v) || !is_read_whole(task_.source, v))
      continue;
    if (auto weight = tensor(v, {})) out.push_back(std::move(*weight));
  }
  return out;
}

Status RuntimeMemory::poison() { return task_.driver.fill(arena_, kPoison, layout_.arena_bytes); }

Status RuntimeMemory::write_valid(std::int64_t tokens) {
  if (valid_ == 0) return {};
  const auto valid = static_cast<std::int32_t>(tokens);
  return task_.driver.write(valid_, &valid, sizeof valid);
}

Status RuntimeMemory::write(ValueId value, const TensorView& tensor) {
  return task_.driver.write(address_[value.index], tensor.data,
                            static_cast<std::int64_t>(tensor.bytes()));
}

std::uint64_t RuntimeMemory::address_hash(PieceId piece) const {
  std::uint64_t hash = combine(arena_, valid_);
  const Piece& p = task_.stitched.pieces[piece];
  for (const auto* values : {&p.inputs, &p.outputs})
    for (ValueId v : *values) hash = combine(hash, address_[v.index]);
  return hash;
}

Result<DeviceTensor> RuntimeMemory::tensor(ValueId value, const Symbols& symbols) const {
  if (has_no_tensor(task_.source, value)) return DeviceTensor{DType::u8, {0}, 0};
  auto extents = PW_TRY(extents_of(task_.source, value, symbols));
  return DeviceTensor{task_.source.context().types[task_.source.type(value)].dtype,
                      std::move(extents), address_[value.index]};
}

Result<std::vector<DeviceTensor>> RuntimeMemory::tensors(const std::vector<ValueId>& values,
                                                         const Symbols& symbols) const {
  std::vector<DeviceTensor> out;
  for (ValueId v : values) {
    auto t = PW_TRY(tensor(v, symbols));
    out.push_back(std::move(t));
  }
  return out;
}

Address RuntimeMemory::address(PieceId piece, const Place& place) const {
  const Piece& p = task_.stitched.pieces[piece];
  switch (place.kind) {
    case Place::Kind::input: return address_[p.inputs[place.index].index];
    case Place::Kind::output: return address_[p.outputs[place.index].index];
    case Place::Kind::valid: return valid_;
    case Place::Kind::literal: return literals_[p.piece_class.index][place.index];
    case Place::Kind::zero: return zeros_[piece.index][place.index];
    case Place::Kind::slots:
    case Place::Kind::keys:
    case Place::Kind::values: return 0;  // see DeviceAttention
    case Place::Kind::scratch: break;
  }
  return arena_ + static_cast<Address>(layout_.scratch[piece.index][place.index].offset);
}

}  // namespace pw::cuda
