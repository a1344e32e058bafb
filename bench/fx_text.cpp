#include "bench/fx_text.hpp"

#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace pw::bench {
namespace {

constexpr std::int64_t kTokens = 512, kHidden = 2048, kHeads = 16, kWidth = 128, kFfn = 5632;

class Writer {
 public:
  std::string write(std::int64_t layers) {
    std::string x = input(tensor("bf16", {kTokens, kHidden}));
    for (std::int64_t i = 0; i < layers; ++i) x = layer(x);
    return fmt::format(
        "class <lambda>(torch.nn.Module):\n    def forward(self, {}):\n{}        return ({},)\n",
        fmt::join(inputs_, ", "), body_, x);
  }

 private:
  static std::string tensor(std::string_view dtype, std::initializer_list<std::int64_t> shape) {
    return fmt::format("{}[{}]", dtype, fmt::join(shape, ", "));
  }
  std::string input(const std::string& type) {
    std::string name = fmt::format("arg{}_1", inputs_.size());
    inputs_.push_back(fmt::format("{}: \"{}\"", name, type));
    return name;
  }
  /// `mm_17`, as torch.fx numbers what an op gives.
  std::string fresh(const std::string& base) {
    const int n = counts_[base]++;
    return n == 0 ? base : fmt::format("{}_{}", base, n);
  }
  void place(std::string_view file, int line, std::string_view function, std::string_view code) {
    body_ += fmt::format("         # File: /opt/model/layers/{}:{} in {}, code: {}\n", file, line,
                         function, code);
  }
  std::string call(std::string_view op, const std::string& type, const std::string& arguments,
                   std::vector<std::string> released = {}) {
    const std::string_view base = op.substr(0, op.find('.'));
    std::string name = fresh(std::string(base));
    body_ += fmt::format("        {}: \"{}\" = torch.ops.aten.{}({})", name, type, op, arguments);
    if (!released.empty()) body_ += fmt::format(";  {} = None", fmt::join(released, " = "));
    body_ += '\n';
    return name;
  }

  std::string norm(const std::string& x) {
    const std::string weight = input(tensor("bf16", {kHidden}));
    const std::string wide = tensor("f32", {kTokens, kHidden}),
                      column = tensor("f32", {kTokens, 1});
    place("norm.py", 41, "forward", "x = x.to(torch.float32)");
    const std::string f = call("_to_copy.default", wide, x + ", dtype = torch.float32");
    place("norm.py", 42, "forward", "variance = x.pow(2).mean(dim=-1, keepdim=True)");
    const std::string square = call("pow.Tensor_Scalar", wide, f + ", 2");
    const std::string mean = call("mean.dim", column, square + ", [-1], True", {square});
    place("norm.py", 43, "forward", "x = x * torch.rsqrt(variance + self.variance_epsilon)");
    const std::string sum = call("add.Tensor", column, mean + ", 1e-06", {mean});
    const std::string root = call("rsqrt.default", column, sum, {sum});
    const std::string scaled = call("mul.Tensor", wide, f + ", " + root, {f, root});
    place("norm.py", 44, "forward", "return self.weight * x.to(orig_dtype)");
    const std::string narrow = call("_to_copy.default", tensor("bf16", {kTokens, kHidden}),
                                    scaled + ", dtype = torch.bfloat16", {scaled});
    return call("mul.Tensor", tensor("bf16", {kTokens, kHidden}), weight + ", " + narrow,
                {weight, narrow});
  }

  std::string linear(const std::string& x, std::int64_t in, std::int64_t out) {
    const std::string weight = input(tensor("bf16", {out, in}));
    place("linear.py", 125, "forward", "return F.linear(input, self.weight, self.bias)");
    const std::string turned = call("t.default", tensor("bf16", {in, out}), weight, {weight});
    return call("mm.default", tensor("bf16", {kTokens, out}), x + ", " + turned, {turned});
  }

  std::string heads(const std::string& x) {
    const std::string shape = fmt::format("[{}, {}, {}]", kTokens, kHeads, kWidth);
    place("attention.py", 210, "forward", "q = q.view(-1, self.heads, self.width).transpose(0, 1)");
    const std::string view = call("view.default", "bf16" + shape, x + ", " + shape, {x});
    return call("permute.default", tensor("bf16", {kHeads, kTokens, kWidth}), view + ", [1, 0, 2]",
                {view});
  }

  std::string attention(const std::string& x) {
    const std::string q = heads(linear(x, kHidden, kHidden));
    const std::string k = heads(linear(x, kHidden, kHidden));
    const std::string v = heads(linear(x, kHidden, kHidden));
    const std::string scores = tensor("bf16", {kHeads, kTokens, kTokens});
    place("attention.py", 221, "forward",
          "weights = torch.matmul(q, k.transpose(1, 2)) * self.scale");
    const std::string turned =
        call("permute.default", tensor("bf16", {kHeads, kWidth, kTokens}), k + ", [0, 2, 1]", {k});
    const std::string product = call("bmm.default", scores, q + ", " + turned, {q, turned});
    const std::string scaled =
        call("mul.Tensor", scores, product + ", 0.08838834764831845", {product});
    place("attention.py", 224, "forward", "weights = F.softmax(weights, dim=-1)");
    const std::string shares = call("_softmax.default", scores, scaled + ", -1, False", {scaled});
    place("attention.py", 225, "forward",
          "return self.o_proj((weights @ v).transpose(0, 1).reshape(x.shape))");
    const std::string mixed = call("bmm.default", tensor("bf16", {kHeads, kTokens, kWidth}),
                                   shares + ", " + v, {shares, v});
    const std::string back = call("permute.default", tensor("bf16", {kTokens, kHeads, kWidth}),
                                  mixed + ", [1, 0, 2]", {mixed});
    const std::string dense = call("clone.default", tensor("bf16", {kTokens, kHeads, kWidth}),
                                   back + ", memory_format = torch.contiguous_format", {back});
    const std::string flat = call("view.default", tensor("bf16", {kTokens, kHidden}),
                                  fmt::format("{}, [{}, {}]", dense, kTokens, kHidden), {dense});
    return linear(flat, kHidden, kHidden);
  }

  std::string feed_forward(const std::string& x) {
    const std::string wide = tensor("bf16", {kTokens, kFfn});
    const std::string gate = linear(x, kHidden, kFfn), up = linear(x, kHidden, kFfn);
    place("mlp.py", 77, "forward",
          "return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))");
    const std::string act = call("silu.default", wide, gate, {gate});
    const std::string product = call("mul.Tensor", wide, act + ", " + up, {act, up});
    return linear(product, kFfn, kHidden);
  }

  std::string layer(const std::string& x) {
    const std::string type = tensor("bf16", {kTokens, kHidden});
    const std::string mixed = attention(norm(x));
    place("decoder.py", 58, "forward", "hidden_states = residual + hidden_states");
    const std::string sum = call("add.Tensor", type, x + ", " + mixed, {x, mixed});
    const std::string fed = feed_forward(norm(sum));
    place("decoder.py", 63, "forward", "hidden_states = residual + hidden_states");
    return call("add.Tensor", type, sum + ", " + fed, {sum, fed});
  }

  std::vector<std::string> inputs_;
  std::string body_;
  std::map<std::string, int> counts_;
};

}  // namespace

std::string fx_text(std::int64_t layers) { return Writer().write(layers); }

}  // namespace pw::bench
