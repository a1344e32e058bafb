// Assembles a kernel from a body, which teams.cpp emits or a WrittenKernel brings: signature,
// launch bounds, and name. The name is a hash of bounds and text, so equal kernels share one name
// and one compiled object.
#include "cuda/kernels/emitter.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/characters.hpp"
#include "base/hash.hpp"
#include "cuda/kernels/expressions.hpp"
#include "cuda/kernels/teams.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kWait = "pw_wait_for_earlier();\n", kPrefetch = "pw_prefetch(";

/// Returns the place of the kernel's first statement: its body follows the parameter list.
std::size_t body_of(const std::string& source) {
  return source.find("{\n", source.find("__global__")) + 2;
}

/// Returns the names in the kernel's parameter list.
std::vector<std::string> parameters_of(const Kernel& kernel) {
  const std::size_t begin = kernel.source.find('(', kernel.source.find(kernel.name)) + 1;
  const std::string list = kernel.source.substr(begin, kernel.source.find(')', begin) - begin);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::size_t name = list.find_last_of(" *", end - 1) + 1;
    out.push_back(list.substr(name, end - name));
    at = end + 1;
  }
  return out;
}

/// Returns the statements after the wait, one for each pointer. The compiler may assume that
/// nothing writes what a `const __restrict__` pointer reads, and could read before the wait. It
/// cannot read through a pointer that does not exist there.
std::string pointers_after_wait(const Kernel& kernel) {
  std::string out;
  const std::vector<std::string> parameters = parameters_of(kernel);
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
    out += fmt::format("{0} = pw_after_wait({0});\n", parameters.at(i));
  return out;
}

}  // namespace

std::string sanitised(std::string_view text) { return as_name(text.substr(0, 64)); }

/// Launch bounds state the block size and the minimum resident blocks, which limits the compiler's
/// registers per thread.
Kernel emit(const rows::RowProgram& program, const Schedule& schedule) {
  Kernel kernel;
  kernel.schedule = schedule;
  kernel.op = program.op;
  kernel.params = program.params;
  kernel.reads_valid = program.valid.has_value();
  std::vector<std::string> signature;
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    const rows::Argument& a = program.arguments[i];
    kernel.arguments.push_back(a.type);
    kernel.results += a.result ? 1 : 0;
    signature.push_back(fmt::format("{}{}* __restrict__ p{}", a.result ? "" : "const ",
                                    storage(program.type(i).dtype), i));
  }
  signature.emplace_back("long long rows");
  for (std::size_t i = 1; i < program.params.size(); ++i)
    signature.push_back(fmt::format("long long d{}", i));
  const std::string text = emit_body(program, kernel);
  const std::string body = fmt::format("({}) {{\n{}}}\n", fmt::join(signature, ", "), text);
  const std::string bounds =
      schedule.resident > 0
          ? fmt::format("__launch_bounds__({}, {})", kernel.threads, schedule.resident)
          : fmt::format("__launch_bounds__({0}, PW_FULL({0}))", kernel.threads);
  kernel.name = fmt::format("k_{:016x}",
                            hash_text(fmt::format("{} {} {}", bounds, kernel.column_blocks, body)));
  kernel.source = fmt::format("// {}\nextern \"C\" __global__ void {} {}{}", sanitised(program.op),
                              bounds, kernel.name, body);
  return kernel;
}

void WrittenKernel::add_pointer(const Context& context, TypeId type, std::string_view name,
                                bool is_written) {
  arguments.push_back(type);
  signature += fmt::format("{}{}* __restrict__ {}, ", is_written ? "" : "const ",
                           rows::cxx::storage(context.types[type].dtype), name);
}

void WrittenKernel::add_by_row(AccessNode access, std::int64_t times) {
  access.times = times;
  access.one_of = std::int64_t{team()} * column_blocks;
  access.live = true;
  accesses.push_back(access);
}

void WrittenKernel::add_by_block(AccessNode access, std::int64_t times) {
  access.times = times;
  access.one_of = std::int64_t{team()} * column_blocks * rows_per_block;
  accesses.push_back(access);
}

Kernel written(const WrittenKernel& text) {
  Kernel kernel;
  kernel.op = text.op;
  kernel.arguments = text.arguments;
  kernel.results = text.results;
  kernel.params = {text.rows};
  kernel.threads = text.threads;
  kernel.rows_per_block = text.rows_per_block;
  kernel.column_blocks = text.column_blocks;
  kernel.schedule.block = text.threads;
  kernel.team = text.team();
  const std::string all = fmt::format("({}) {{\n{}}}\n", text.signature, text.body);
  const std::string bounds = fmt::format("__launch_bounds__({}, {})", text.threads, text.resident);
  kernel.name = fmt::format("k_{:016x}", hash_text(bounds + all));
  kernel.source = fmt::format("// {}\nextern \"C\" __global__ void {} {}{}", sanitised(text.op),
                              bounds, kernel.name, all);
  for (std::size_t i = 0; i < text.arguments.size(); ++i)
    kernel.elements.push_back({i, i + text.results >= text.arguments.size(), text.why});
  if (text.accesses.empty() && !text.by_data) return kernel;
  auto tree = std::make_shared<AccessTree>();
  tree->team = kernel.team;
  tree->rows_per_block = kernel.rows_per_block;
  tree->column_blocks = kernel.column_blocks;
  tree->nodes = text.accesses;
  tree->by_data = text.by_data;
  kernel.accesses = std::move(tree);
  return kernel;
}

namespace {

void rename(Kernel& kernel, std::string_view by) {
  const std::string before = kernel.name;
  kernel.name = fmt::format("k_{:016x}", hash_text(fmt::format("{}{}", before, by)));
  kernel.source.replace(kernel.source.find(before), before.size(), kernel.name);
}

}  // namespace

Kernel exact(Kernel kernel) {
  if (kernel.exact) return kernel;
  kernel.exact = true;
  rename(kernel, "exact");
  return kernel;
}

Kernel waiting(Kernel kernel, const std::vector<ConstantArgument>& constants) {
  if (waits_first(kernel)) return kernel;
  const std::vector<std::string> parameters = parameters_of(kernel);
  std::string before;
  for (const ConstantArgument& constant : constants)
    before += fmt::format("{}{}, {}ll);\n", kPrefetch, parameters.at(constant.argument),
                          std::min(constant.bytes, kMostPrefetched));
  before += kWait;
  before += pointers_after_wait(kernel);
  kernel.prefetched = constants;
  rename(kernel, before);
  kernel.source.insert(body_of(kernel.source), before);
  return kernel;
}

bool waits_first(const Kernel& kernel) {
  const std::string_view source = kernel.source;
  std::size_t at = body_of(kernel.source);
  while (source.substr(at).starts_with(kPrefetch)) at = source.find('\n', at) + 1;
  return source.substr(at).starts_with(kWait) &&
         source.substr(at + kWait.size()).starts_with(pointers_after_wait(kernel));
}

std::string source_file(const Kernel& kernel) {
  return fmt::format("{}\n{}\n{}", prelude(), team_prelude(), kernel.source);
}

}  // namespace pw::cuda
