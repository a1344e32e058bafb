// A plugin: a backend that returns zeros, one that returns a stored number, the extern
// `even(number)`, and a host function for the op `mine.twice`.
#include <cstdlib>
#include <cstring>

#include "backends/portable_backend.hpp"
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

// Compiles to the text of the byte that fills all outputs: $PW_TEST_FILL.
class Filled final : public pw::PortableBackend {
 public:
  explicit Filled(const pw::BackendOptions& options) : PortableBackend(options) {}
  [[nodiscard]] std::string name() const override { return "filled"; }
  [[nodiscard]] std::string hash() const override { return byte(); }
  [[nodiscard]] pw::Result<std::string> save(const pw::Graph&) override { return "fill " + byte(); }
  [[nodiscard]] pw::Result<std::unique_ptr<pw::Executable>> load(
      const pw::Graph&, const std::string& saved) override {
    if (saved.rfind("fill ", 0) != 0)
      return pw::fail(pw::error_in("piece", "PW1226", "it was not saved by `filled`", ""));
    return std::make_unique<Fill>(std::atoi(saved.c_str() + 5));
  }

 private:
  struct Fill final : pw::Executable {
    explicit Fill(int value) : value_(value) {}
    pw::Status run(std::span<const pw::TensorView>, std::span<const pw::TensorView> outputs,
                   const pw::RunContext&) override {
      for (const pw::TensorView& output : outputs) std::memset(output.data, value_, output.bytes());
      return {};
    }
    int value_;
  };
  static std::string byte() {
    const char* given = std::getenv("PW_TEST_FILL");
    return given == nullptr ? "0" : given;
  }
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
  plugin.engines.push_back(
      pw::engine_of({"filled", "one stored number", {}, [](const pw::BackendOptions& options) {
                       return std::make_unique<Filled>(options);
                     }}));
  plugin.externs.push_back({"even", {pw::AttributeKind::int_}, even});
  plugin.host_functions.by_op["mine.twice"] = twice;
}

}  // namespace

PW_PLUGIN(fill)
