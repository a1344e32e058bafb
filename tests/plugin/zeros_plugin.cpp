// A plugin: a backend of zeros, the extern `even(number)`, and what runs the op `mine.twice`.
#include <cstring>

#include "engines/plugin.hpp"

namespace {

class Zeros final : public pw::Backend {
 public:
  [[nodiscard]] std::string name() const override { return "zeros"; }
  [[nodiscard]] pw::Result<std::unique_ptr<pw::Executable>> compile(const pw::Graph&) override {
    return std::make_unique<Nothing>();
  }

 private:
  struct Nothing final : pw::Executable {
    pw::Status run(std::span<const pw::TensorView>, std::span<const pw::TensorView> outputs,
                   const pw::RunContext&) override {
      for (const pw::TensorView& output : outputs) std::memset(output.data, 0, output.bytes());
      return {};
    }
  };
};

pw::Result<pw::Attribute> even(std::span<const pw::Attribute> arguments) {
  return pw::Attribute(std::get<std::int64_t>(arguments.front()) % 2 == 0);
}

pw::Status twice(const pw::HostCall& call) {
  const pw::TensorView &x = *call.operands.front(), &y = call.results.front();
  for (std::int64_t i = 0; i < x.count(); ++i)
    reinterpret_cast<float*>(y.data)[i] = 2 * reinterpret_cast<const float*>(x.data)[i];
  return {};
}

void fill(pw::Plugin& plugin) {
  plugin.engines.push_back(
      pw::engine_of({"zeros", "nothing but zeros", {.ranks = true}, [](const pw::BackendOptions&) {
                       return std::make_unique<Zeros>();
                     }}));
  plugin.externs.push_back({"even", {pw::AttributeKind::int_}, even});
  plugin.host_functions.by_op["mine.twice"] = twice;
}

}  // namespace

PW_PLUGIN(fill)
