#include "tests/vectors/case_file.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tensor/numerics.hpp"

namespace pw::vectors {
namespace {

using Json = nlohmann::json;

unsigned digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  throw std::runtime_error(std::string("not a hexadecimal digit: ") + c);
}

Tensor read_tensor(const Json& json) {
  const auto dtype = dtype_named(json.at("dtype").get<std::string>());
  if (!dtype) throw std::runtime_error("unknown dtype " + json.at("dtype").dump());
  Tensor tensor(*dtype, json.at("shape").get<Extents>());
  const auto& text = json.at("bits").get_ref<const std::string&>();
  const auto size = static_cast<std::size_t>(size_of(*dtype));
  if (text.size() != 2 * tensor.view().bytes())
    throw std::runtime_error("the bits do not fill the shape");
  for (std::size_t i = 0; i < text.size() / 2; ++i) {
    const std::size_t element = i / size;
    const std::size_t byte =
        size - 1 - i % size;  // most significant first in the text, last in memory
    tensor.data()[element * size + byte] =
        static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  }
  return tensor;
}

Attribute read_attribute(const Json& json, Dims& dims) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    const auto text = json.get<std::string>();
    if (const auto dtype = dtype_named(text)) return *dtype;
    return text;
  }
  if (json.is_array()) {
    std::vector<DimId> list;
    for (const Json& each : json) list.push_back(dims.constant(each.get<std::int64_t>()));
    return list;
  }
  throw std::runtime_error("unreadable attribute " + json.dump());
}

Case read_case(const Json& json, Dims& dims) {
  Case result;
  result.name = json.at("name").get<std::string>();
  for (const auto& [name, value] : json.at("attributes").items())
    result.attributes.emplace_back(name, read_attribute(value, dims));
  for (const Json& input : json.at("inputs")) result.inputs.push_back(read_tensor(input));
  for (const Json& output : json.at("outputs"))
    result.outputs.push_back({read_tensor(output), output.value("ulps", 0.0),
                              output.value("floor", 0.0), output.value("equal", 0.0)});
  return result;
}

/// The error in steps of the dtype; infinite where only one side is a NaN or where infinities
/// differ.
double error_in_ulps(const Expected& expected, double want, double have) {
  if (std::isnan(want) && std::isnan(have)) return 0;
  if (want == have) return 0;
  if (!std::isfinite(want) || !std::isfinite(have)) return std::numeric_limits<double>::infinity();
  const DType dtype = expected.tensor.dtype();
  const double step = is_float(dtype) ? ulp(dtype, std::max(std::abs(want), expected.floor)) : 1;
  return std::abs(want - have) / step;
}

bool same(DType dtype, double want, double have) {
  const double stored = rounded(dtype, have);
  return want == stored || (std::isnan(want) && std::isnan(stored));
}

}  // namespace

CaseFile read_case_file(const std::string& path, Dims& dims) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path);
  const Json json = Json::parse(in);
  CaseFile file{json.at("op").get<std::string>(), {}};
  for (const Json& one : json.at("cases")) file.cases.push_back(read_case(one, dims));
  return file;
}

std::string mismatch(const Expected& expected, const TensorView& actual) {
  const TensorView want = expected.tensor.view();
  std::ostringstream out;
  out.precision(9);
  if (actual.extents != want.extents) return "the shapes differ";
  std::int64_t worst = 0, equal = 0;
  double error = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const double a = load(want.dtype, want.data, i), b = load(actual.dtype, actual.data, i);
    equal += same(want.dtype, a, b) ? 1 : 0;
    if (const double e = error_in_ulps(expected, a, b); e > error) {
      error = e;
      worst = i;
    }
  }
  const double share =
      want.count() == 0 ? 1 : static_cast<double>(equal) / static_cast<double>(want.count());
  if (error <= expected.ulps && share >= expected.equal) return {};
  out << "element " << worst << " is " << load(actual.dtype, actual.data, worst) << ", not "
      << load(want.dtype, want.data, worst) << ": " << error << " ulps of " << name(want.dtype)
      << " off, " << expected.ulps << " allowed; a share of " << share << " is equal, "
      << expected.equal << " wanted";
  return out.str();
}

}  // namespace pw::vectors
