// Records a loop's body as a whole step and one more kernel, and reads the tokens that it recorded.
//
// Invariant: the tables of a pass are those that the host would write for a single step, since the
// step that began reserved the pages of all passes. A sequence that ended is a padding row.
#include "cuda/step_loop.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "base/try.hpp"
#include "codegen/rowprogram/cxx.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {
namespace {

constexpr int kPassThreads = 64;
enum : std::int64_t { kPasses, kLimit, kCancel, kEndCount, kStateWords };

/// Sets the condition of a loop: whether another pass follows. The emulator's handle is an address.
constexpr std::string_view kGoOn = R"(#ifndef PW_GO_ON
#define PW_GO_ON
#if defined(__CUDA_ARCH__)
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
PW_FUNCTION void pw_go_on(long long handle, bool on) {
  cudaGraphSetConditional((unsigned long long)handle, on ? 1u : 0u);
}
#else
PW_FUNCTION void pw_go_on(long long handle, bool on) { *(unsigned*)handle = on ? 1u : 0u; }
#endif
#endif
)";

/// One block. `seen` is the number of keys that a row has seen; 0: padding, or an ended sequence.
constexpr std::string_view kPassEnd = R"(  PW_SHARED(int, running, {threads});
  const int t = (int)threadIdx.x;
  const long long pass = pw_load(state, {passes}), limit = pw_load(state, {limit});
  const long long count = pw_load(state, {end_count});
  const bool cancelled = pw_load(state, {cancel}) != 0;
  int live = 0;
  for (long long row = t; row < rows; row += {threads}) {{
    const long long seen = pw_load(sees, row);
    const long long token = pw_load(tokens, row);
    pw_store(record, pass * rows + row, seen == 0 ? -1 : token);
    if (seen == 0) continue;
    bool ends = false;
    for (long long i = 0; i < count; ++i) ends = ends || pw_load(end_tokens, i) == token;
    if (ends) {{
      pw_store(sees, row, 0);
      pw_store(slots, row, -1);
{zeros}    }} else if (pass + 1 < limit) {{
      const long long page = pw_load(pages, pw_load(starts, row) + seen / {page});
      pw_store(slots, row, page * {page} + seen % {page});
      pw_store(sees, row, seen + 1);
      live = 1;
    }}
  }}
  pw_put(running, t, live);
  __syncthreads();
  if (t != 0) return;
  for (int i = 1; i < {threads}; ++i) live = pw_at(running, i) != 0 ? 1 : live;
  pw_store(state, {passes}, pass + 1);
  pw_go_on(handle, live != 0 && !cancelled);
)";

}  // namespace

Kernel pass_end_kernel(Context& context, DimId rows, std::int64_t page_tokens,
                       const std::vector<DType>& continued) {
  const TypeId row = context.types.get(DType::i64, {rows});
  WrittenKernel text;
  text.op = "end of a pass";
  text.rows = rows;
  text.threads = kPassThreads;
  text.rows_per_block = 1 << 30;  // one block
  text.why = "a page table determines the next places";
  for (const char* name : {"tokens", "end_tokens", "starts", "pages"})
    text.add_pointer(context, row, name, false);
  for (const char* name : {"slots", "sees", "record", "state"})
    text.add_pointer(context, row, name, true);
  std::string zeros;
  for (std::size_t i = 0; i < continued.size(); ++i) {
    const std::string name = fmt::format("next_{}", i);
    text.add_pointer(context, context.types.get(continued[i], {rows}), name, true);
    zeros += fmt::format("      pw_store({}, row, 0);\n", name);
  }
  text.results = 4 + continued.size();
  text.signature += "long long rows, long long handle";
  text.body = fmt::format(
      kPassEnd, fmt::arg("threads", kPassThreads), fmt::arg("passes", std::int64_t{kPasses}),
      fmt::arg("limit", std::int64_t{kLimit}), fmt::arg("cancel", std::int64_t{kCancel}),
      fmt::arg("end_count", std::int64_t{kEndCount}), fmt::arg("page", page_tokens),
      fmt::arg("zeros", zeros));
  Kernel out = written(text);
  out.source = fmt::format("{}{}", kGoOn, out.source);
  out.params.emplace_back();  // the handle
  return out;
}

std::vector<ValueId> StepLoop::continued() const {
  std::vector<ValueId> out;
  for (ValueId input : task_.source.written_inputs())
    if (task_.continues(input)) out.push_back(input);
  return out;
}

std::string StepLoop::why_not() const {
  const Graph& graph = task_.source;
  const Context& context = graph.context();
  const auto per_row = [&](ValueId v) {
    const auto& type = context.types[graph.type(v)];
    return type.shape.size() == 1 && !context.dims.value(type.shape[0]);
  };
  if (!task_.captures_steps()) return "no whole steps are captured";
  if (!graphs_.breaks().empty()) return "the host runs " + graphs_.breaks();
  if (pages_.empty()) return "no attention keeps keys and values on the device";
  if (pieces_.reads_valid()) return "a kernel reads the number of valid tokens";
  if (graph.returned_count() == 0 || !per_row(graph.outputs()[0]) ||
      context.types[graph.type(graph.outputs()[0])].dtype != DType::i64)
    return "the first output is not a token for each row";
  for (ValueId input : graph.written_inputs()) {
    if (task_.stays(input)) return fmt::format("a step writes {}", graph.value_name(input));
    if (task_.continues(input) && !per_row(input))
      return fmt::format("{} has several numbers for each row", graph.value_name(input));
  }
  if (continued().empty()) return "the graph does not write its next inputs";
  return {};
}

void StepLoop::refuse(const std::string& why) {
  reason_ = why;
  log_.note("steps are launched one by one: " + why);
}

Status StepLoop::prepare() {
  const std::int64_t steps = task_.options.steps_in_launch;
  if (steps <= 0) return {};
  if (const std::string why = why_not(); !why.empty()) {
    refuse(why);
    return {};
  }
  const Graph& graph = task_.source;
  Context& context = graph.context();
  std::vector<DType> dtypes;
  for (ValueId input : continued()) dtypes.push_back(context.types[graph.type(input)].dtype);
  const DimId rows = context.types[graph.type(graph.outputs()[0])].shape[0];
  kernel_ = pass_end_kernel(context, rows, pages_.page_tokens(), dtypes);
  PW_TRY(task_.driver.load({&*kernel_, 1}));
  constexpr std::int64_t kWord = sizeof(std::int64_t);
  state_ = PW_TRY(memory_.allocate(kStateWords * kWord, "state of loops"));
  ends_ = PW_TRY(memory_.allocate(std::int64_t{kMostEnds} * kWord, "state of loops"));
  record_ = PW_TRY(memory_.allocate(steps * pieces_.most_rows() * kWord, "tokens of loops"));
  return {};
}

Result<LaunchNode> StepLoop::pass_end(std::int64_t size) const {
  const Symbols symbols = symbols_at(task_.plan, size);
  const DeviceTensor tokens = PW_TRY(memory_.tensor(task_.source.outputs()[0], symbols));
  const std::int64_t rows = tokens.extents[0];
  const DeviceTables tables = pages_.tables(rows);
  LaunchNode out;
  out.name = kernel_->name;
  out.reads = {tokens, numbers(ends_, kMostEnds), tables.starts, tables.pages};
  out.writes = {tables.slots, tables.seen, numbers(record_, task_.options.steps_in_launch * rows),
                numbers(state_, kStateWords)};
  for (ValueId input : continued()) out.writes.push_back(PW_TRY(memory_.tensor(input, symbols)));
  out.params = {rows, 0};
  return out;
}

Status StepLoop::capture() {
  if (!kernel_) return {};
  std::set<std::int64_t> known;
  for (const Capture& planned : task_.plan.captures) {
    const std::int64_t size = planned.key.tokens;
    if (planned.mode != DispatchMode::full || !known.insert(size).second) continue;
    auto end = PW_TRY(pass_end(size));
    auto graph = PW_TRY(recorder_.record_loop(size, planned.key.query, std::move(end)));
    const std::size_t nodes = graph.nodes.size();
    auto made = task_.driver.instantiate(std::move(graph));
    if (!made) {
      ++log_.counters.failed_captures;
      refuse(made.error().front().message);
      continue;
    }
    ++log_.counters.loops;
    ++log_.counters.executables;
    log_.counters.graph_nodes += nodes;
    loops_[size] = {std::move(*made), graphs_.hash_of_step()};
  }
  return {};
}

std::int64_t StepLoop::passes(const Step& step, const GenerationLimits& limits,
                              const RunOptions& options) const {
  const bool ones = std::all_of(step.sequences.begin(), step.sequences.end(),
                                [](const Sequence& s) { return s.new_tokens == 1; });
  const bool may = ones && step.cache != nullptr && options.hook == nullptr && kernel_ &&
                   limits.ends.size() <= kMostEnds;
  return may ? std::min(limits.steps, task_.options.steps_in_launch) : 0;
}

bool StepLoop::ready(std::int64_t size) const {
  const auto found = loops_.find(size);
  return found != loops_.end() && found->second.addresses == graphs_.hash_of_step();
}

Result<ChosenTokens> StepLoop::run(std::int64_t size, std::size_t rows,
                                   const GenerationLimits& limits) {
  Driver& driver = task_.driver;
  const std::int64_t steps = std::min(limits.steps, task_.options.steps_in_launch);
  const auto bytes = [](const std::vector<std::int64_t>& words) {
    return static_cast<std::int64_t>(words.size() * sizeof(std::int64_t));
  };
  std::vector<std::int64_t> state(kStateWords);
  state[kLimit] = steps;
  state[kEndCount] = static_cast<std::int64_t>(limits.ends.size());
  PW_TRY(driver.write(state_, state.data(), bytes(state)));
  if (cancelled_) PW_TRY(cancel());  // since ready()
  if (!limits.ends.empty()) PW_TRY(driver.write(ends_, limits.ends.data(), bytes(limits.ends)));
  PW_TRY(loops_.at(size).executable->replay());
  PW_TRY(driver.read(state.data(), state_, bytes(state)));
  ChosenTokens out;
  out.steps = state[kPasses];
  out.chosen.resize(rows);
  const std::int64_t all =
      PW_TRY(memory_.tensor(task_.source.outputs()[0], symbols_at(task_.plan, size))).extents[0];
  std::vector<std::int64_t> record(static_cast<std::size_t>(out.steps * all));
  PW_TRY(driver.read(record.data(), record_, bytes(record)));
  for (std::size_t i = 0; i < record.size(); ++i) {
    const std::size_t row = i % static_cast<std::size_t>(all);
    if (row < rows && record[i] >= 0) out.chosen[row].push_back(record[i]);
  }
  ++log_.counters.loop_replays;
  log_.counters.looped_steps += static_cast<std::size_t>(out.steps);
  return out;
}

Status StepLoop::cancel() {
  cancelled_ = true;
  if (!kernel_) return {};
  return task_.driver.signal(state_ + static_cast<Address>(kCancel * sizeof(std::int64_t)), 1);
}

}  // namespace pw::cuda
