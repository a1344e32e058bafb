// Counts sequences of integers: TfIdfVectorizer.
#include <algorithm>
#include <array>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

/// Sequences of one length; the outputs count their occurrences in each row of the input.
struct NGrams {
  std::int64_t length = 1;
  std::vector<std::vector<std::int64_t>>
      columns;  ///< by place in the sequence, the numbers of all sequences
  std::vector<std::int64_t> outputs;
};

std::vector<NGrams> ngrams_of(OnnxCall& c) {
  const std::vector<std::int64_t> begins = c.integers("ngram_counts", {}),
                                  outputs = c.integers("ngram_indexes", {}),
                                  pool = c.integers("pool_int64s", {});
  const std::int64_t least = c.integer("min_gram_length"), most = c.integer("max_gram_length");
  if (c.has("pool_strings")) throw GiveUp{"a pool of strings is not supported"};
  const auto end = static_cast<std::int64_t>(pool.size());
  std::vector<NGrams> out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i + 1);
    const std::int64_t begin = begins[i], stop = i + 1 < begins.size() ? begins[i + 1] : end;
    if (begin < 0 || stop < begin || stop > end || (stop - begin) % length != 0)
      throw GiveUp{"its pool does not divide into n-grams"};
    NGrams grams{
        length, std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(length)), {}};
    for (std::int64_t at = begin; at < stop; at += length) {
      if (next >= outputs.size()) throw GiveUp{"the pool has more n-grams than ngram_indexes"};
      grams.outputs.push_back(outputs[next++]);
      for (std::int64_t k = 0; k < length; ++k)
        grams.columns[static_cast<std::size_t>(k)].push_back(
            pool[static_cast<std::size_t>(at + k)]);
    }
    if (length >= least && length <= most && !grams.outputs.empty())
      out.push_back(std::move(grams));
  }
  return out;
}

/// Counts the occurrences of each sequence in x [rows, elements], with `gap` elements between its
/// numbers; nothing if the rows are too short.
std::optional<fx::Value> counted(OnnxCall& c, const fx::Value& x, const NGrams& grams,
                                 std::int64_t gap) {
  const Type type = c.type(x);
  const std::int64_t places = c.extents({type.shape[1]})[0] - (grams.length - 1) * gap;
  if (places < 1) return std::nullopt;
  const DimId one = c.dims().constant(1);
  std::optional<fx::Value> all;
  for (std::int64_t k = 0; k < grams.length; ++k) {
    const std::vector<std::int64_t>& column = grams.columns[static_cast<std::size_t>(k)];
    const auto count = static_cast<std::int64_t>(column.size());
    const fx::Value part =
        c.slice(x, 1, c.dims().constant(k * gap), c.dims().constant(k * gap + places));
    const fx::Value wanted = c.constant(stored(DType::i64, {count}, column));
    const fx::Value same =
        c.op("eq", {c.reshape(part, {type.shape[0], c.dims().constant(places), one}), wanted});
    all = all ? c.op("bitwise_and", {*all, same}) : same;
  }
  return c.op("sum", {c.cast(*all, DType::f32)}, {{"dim", std::int64_t{1}}});
}

// TF counts; IDF is 1 if there is an occurrence; TFIDF counts. The last two are multiplied by a
// weight.
ModelValues lower_tf_idf(OnnxCall& c) {
  const Type type = c.type(0);
  if (is_float(type.dtype) || type.shape.empty() || type.shape.size() > 2)
    throw GiveUp{"its operand is not an integer tensor of rank 1 or 2"};
  const DimId one = c.dims().constant(1), rows = type.shape.size() == 2 ? type.shape[0] : one;
  const fx::Value x = c.reshape(c.cast(c.tensor(0), DType::i64), {rows, type.shape.back()});
  const std::vector<std::int64_t> outputs = c.integers("ngram_indexes", {});
  const std::int64_t skips = c.integer("max_skip_count");
  if (outputs.empty() || *std::ranges::min_element(outputs) < 0 || skips < 0)
    throw GiveUp{"ngram_indexes is empty, or an index or skip count is negative"};
  for (const std::int64_t number : {skips, *std::ranges::max_element(outputs)}) check_made(number);
  const std::int64_t width = *std::ranges::max_element(outputs) + 1;
  fx::Value y = c.op(
      "full", {},
      {{"shape", Shape{rows, c.dims().constant(width)}}, {"value", 0.0}, {"dtype", DType::f32}});
  for (const NGrams& grams : ngrams_of(c)) {
    const fx::Value at = c.constant(
        stored(DType::i64, {static_cast<std::int64_t>(grams.outputs.size())}, grams.outputs));
    for (std::int64_t gap = 1; gap <= (grams.length == 1 ? 1 : skips + 1); ++gap) {
      const auto count = counted(c, x, grams, gap);
      if (!count) break;
      y = c.op("index_put", {y, *count, at},
               {{"dim", std::int64_t{1}}, {"reduce", std::string("sum")}});
    }
  }
  const std::string mode = c.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") throw GiveUp{"mode `" + mode + "`"};
  if (mode == "IDF") y = c.cast(c.op("gt", {y, c.number(0)}), DType::f32);
  if (const OnnxAttribute* weights = c.find("weights"); weights != nullptr && mode != "TF") {
    if (weights->reals.size() != outputs.size())
      throw GiveUp{"the number of weights differs from the number of n-grams"};
    std::vector<double> by_output(static_cast<std::size_t>(width), 1);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      by_output[static_cast<std::size_t>(outputs[i])] = double{weights->reals[i]};
    y = c.op("mul", {y, c.constant(stored(DType::f32, {width}, by_output))});
  }
  return {c.result(type.shape.size() == 2 ? y : c.reshape(y, {c.dims().constant(width)}))};
}

constexpr auto kNGramRows = std::to_array<Lowering>({{"TfIdfVectorizer", 9, lower_tf_idf}});

}  // namespace

std::span<const Lowering> ngram_lowerings() { return kNGramRows; }

}  // namespace pw::onnx
