// ONNX models that tests write, node by node.
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "onnx.pb.h"

namespace pw_test_onnx {

inline constexpr int kFloat = 1, kInt64 = 7;

/// A model under construction; opset 21 unless stated otherwise.
struct TestModel {
  Model model;
  explicit TestModel(std::int64_t opset = 21) {
    model.set_ir_version(10);
    model.set_producer_name("test");
    model.add_opset_import()->set_version(opset);
  }
  static void describe(ValueInfo& value, const std::string& name,
                       const std::vector<std::string>& dims, int type) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const std::string& dim : dims) {
      auto& d = *tensor.mutable_shape()->add_dim();
      if (std::isdigit(static_cast<unsigned char>(dim[0])) != 0)
        d.set_dim_value(std::stoll(dim));
      else
        d.set_dim_param(dim);
    }
  }
  TestModel& in(const std::string& name, const std::vector<std::string>& dims, int type = kFloat) {
    describe(*model.mutable_graph()->add_input(), name, dims, type);
    return *this;
  }
  TestModel& out(const std::string& name, const std::vector<std::string>& dims, int type = kFloat) {
    describe(*model.mutable_graph()->add_output(), name, dims, type);
    return *this;
  }
  TestModel& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs,
                  const std::map<std::string, std::int64_t>& attributes = {}) {
    fill(*model.mutable_graph()->add_node(), op, inputs, outputs, attributes);
    return *this;
  }
  static void fill(Node& node, const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs,
                   const std::map<std::string, std::int64_t>& attributes = {}) {
    node.set_op_type(op);
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    for (const auto& [name, value] : attributes) {
      auto& a = *node.add_attribute();
      a.set_name(name);
      a.set_i(value);
      a.set_type(2);
    }
  }
  Tensor& tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                 int type = kFloat) {
    auto& t = *model.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(type);
    for (const std::int64_t d : dims) t.add_dims(d);
    return t;
  }
  TestModel& numbers(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& t = tensor(name, {static_cast<std::int64_t>(values.size())}, kInt64);
    for (const std::int64_t v : values) t.add_int64_data(v);
    return *this;
  }
  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
};

}  // namespace pw_test_onnx
