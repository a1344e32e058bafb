#include "kernel_reports/quality.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/kernel.hpp"
#include "backends/program.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/device/machine.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kMostArgument = std::int64_t{1} << 50;  // of an argument

bool is_result(const Kernel& kernel, std::size_t argument) {
  return argument + kernel.results >= kernel.arguments.size();
}

std::optional<std::int64_t> argument_bytes(const Context& context, TypeId type,
                                           const Symbols& symbols) {
  auto extents = extents_of(context, type, symbols, [] { return std::string("a kernel"); });
  if (!extents) return std::nullopt;
  const std::int64_t bytes =
      DeviceTensor{context.types[type].dtype, std::move(*extents), 0}.bytes();
  return bytes > kMostArgument ? std::nullopt : std::optional(bytes);
}

/// Returns true if an argument grows with the rows.
bool grows(const Kernel& kernel, const Context& context, std::size_t argument) {
  const Shape& shape = context.types[kernel.arguments[argument]].shape;
  return std::any_of(shape.begin(), shape.end(), [&](DimId d) { return !context.dims.value(d); });
}

/// Elements of an argument in all dims that are known.
std::int64_t width_of(const Kernel& kernel, const Context& context, std::size_t argument) {
  std::int64_t out = 1;
  for (DimId d : context.types[kernel.arguments[argument]].shape)
    out *= context.dims.value(d).value_or(1);
  return out;
}

/// Returns true if an argument has one value for each row, or for each group of a row; or a few at
/// all.
bool is_scalar(const Kernel& kernel, const Context& context, std::size_t argument) {
  constexpr std::int64_t kGroup = 32;  // elements that have a scale in common, at least
  constexpr std::int64_t kFew = 8;
  const std::int64_t width = width_of(kernel, context, argument);
  if (!grows(kernel, context, argument)) return width < kFew;
  std::int64_t widest = 1;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
    if (grows(kernel, context, i)) widest = std::max(widest, width_of(kernel, context, i));
  return width * kGroup <= widest;
}

std::string name_of(const Kernel& kernel, const Context& context, std::size_t argument) {
  return fmt::format("p{} ({})", argument, context.types.print(kernel.arguments[argument]));
}

/// Why an argument is moved by less than 128 bits, or more than once.
std::string narrow_reason(const ElementAccess* element, std::size_t size) {
  return element != nullptr ? element->why
                            : fmt::format("8 neighbouring elements have {} bytes", 8 * size);
}
std::string again_reason(const ElementAccess* element, const ArgumentTraffic& a) {
  if (element != nullptr) return "columns that are moved one by one are not kept";
  return a.by_row ? "other threads have it in a later phase, or threads without a pass read along"
                  : "rows share it, and the caches hold it";
}

void judge_accesses(Quality& q, const Kernel& kernel, const Context& context) {
  for (const ArgumentTraffic& a : q.traffic->arguments) {
    if (a.scalar) continue;
    const auto size =
        static_cast<std::size_t>(size_of(context.types[kernel.arguments[a.argument]].dtype));
    const std::string what = name_of(kernel, context, a.argument);
    const std::string_view done = a.result ? "written" : "read";
    const auto found = std::find_if(
        q.elements.begin(), q.elements.end(),
        [&](const ElementAccess& e) { return e.argument == a.argument && e.store == a.result; });
    const ElementAccess* element = found == q.elements.end() ? nullptr : &*found;
    if (a.accesses.bytes() != a.accesses.times[4] * 16)
      q.shortcomings.push_back(fmt::format("{} is {} by less than 128 bits: {}", what, done,
                                           narrow_reason(element, size)));
    if (a.passes > 1)
      q.shortcomings.push_back(
          fmt::format("{} is {} {:.3g} times: {}", what, done, a.passes, again_reason(element, a)));
  }
}

void judge(Quality& q, const Kernel& kernel, const Context& context) {
  if (!q.error.empty()) q.shortcomings.push_back(q.error);
  if (q.usage && (q.usage->spills() || q.usage->stack > 0))
    q.shortcomings.push_back(fmt::format("{} bytes of stack, {} spilled", q.usage->stack,
                                         q.usage->spill_stores + q.usage->spill_loads));
  if (q.traffic)
    judge_accesses(q, kernel, context);
  else
    q.shortcomings.emplace_back("its accesses are not known beforehand");
}

Quality of_target(const KernelReport& report, const TargetReport& target,
                  const Disassembler& disassembler) {
  const Kernel& k = report.kernel;
  Quality q;
  q.kernel = k.name;
  q.op = k.op;
  q.arch = target.arch;
  q.error = target.error;
  q.threads = k.threads;
  q.rows_per_block = k.rows_per_block;
  q.column_blocks = k.column_blocks;
  q.team = k.team;
  q.elements = k.elements;
  const Machine* machine = machine_of(target.arch);
  if (!target.cubin) return q;
  q.usage = target.cubin->usage;
  q.shared_bytes = target.cubin->shared_bytes() + k.shared_bytes;
  if (machine != nullptr) {
    q.resident = resident_blocks(*machine, k.threads, q.usage->registers, q.shared_bytes);
    const int warps = (k.threads + 31) / 32;
    q.occupancy = static_cast<double>(q.resident) * warps * 32 / machine->threads;
  }
  if (!disassembler.present()) return q;
  auto text = disassembler.disassemble(target.cubin->bytes);
  if (text)
    q.sass = parse_sass(*text);
  else
    q.error = text.error().front().message;
  return q;
}

}  // namespace

double LaunchTraffic::wide_share() const {
  std::int64_t wide = 0, all = 0;
  for (const ArgumentTraffic& a : arguments) {
    if (a.scalar) continue;
    wide += a.accesses.times[4] * 16;
    all += a.accesses.bytes();
  }
  return all == 0 ? 1 : static_cast<double>(wide) / static_cast<double>(all);
}

std::optional<LaunchTraffic> traffic_of(const Kernel& kernel, const Context& context,
                                        const Symbols& symbols) {
  if (!kernel.accesses) return std::nullopt;
  std::vector<std::int64_t> params;
  for (DimId d : kernel.params) {
    const auto value = context.dims.evaluate(d, symbols);
    if (!value) return std::nullopt;
    params.push_back(*value);
  }
  const auto counts = count_accesses(*kernel.accesses, kernel.arguments.size(), params);
  if (!counts) return std::nullopt;
  LaunchTraffic out;
  out.rows = params.front();
  out.accesses = counts->total;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const auto bytes = argument_bytes(context, kernel.arguments[i], symbols);
    if (!bytes) return std::nullopt;
    ArgumentTraffic a{
        i, is_result(kernel, i),         grows(kernel, context, i), counts->arguments[i], *bytes,
        0, is_scalar(kernel, context, i)};
    const std::int64_t touched = a.accesses.bytes();
    const std::int64_t once = std::min(*bytes, touched);
    const std::int64_t each =
        a.by_row ? *bytes : std::min(*bytes * std::max<std::int64_t>(out.rows, 1), touched);
    a.passes = each == 0 ? 0 : static_cast<double>(touched) / static_cast<double>(each);
    out.least += once;
    out.moved += a.by_row ? touched : once;
    out.arguments.push_back(a);
  }
  return out;
}

std::vector<Quality> quality_of(const KernelReport& report, const Context& context,
                                const Symbols& symbols, const Disassembler& disassembler) {
  const auto traffic = traffic_of(report.kernel, context, symbols);
  std::vector<Quality> out;
  for (const TargetReport& target : report.targets) {
    Quality q = of_target(report, target, disassembler);
    q.traffic = traffic;
    if (const Machine* machine = machine_of(target.arch); machine != nullptr && traffic)
      q.seconds = static_cast<double>(traffic->least) / machine->bandwidth;
    judge(q, report.kernel, context);
    out.push_back(std::move(q));
  }
  return out;
}

}  // namespace pw::cuda
