#include "engines/python_call_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pw {
namespace {

using nlohmann::json;

/// JSON has no NaN and no infinity: hexadecimal numbers, as Python reads them.
std::string hexadecimal(double value) { return fmt::format("{:a}", value); }

json value_json(const HostValue& value) {
  return std::visit(
      [](const auto& v) -> json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::monostate>) {
          return {{"kind", "value"}, {"value", nullptr}};
        } else if constexpr (std::is_same_v<V, DType>) {
          return {{"kind", "value"}, {"value", std::string(name(v))}};
        } else if constexpr (std::is_same_v<V, double>) {
          return {{"kind", "real"}, {"value", hexadecimal(v)}};
        } else if constexpr (std::is_same_v<V, std::vector<double>>) {
          json list = json::array();
          for (const double number : v) list.push_back(hexadecimal(number));
          return {{"kind", "reals"}, {"value", list}};
        } else {
          return {{"kind", "value"}, {"value", v}};
        }
      },
      value);
}

json argument_json(const HostArgument& argument) {
  json out;
  json items = json::array();
  for (const HostArgument& item : argument.items) items.push_back(argument_json(item));
  switch (argument.kind) {
    case HostArgument::Kind::operand:
      out = {{"kind", "operand"}, {"value", argument.operand}};
      break;
    case HostArgument::Kind::value: out = value_json(argument.value); break;
    case HostArgument::Kind::list: out = {{"kind", "list"}, {"value", items}}; break;
    case HostArgument::Kind::tuple: out = {{"kind", "tuple"}, {"value", items}}; break;
    case HostArgument::Kind::call:
      out = {{"kind", argument.word == "dict" ? "dict" : "slice"}, {"value", items}};
      break;
  }
  out["keyword"] = argument.keyword;
  return out;
}

json tensor_json(const TensorView& view) {
  return {{"dtype", std::string(name(view.dtype))}, {"shape", view.extents}};
}

bool is_same(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.extents == b.extents;
}

}  // namespace

std::string_view numpy_dtype(DType dtype) {
  switch (dtype) {
    case DType::b8: return "bool";
    case DType::i8: return "int8";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return "uint8";
    case DType::f16: return "float16";
    case DType::bf16: return "uint16";
    case DType::f32: return "float32";
    case DType::f64: return "float64";
  }
  return "uint8";
}

PythonCallText python_call_text(const HostCall& call, const std::string& function) {
  PythonCallText out;
  json operands = json::array(), arguments = json::array(), results = json::array();
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const auto& operand = call.operands[i];
    if (!operand) {
      operands.push_back(nullptr);
      continue;
    }
    std::size_t first = 0;
    while (first < i && !(call.operands[first] && is_same(*call.operands[first], *operand)))
      ++first;
    if (first < i) {
      operands.push_back({{"same", first}});
      continue;
    }
    operands.push_back(tensor_json(*operand));
    out.sent.push_back(&*operand);
  }
  for (const HostArgument& argument : call.arguments) arguments.push_back(argument_json(argument));
  for (const TensorView& result : call.results) results.push_back(result.data != nullptr);
  out.text = json{{"function", function},
                  {"arguments", arguments},
                  {"operands", operands},
                  {"results", results},
                  {"writes", call.writes}}
                 .dump(-1, ' ', true, json::error_handler_t::replace);
  return out;
}

PythonAnswer read_python_answer(std::string_view text) {
  PythonAnswer out;
  try {
    const json read = json::parse(text);
    out.error = read.value("error", "");
    out.place = read.value("place", "");
    out.functions = read.value("functions", std::vector<std::string>());
    for (const json& array : read.value("arrays", json::array()))
      out.arrays.push_back(
          {array.at("dtype").get<std::string>(), array.at("shape").get<Extents>()});
  } catch (const json::exception& e) {
    out = {};
    out.error = std::string("its process answers in another form: ") + e.what();
  }
  return out;
}

}  // namespace pw
