// Fourier transforms of a known length, as products with matrices of cosines and sines, and the
// windows that go before them.
#include <array>
#include <cmath>
#include <numbers>

#include "import/onnx/axis_product.hpp"
#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

/// Matrix of a transform: `rows` frequencies of `columns` elements of a signal of `length`.
struct Fourier {
  std::int64_t rows, columns, length;
  bool inverse = false;

  [[nodiscard]] std::vector<double> matrix(bool sines) const {
    for (const std::int64_t count : {rows, columns, length}) check_made(count);
    check_made(rows * columns);
    std::vector<double> out;
    for (std::int64_t f = 0; f < rows; ++f)
      for (std::int64_t t = 0; t < columns; ++t) {
        const double angle = (inverse ? 2 : -2) * std::numbers::pi *
                             static_cast<double>(f * t % length) / static_cast<double>(length);
        out.push_back((sines ? std::sin(angle) : std::cos(angle)) /
                      static_cast<double>(inverse ? length : 1));
      }
    return out;
  }
};

/// Transforms along an axis of a tensor whose last axis holds the real and, if there are two
/// elements, the imaginary part.
fx::Value transformed(OnnxCall& c, const fx::Value& x, std::size_t axis, const Fourier& f) {
  const Shape shape = c.type(x).shape;
  const std::size_t last = shape.size() - 1;
  const std::int64_t parts = c.extents({shape[last]})[0];
  if (parts != 1 && parts != 2) throw GiveUp{"its last axis does not have size 1 or 2"};
  const auto part = [&](std::int64_t i) {
    return c.slice(x, last, c.dims().constant(i), c.dims().constant(i + 1));
  };
  const auto product = [&](const fx::Value& of, bool sines) {
    return times_matrix(c, of, axis, f.rows, f.matrix(sines));
  };
  const fx::Value re = part(0);
  fx::Value real_part = product(re, false), imaginary = product(re, true);
  if (parts == 2) {
    const fx::Value im = part(1);
    real_part = c.op("sub", {real_part, product(im, true)});
    imaginary = c.op("add", {imaginary, product(im, false)});
  }
  return c.op("cat", {real_part, imaginary}, {{"dim", static_cast<std::int64_t>(last)}});
}

/// Returns the axis with `length` elements, cut or padded with zeros.
fx::Value of_length(OnnxCall& c, const fx::Value& x, std::size_t axis, std::int64_t size,
                    std::int64_t length) {
  if (length <= size)
    return length == size ? x : c.slice(x, axis, c.dims().constant(0), c.dims().constant(length));
  Shape rest = c.type(x).shape;
  rest[axis] = c.dims().constant(length - size);
  const fx::Value zeros =
      c.op("full", {}, {{"shape", rest}, {"value", 0.0}, {"dtype", c.type(x).dtype}});
  return c.op("cat", {x, zeros}, {{"dim", static_cast<std::int64_t>(axis)}});
}

/// Inverts a transform of reals given by the frequencies up to the middle. The others mirror them,
/// so all but the first, and the middle one of an even length, count twice.
fx::Value to_reals(OnnxCall& c, const fx::Value& x, std::size_t axis, std::int64_t length) {
  const std::int64_t given = length / 2 + 1;
  const Fourier f{length, given, length, true};
  std::vector<double> cosines = f.matrix(false), sines = f.matrix(true);
  for (std::size_t i = 0; i < cosines.size(); ++i) {
    const auto frequency = static_cast<std::int64_t>(i) % given;
    const double times = frequency == 0 || 2 * frequency == length ? 1 : 2;
    cosines[i] *= times;
    sines[i] *= times;
  }
  const std::size_t last = c.type(x).shape.size() - 1;
  if (c.extents({c.type(x).shape[last]})[0] != 2)
    throw GiveUp{"its last axis does not have size 2"};
  const auto part = [&](std::int64_t i) {
    return c.slice(x, last, c.dims().constant(i), c.dims().constant(i + 1));
  };
  return c.op("sub", {times_matrix(c, part(0), axis, length, cosines),
                      times_matrix(c, part(1), axis, length, sines)});
}

ModelValues lower_dft(OnnxCall& c) {
  const Type type = c.type(0);
  const std::size_t rank = type.shape.size();
  const bool attribute = c.version() < 20;
  const std::int64_t given = attribute ? c.integer("axis", 1) : c.has(2) ? c.integer(2) : -2;
  const std::size_t axis = axis_in(given, rank);
  if (rank < 2 || axis + 1 == rank || (type.dtype != DType::f32 && type.dtype != DType::f64))
    throw GiveUp{"its rank, axis or dtype is not supported"};
  const std::int64_t size = c.extents({type.shape[axis]})[0];
  const bool inverse = c.integer("inverse", 0) != 0, half = c.integer("onesided", 0) != 0;
  const std::int64_t length = c.has(1) ? c.integer(1) : half && inverse ? 2 * (size - 1) : size;
  if (length < 1) throw GiveUp{"the transform is empty"};
  check_made(length);
  const fx::Value x = c.cast(c.tensor(0), DType::f64);  // sums that cancel each other
  fx::Value y;
  if (half && inverse) {
    y = to_reals(c, of_length(c, x, axis, size, length / 2 + 1), axis, length);
  } else {
    const Fourier f{half ? length / 2 + 1 : length, length, length, inverse};
    y = transformed(c, of_length(c, x, axis, size, length), axis, f);
  }
  return {c.result(c.cast(y, type.dtype))};
}

// Frames of a signal [batch, length, 1 or 2], each times the window.
ModelValues lower_stft(OnnxCall& c) {
  const Type type = c.type(0);
  const std::int64_t step = c.integer(1);
  if (type.shape.size() != 3 || step < 1)
    throw GiveUp{"the signal is not of rank 3, or the frame step is below 1"};
  const bool half = c.integer("onesided", 1) != 0;
  const std::int64_t size = c.extents({type.shape[1]})[0];
  const std::int64_t length = c.has(3) ? c.integer(3) : c.extents({c.type(2).shape.at(0)})[0];
  check_made(size);
  if (length < 1 || length > size || length * (size / step + 1) > kMostMade)
    throw GiveUp{"a frame is longer than the signal"};
  std::vector<std::int64_t> places;
  std::int64_t frames = 0;
  for (std::int64_t begin = 0; begin + length <= size; begin += step, ++frames)
    for (std::int64_t i = 0; i < length; ++i) places.push_back(begin + i);
  const fx::Value at = c.constant(stored(DType::i64, {frames, length}, places));
  fx::Value x = c.op("index", {c.tensor(0), at}, {{"dim", std::int64_t{1}}});
  if (c.has(2))
    x = c.op("mul", {x, c.reshape(c.tensor(2), {c.dims().constant(length), c.dims().constant(1)})});
  return {c.result(transformed(c, x, 2, {half ? length / 2 + 1 : length, length, length}))};
}

/// Computes a0 - a1 cos(2πi/n) + a2 cos(4πi/n).
ModelValues cosine_window(OnnxCall& c, double a0, double a1, double a2) {
  const std::int64_t size = c.integer(0), n = c.integer("periodic", 1) != 0 ? size : size - 1;
  const std::optional<DType> dtype = dtype_of(c.integer("output_datatype", 1));
  if (!dtype || (*dtype != DType::f32 && *dtype != DType::f64))
    throw GiveUp{"the output dtype is not f32 or f64"};
  check_made(size);
  std::vector<double> out;
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle =
        n == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    out.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return {c.result(stored(*dtype, {size}, out))};
}
ModelValues lower_hann(OnnxCall& c) { return cosine_window(c, 0.5, 0.5, 0); }
ModelValues lower_hamming(OnnxCall& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
ModelValues lower_blackman(OnnxCall& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, whose corners are equally spaced on the mel scale.
ModelValues lower_mel(OnnxCall& c) {
  const std::int64_t count = c.integer(0), length = c.integer(1), rate = c.integer(2),
                     bins = length / 2 + 1;
  const double low = c.real(3), high = c.real(4);
  for (const std::int64_t number : {count, length, rate}) check_made(number);
  const std::optional<DType> dtype = dtype_of(c.integer("output_datatype", 1));
  if (!dtype || (*dtype != DType::f32 && *dtype != DType::f64) || count < 1 || bins < 1 ||
      rate < 1 || count * bins > (1 << 24))
    throw GiveUp{"its output dtype or its sizes are not supported"};
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<std::int64_t> corners;
  for (std::int64_t i = 0; i < count + 2;
       ++i) {  // steps of the range by the number of corners, as ONNX has it
    const double at =
        mel(low) + static_cast<double>(i) * (mel(high) - mel(low)) / static_cast<double>(count + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    corners.push_back(static_cast<std::int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  if (corners.back() > bins || corners.front() < 0)
    throw GiveUp{"a frequency exceeds half the sample rate"};
  std::vector<double> out(static_cast<std::size_t>(bins * count), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t a = corners[static_cast<std::size_t>(i)],
                       b = corners[static_cast<std::size_t>(i + 1)],
                       e = corners[static_cast<std::size_t>(i + 2)];
    const auto put = [&](std::int64_t bin, double value) {
      out.at(static_cast<std::size_t>(bin * count + i)) = value;
    };
    for (std::int64_t k = a; k < b; ++k)
      put(k, static_cast<double>(k - a) / static_cast<double>(b - a));
    if (b < bins) put(b, 1);
    for (std::int64_t k = b; k < e; ++k)
      put(k, static_cast<double>(e - k) / static_cast<double>(e - b));
  }
  return {c.result(stored(*dtype, {bins, count}, out))};
}

constexpr auto kSignalRows = std::to_array<Lowering>({
    {"DFT", 17, lower_dft},
    {"STFT", 17, lower_stft},
    {"HannWindow", 17, lower_hann},
    {"HammingWindow", 17, lower_hamming},
    {"BlackmanWindow", 17, lower_blackman},
    {"MelWeightMatrix", 17, lower_mel},
});

}  // namespace

std::span<const Lowering> signal_lowerings() { return kSignalRows; }

}  // namespace pw::onnx
