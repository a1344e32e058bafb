#include "kernel_reports/tensor_report.hpp"

#include <fmt/format.h>

#include "cuda/compile.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "cuda/device/machine.hpp"
#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/attention/attention_accesses.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "tensor/kv_cache.hpp"

namespace pw::cuda {
namespace {

class TensorReporter {
 public:
  TensorReporter(const TensorRequest& request, const Disassembler& disassembler)
      : request_(request), disassembler_(disassembler) {}

  void add(const Graph& piece, std::size_t members) {
    Graph graph = piece.compact();
    decompose(graph, [](NodeId, const std::string&) {});
    graph.erase_dead();
    uses_ = members;
    for (const std::string& arch : request_.archs) {
      const TensorMachine* machine = tensor_machine(arch);
      if (machine == nullptr) continue;
      for (const FoundProduct& found : tensor_products_of(graph))
        add_product(graph, found.product, *machine);
      add_attention(graph, *machine);
    }
  }
  std::vector<TensorReport> take() { return std::move(out_); }

 private:
  [[nodiscard]] std::optional<std::int64_t> value_of(const Graph& graph, DimId dim) const {
    return graph.context().dims.evaluate(dim, {{request_.tokens_symbol, request_.tokens}});
  }

  void add_product(const Graph& graph, const TensorProduct& product, const TensorMachine& machine) {
    const auto rows = value_of(graph, product.rows);
    if (!rows) return;
    const std::string arch(machine.arch);
    const auto kernels =
        tensor_product(product, {arch, *rows, {}, request_.schedules}, graph.context());
    if (!kernels) return;
    const ProductShape shape = product.shape(*rows);
    const ProductTime time = product_time(machine, shape, kernels->tile);
    TensorReport& report = begin(kernels->product, arch);
    report.op = product.op;
    report.work = fmt::format("{}x{}x{}", *rows, shape.depth, shape.columns);
    report.tile = described(kernels->tile);
    report.parts = static_cast<int>(divided(shape, kernels->tile).most_pieces);
    report.bound_seconds = product_bound(machine, shape);
    report.seconds = time.seconds;
    report.adding = time.adding;
    report.bound_by = time.bound;
    const ProductFloor floor = product_floor(machine, shape);
    report.floor_seconds = floor.seconds;
    report.floor_by = described(floor);
    const Kernel& kernel = kernels->product;
    const auto accesses = count_accesses(*kernel.accesses, kernel.arguments.size(), {{*rows}});
    if (accesses) report.accesses = accesses->total;
  }

  /// Adds rows for steps with one token a sequence, and for other steps if they use another kernel.
  void add_attention(const Graph& graph, const TensorMachine& machine) {
    const auto kernels =
        attention_kernels(graph, KvCache::kPageTokens, machine.arch, nullptr, request_.query);
    const auto rows = kernels ? value_of(graph, kernels->rows) : std::nullopt;
    if (!rows || !kernels->forms) return;
    const AttentionForm &others = kernels->forms->of(*rows, 0),
                        &decodes = kernels->forms->of(*rows, request_.query);
    const auto add = [&](const AttentionForm& form, std::int64_t query) {
      add_attention(form, machine,
                    typical_work(*rows, query, kernels->heads, kernels->groups, kernels->width));
    };
    add(others, 0);
    if (&decodes != &others) add(decodes, request_.query);
  }

  void add_attention(const AttentionForm& form, const TensorMachine& machine,
                     const AttentionWork& work) {
    const AttentionTime time = attention_time(machine, work, form.tile);
    TensorReport& report = begin(form.kernel, std::string(machine.arch));
    report.op = form.kernel.op;
    report.work = fmt::format("{} of {} after {}, {} heads in {} of {}", work.sequences, work.rows,
                              work.past, work.heads, work.groups, work.width);
    const AttentionTile& tile = form.tile;
    report.tile =
        fmt::format("{} rows, {} x {} keys{}{}", tile.rows(), tile.order.strands, tile.order.keys,
                    tile.together > 1 ? fmt::format(", {} tokens", tile.together) : "",
                    tile.grouped ? ", by warpgroups" : "");
    report.parts = form.tile.order.parts;
    report.bound_seconds = attention_bound(machine, work);
    report.seconds = time.seconds;
    report.adding = time.adding;
    report.bound_by = time.bound;
    const AttentionFloor floor = attention_floor(machine, work);
    report.floor_seconds = floor.seconds;
    report.floor_by = described(floor);
    report.accesses = accesses_of(form, work);
  }

  static std::optional<AccessCounts> accesses_of(const AttentionForm& form,
                                                 const AttentionWork& work) {
    const StepTables step = tables_of(work);
    const AccessesByData::Array data[] = {step.tables, step.seen};
    const std::int64_t params[] = {work.sequences * work.rows};
    const auto out =
        count_accesses(*form.kernel.accesses, form.kernel.arguments.size(), params, data);
    return out ? std::optional(out->total) : std::nullopt;
  }

  /// Adds a row with the properties of the kernel itself.
  TensorReport& begin(const Kernel& kernel, const std::string& arch) {
    TensorReport& out = out_.emplace_back();
    out.arch = arch;
    out.kernel = kernel.name;
    out.uses = uses_;
    out.threads = kernel.threads;
    out.shared_bytes = kernel.shared_bytes;
    if (request_.nvrtc == nullptr || !request_.nvrtc->present()) return out;
    const auto cubin = cubin_of(*request_.nvrtc, request_.cache, kernel, {arch, false});
    if (!cubin) {
      out.error = cubin.error().front().message;
      return out;
    }
    out.usage = cubin->usage;
    out.shared_bytes += cubin->shared_bytes();
    if (const Machine* machine = machine_of(arch)) {
      out.resident =
          resident_blocks(*machine, kernel.threads, out.usage->registers, out.shared_bytes);
      out.occupancy = static_cast<double>(out.resident) * kernel.threads / machine->threads;
    }
    if (!disassembler_.present()) return out;
    const auto text = disassembler_.disassemble(cubin->bytes);
    if (text)
      out.sass = parse_sass(*text);
    else
      out.error = text.error().front().message;
    return out;
  }

  const TensorRequest& request_;
  const Disassembler& disassembler_;
  std::size_t uses_ = 0;
  std::vector<TensorReport> out_;
};

}  // namespace

std::vector<TensorReport> tensor_reports(const StitchedGraph& pieces, const TensorRequest& request,
                                         const Disassembler& disassembler) {
  TensorReporter reporter(request, disassembler);
  for (const PieceClass& c : pieces.classes)
    reporter.add(pieces.pieces[c.members.front()].graph, c.members.size());
  return reporter.take();
}

}  // namespace pw::cuda
