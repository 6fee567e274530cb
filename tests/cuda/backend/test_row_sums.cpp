// Row sums of the CUDA backend: tiles in which all entries count are summed two at a time, others
// one by one, rows by a reference that is known or one that is found, and nobody can tell which. On
// the emulation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/stream/null_sink.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/tensors/held_rows.h"
#include "kernels/cuda/host/tensors/row_layout.h"
#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/kernel/polynomial_power.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

namespace attnscope::test {
namespace {

/// Of compute capability 9.0, with wgmma, or 8.0, with mma.
std::unique_ptr<TileBackend> backend_on(int major) {
  cuda::emulation::reset();
  cuda::emulation::Device device = cuda::emulation::Device::of(major);
  cuda::emulation::set_devices({device});
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [](const std::string& line) { FAIL(line); };
  return make_device_backend(options);
}

/// Numbers that are all alike but for one NaN.
HeadTensor tensor_with_nan(int64_t tokens, int64_t channels, int64_t nan_token) {
  std::vector<bf16> values(static_cast<size_t>(tokens * channels), to_bf16(0.25f));
  if (nan_token >= 0) values[static_cast<size_t>(nan_token * channels)] = to_bf16(std::nanf(""));
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  std::vector<std::byte> bytes(first, first + values.size() * sizeof(bf16));
  return HeadTensor(
      std::make_shared<MemoryTensor>("numbers", DType::bf16, std::vector<int64_t>{tokens, channels},
                                     std::move(bytes)),
      Layout::sd);
}

/// |row|² in double, of rows as they are stored.
std::vector<double> squared_lengths(DType dtype, const std::vector<std::byte>& rows,
                                    int64_t channels) {
  const int64_t row_bytes = channels * dtype_bytes(dtype);
  std::vector<float> values(static_cast<size_t>(channels));
  std::vector<double> lengths;
  for (int64_t at = 0; at < static_cast<int64_t>(rows.size()); at += row_bytes) {
    to_floats(dtype, rows.data() + at, channels, values.data());
    double length = 0;
    for (const float v : values) length += static_cast<double>(v) * static_cast<double>(v);
    lengths.push_back(length);
  }
  return lengths;
}

/// True for each row whose exponents are known to be small enough, from all of Q and K in double.
std::vector<bool> held_rows_of(const AttentionProblem& problem) {
  const auto lengths = [](const HeadTensor& tensor) {
    std::vector<std::byte> rows(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
    tensor.read_rows(0, 0, {0, tensor.tokens()}, rows.data());
    return squared_lengths(tensor.dtype(), rows, tensor.row_bytes() / dtype_bytes(tensor.dtype()));
  };
  const std::vector<double> keys = lengths(problem.k());
  const double longest = *std::max_element(keys.begin(), keys.end());
  std::vector<bool> held;
  for (const double length : lengths(problem.q())) {
    held.push_back(problem.scale(0) * std::numbers::log2e * std::sqrt(length * longest) <= 80);
  }
  return held;
}

HeadTensor bf16_tensor(int64_t tokens, int64_t channels, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(bf16));
  for (size_t i = 0; i < values.size(); ++i) {
    const bf16 value = to_bf16(values[i]);
    std::memcpy(bytes.data() + i * sizeof(bf16), &value, sizeof(bf16));
  }
  return HeadTensor(
      std::make_shared<MemoryTensor>("numbers", DType::bf16, std::vector<int64_t>{tokens, channels},
                                     std::move(bytes)),
      Layout::sd);
}

/// Sums of rows whose exponents are all `exponents[row]`, where the kernels are told that all are
/// held, over 300 keys.
std::vector<cuda::RowPart> sums_if_held(const cuda::KernelSet& kernels,
                                        const std::vector<float>& exponents) {
  constexpr int kKeys = 300;
  constexpr int64_t kPlaced = 384;
  constexpr int64_t kChannels = 64;
  cuda::Device device(0, 0, 0);
  const cuda::Stream stream;
  cuda::LaunchLog log(stream, nullptr);
  cuda::DeviceBuffer raw(device), queries(device), keys(device), held(device), parts(device),
      sums(device);
  cuda::HeadFormat format;
  format.source = DType::bf16;
  format.head_dim = format.padded_dim = static_cast<int>(kChannels);
  format.element_bytes = 2;
  format.tiled = true;
  const auto place = [&](cuda::Operand operand, const std::vector<float>& first, int64_t placed,
                         cuda::DeviceBuffer& to) {
    std::vector<bf16> values(first.size() * kChannels, to_bf16(0));
    for (size_t row = 0; row < first.size(); ++row) values[row * kChannels] = to_bf16(first[row]);
    const auto rows = static_cast<int64_t>(first.size());
    auto* const from = raw.get<std::byte>(kKeys * kChannels * 2);
    cuda::check(cudaMemcpy(from, values.data(), values.size() * 2, cudaMemcpyHostToDevice), "in");
    auto* const out = to.get<std::byte>(placed * format.row_bytes());
    cuda::place_rows(format, operand, from, rows, placed, out, stream, log);
    stream.finish();
    return out;
  };
  const auto rows = static_cast<int>(exponents.size());
  cuda::NormArgs args;
  args.call.queries = place(cuda::Operand::queries, exponents, 128, queries);
  args.call.keys = place(cuda::Operand::keys, std::vector<float>(kKeys, 1.0f), kPlaced, keys);
  args.call.rows = rows;
  args.call.num_keys = kKeys;
  args.call.padded_dim = format.padded_dim;
  args.call.row_tiles = 1;
  args.call.key_tiles = static_cast<int>(kPlaced / 128);
  args.call.score.exponent_high = args.call.score.logit_high = 1;
  args.end_segment = 1;
  args.parts = parts.get<cuda::RowPart>(128);
  const std::vector<int32_t> all(128, 1);
  auto* const flags = held.get<int32_t>(128);
  cuda::check(cudaMemcpy(flags, all.data(), all.size() * 4, cudaMemcpyHostToDevice), "flags");
  args.held = flags;
  cuda::check(kernels.sum_rows(args, true, stream), "sums");
  cuda::CombineRowsArgs combine;
  combine.rows = rows;
  combine.stride = 128;
  combine.segments = 1;
  combine.parts = args.parts;
  combine.rows_out = sums.get<cuda::RowPart>(rows);
  cuda::check(launch_combine_rows(combine, stream), "combining");
  stream.finish();
  std::vector<cuda::RowPart> result(exponents.size());
  cuda::check(cudaMemcpy(result.data(), combine.rows_out, result.size() * sizeof(cuda::RowPart),
                         cudaMemcpyDeviceToHost),
              "out");
  return result;
}

}  // namespace

TEST_CASE("a row's sums have the same bits whatever the mask leaves of its neighbours") {
  // Of the last row of a tile the causal mask leaves whole tiles: those on the diagonal are whole
  // where the row is asked for alone, and mixed where its neighbours are, too. Heads of one chunk
  // of channels take the polynomial.
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    for (const int64_t channels : {64, 80, 192}) {
      for (const double amplitude : {1.0, 6.0}) {
        const Oracle oracle({.shape = {1, 1, 1, 1300, 1300, channels},
                             .dtype = DType::bf16,
                             .mask = "causal",
                             .amplitude = amplitude,
                             .scale = amplitude > 1 ? 0.2 : 0});
        INFO(oracle.text() << " on " << major << ".0");
        const HeadRun run(oracle, *backend, 0, 0);
        const std::vector<RowNorm> all = run.norms(iota(1300));
        for (int64_t row = 127; row < 1300; row += 128) {
          const RowNorm alone = run.norms({row})[0];
          const RowNorm& among_others = all[static_cast<size_t>(row)];
          CHECK(alone.sum == among_others.sum);
          CHECK(alone.exponent == among_others.exponent);
        }
      }
    }
  }
}

TEST_CASE("a key that is no number is refused, wherever it stands") {
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    for (const int64_t key : {0, 1, 2, 5, 40, 41, 255, 300}) {
      AttentionProblem::Parts parts;
      parts.q = tensor_with_nan(3, 64, -1);
      parts.k = tensor_with_nan(301, 64, key);
      parts.id.kind = CallKind::cross;
      parts.name = "numbers";
      const AttentionProblem problem = AttentionProblem::make(std::move(parts));
      const auto head = backend->bind(problem, 0, 0);
      std::vector<std::byte> rows(static_cast<size_t>(3 * problem.q().row_bytes()));
      problem.q().read_rows(0, 0, {0, 3}, rows.data());
      const std::vector<int64_t> index = iota(3);
      std::vector<RowNorm> norms(3);
      std::vector<std::byte> workspace(
          static_cast<size_t>(backend->workspace_bytes(problem, 3, 301, true)));
      INFO("key " << key << " on " << major << ".0");
      CHECK_THROWS_AS(head->row_norms({rows.data(), index}, norms, workspace), Error);
    }
  }
}

TEST_CASE("rows on both sides of the limit have the same bits alone and among any others") {
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    for (const int64_t channels : {64, 72}) {
      for (const std::string_view mask : {"none", "dense_bool", "dense_float"}) {
        // Every other row is long, and about half of the long ones are too long.
        const Oracle oracle({.shape = {1, 1, 1, 200, 1300, channels},
                             .dtype = DType::bf16,
                             .mask = mask,
                             .scale = 0.125,
                             .q_shift = channels == 64 ? 5.2f : 4.6f,
                             .mixed_rows = true});
        INFO(oracle.text() << " on " << major << ".0");
        const std::vector<bool> is_held = held_rows_of(oracle.problem());
        std::vector<int64_t> held, others;
        for (int64_t row = 0; row < 200; ++row) {
          (is_held[static_cast<size_t>(row)] ? held : others).push_back(row);
        }
        REQUIRE(held.size() > 105);
        REQUIRE(others.size() > 5);
        const HeadRun run(oracle, *backend, 0, 0);
        const std::vector<RowNorm> all = run.norms(iota(200));
        // Tiles of held rows alone, of others alone, and of one row.
        for (const std::vector<int64_t>& rows :
             {held, others, std::vector<int64_t>{held[3]}, std::vector<int64_t>{others[3]}}) {
          const std::vector<RowNorm> some = run.norms(rows);
          for (size_t i = 0; i < rows.size(); ++i) {
            const RowNorm& expected = all[static_cast<size_t>(rows[i])];
            CHECK(some[i].sum == expected.sum);
            CHECK(some[i].exponent == expected.exponent);
          }
        }
        for (int64_t row = 0; row < 200; row += 7) {
          const Oracle::Row exact = oracle.row(0, 0, row);
          const double got = all[static_cast<size_t>(row)].lse();
          CHECK(std::fabs(got - exact.lse) <=
                2e-5 + 2e-6 * std::fabs(exact.lse) + exact.logit_error);
        }
      }
    }
  }
}

TEST_CASE("a row just within the limit is exact however high or low its only logits are") {
  // Along one channel the bound is reached. 76 is 79.99 octaves at this scale.
  constexpr double kScale = 0.7295;
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    std::vector<float> q(4 * 64), k(300 * 64);
    for (size_t row = 0; row < 4; ++row) q[row * 64] = row % 2 == 0 ? 76.0f : -76.0f;
    for (size_t key = 0; key < 300; ++key) k[key * 64] = 1;
    AttentionProblem::Parts parts;
    parts.q = bf16_tensor(4, 64, q);
    parts.k = bf16_tensor(300, 64, k);
    parts.id.kind = CallKind::cross;
    parts.name = "numbers";
    parts.scale = kScale;
    const AttentionProblem problem = AttentionProblem::make(std::move(parts));
    CHECK(held_rows_of(problem) == std::vector<bool>(4, true));
    CHECK(cuda::most_held_length(problem, 0, 1) >= 76 * 76);
    CHECK(cuda::most_held_length(problem, 0, 1) < 76.1f * 76.1f);
    const auto head = backend->bind(problem, 0, 0);
    std::vector<std::byte> rows(static_cast<size_t>(4 * problem.q().row_bytes()));
    problem.q().read_rows(0, 0, {0, 4}, rows.data());
    std::vector<RowNorm> norms(4);
    std::vector<std::byte> workspace(
        static_cast<size_t>(backend->workspace_bytes(problem, 4, 300, true)));
    const std::vector<int64_t> index = iota(4);
    head->row_norms({rows.data(), index}, norms, workspace);
    for (size_t row = 0; row < 4; ++row) {
      const double expected = (row % 2 == 0 ? 76 : -76) * kScale + std::log(300.0);
      CHECK(std::fabs(norms[row].lse() - expected) <= 2e-5 + 2e-6 * std::fabs(expected));
    }
  }
}

TEST_CASE("rows are held by their length and the longest key's alone") {
  const auto backend = backend_on(9);
  cuda::Device device(0, 0, 0);
  const cuda::Stream stream;
  cuda::LaunchLog log(stream, nullptr);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int64_t channels : {5, 64, 72}) {
      const Oracle oracle({.shape = {1, 1, 1, 131, 9, channels}, .dtype = dtype});
      const std::vector<std::byte> rows = oracle.query_rows(0, 0, iota(131));
      const std::vector<double> lengths = squared_lengths(dtype, rows, channels);
      cuda::HeadFormat format = cuda::HeadFormat::of(oracle.problem(), true);
      cuda::DeviceBuffer from(device), found(device);
      auto* const source = from.get<std::byte>(static_cast<int64_t>(rows.size()));
      auto* const flags = found.get<int32_t>(256);
      cuda::check(cudaMemcpy(source, rows.data(), rows.size(), cudaMemcpyHostToDevice), "in");
      const auto longest = [&](int64_t count) {
        float length = 0;
        cuda::check(cudaMemcpy(flags, &length, 4, cudaMemcpyHostToDevice), "zero");
        cuda::measure_keys(format, source, count, flags, stream, log);
        stream.finish();
        cuda::check(cudaMemcpy(&length, flags, 4, cudaMemcpyDeviceToHost), "out");
        return static_cast<double>(length);
      };
      const double exact = *std::max_element(lengths.begin(), lengths.end());
      CHECK(std::fabs(longest(131) - exact) < 1e-5 * exact);
      CHECK(std::fabs(longest(1) - lengths[0]) < 1e-5 * lengths[0]);
      const float most = static_cast<float>(lengths[17]) * 1.00001f;
      cuda::measure_queries(format, source, 131, 256, most, flags, stream, log);
      stream.finish();
      std::vector<int32_t> held(256);
      cuda::check(cudaMemcpy(held.data(), flags, 1024, cudaMemcpyDeviceToHost), "out");
      for (size_t row = 0; row < 256; ++row) {
        CHECK(held[row] == (row >= 131 || lengths[row] <= static_cast<double>(most) ? 1 : 0));
      }
      // A NaN with its sign set, which comes before all numbers as an integer.
      const uint16_t nan = dtype == DType::f16 ? 0xfe00 : 0xffc0;
      cuda::check(cudaMemcpy(source + 2 * channels, &nan, 2, cudaMemcpyHostToDevice), "a NaN");
      CHECK_FALSE(std::isfinite(longest(131)));
    }
  }
}

TEST_CASE("no row is held where its bound would not be one") {
  const auto most = [](std::string_view mask, ScoreFunction score, float longest, double scale) {
    const Oracle oracle({.shape = {1, 1, 1, 40, 300, 8},
                         .dtype = DType::bf16,
                         .score = score,
                         .mask = mask,
                         .scale = scale});
    return cuda::most_held_length(oracle.problem(), 0, longest);
  };
  constexpr ScoreFunction kSoftmax = ScoreFunction::softmax;
  const double plain = most("none", kSoftmax, 4, 0.5);
  CHECK(std::fabs(plain / std::pow(80 / (0.5 * std::numbers::log2e), 2) * 4 - 1) < 1e-6);
  CHECK(most("dense_bool", kSoftmax, 4, 0.5) == plain);
  CHECK(most("none", kSoftmax, 0, 0.5) == 0x1p120f);  // not infinite
  CHECK(most("dense_float", kSoftmax, 4, 0.5) < 0);
  CHECK(most("none", ScoreFunction::sigmoid, 4, 0.5) < 0);
  CHECK(most("none", ScoreFunction::linear_relu, 4, 0.5) < 0);
  CHECK(most("none", kSoftmax, INFINITY, 0.5) < 0);
  CHECK(most("none", kSoftmax, NAN, 0.5) < 0);
  CHECK(most("none", kSoftmax, 3e38f, 1e6) < 0);
  CHECK(most("none", kSoftmax, 4, 1e-30) < 0);
  CHECK(most("none", kSoftmax, 4, 1e30) < 0);
}

TEST_CASE("a sum that the bound does not allow is noticed") {
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    const cuda::KernelSet& kernels =
        major == 9 ? *cuda::wgmma_bf16_kernels() : *cuda::mma_bf16_kernels();
    const std::vector<float> exponents{0, 50, 79, -79, 100, 120, 127, 130, 300, -100, -200};
    const std::vector<cuda::RowPart> sums = sums_if_held(kernels, exponents);
    for (size_t row = 0; row < exponents.size(); ++row) {
      INFO("2^" << exponents[row] << " on " << major << ".0");
      const cuda::RowPart& part = sums[row];
      CHECK(part.held == 1);
      CHECK(part.any == 1);
      CHECK(part.reference == 0);
      const bool within = std::fabs(exponents[row]) <= 80;
      CHECK(cuda::is_held_sum(part.sum, 300) == within);
      if (!within) continue;
      const auto exponent = static_cast<double>(exponents[row]);
      CHECK(std::fabs(part.moment / part.sum - exponent) <= 1e-6 + 1e-5 * std::fabs(exponent));
      CHECK(std::fabs(part.sum / (300 * std::exp2(exponent)) - 1) < 5e-6);
    }
  }
}

TEST_CASE("sums of linear features that float32 loses are refused, those that are 0 are not") {
  const auto said = [](std::vector<float> query, std::vector<float> key) -> std::string {
    const auto tensor = [](const char* name, const std::vector<float>& row) {
      std::vector<float> rows;
      for (int token = 0; token < 40; ++token) rows.insert(rows.end(), row.begin(), row.end());
      return HeadTensor(make_tensor(name, DType::f32, {1, 1, 40, 4}, rows), Layout::bhsd);
    };
    AttentionProblem::Parts parts;
    parts.q = tensor("q", query);
    parts.k = tensor("k", key);
    parts.query_tokens = parts.key_tokens = TokenGrid::unknown(40);
    parts.scale = 1;
    parts.score = ScoreFunction::linear_relu;
    parts.name = "features";
    const AttentionProblem problem = AttentionProblem::make(std::move(parts));
    const auto backend = backend_on(8);
    MemoryBudget budget(64 << 20);
    const HeadTask task{&problem, 0, 0, {0, 40}, {}, {0, 40}};
    const TileRequest request{.entries = false};
    NullSink sink(request);
    try {
      const TilePlan plan = plan_tiles({&task, 1}, request, *backend, budget.available());
      StreamingEngine(*backend, budget).run({&task, 1}, plan, sink);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string lost = "more or less than float32 holds (--backend reference";
  CHECK(said({1, 1, 0, 0}, {1, 1, 1, 1}) == "");
  // Channels that both have are the small ones of each.
  CHECK(contains(said({0x1p-40f, 1, 0, 0}, {0x1p-40f, 0, 1, 0}), lost));
  CHECK(contains(said({0x1p-120f, 1, 0, 0}, {0x1p-120f, 0, 1, 0}), lost));
  CHECK(said({1, 0, 0, 0}, {0, 1, 0, 0}) == "");
  CHECK(said({-1, -1, -1, -1}, {1, 1, 1, 1}) == "");
}

TEST_CASE("the polynomial's powers of two are as exact as is said of them") {
  double worst = 0;
  for (double x = -126; x <= 127; x += 1.0 / 1024 + 1e-6) {
    const auto at = static_cast<float>(x);
    const cuda::Power power = cuda::polynomial_power(at);
    const double got = static_cast<double>(power.fraction) * static_cast<double>(power.whole);
    worst = std::max(worst, std::fabs(got / std::exp2(static_cast<double>(at)) - 1));
    CHECK(power.x == at);
  }
  CHECK(worst < 4e-6);
  CHECK(worst > 1e-7);  // it is the polynomial
  for (const float whole : {-126.0f, -1.0f, 0.0f, 3.0f, 127.0f}) {
    const cuda::Power power = cuda::polynomial_power(whole);
    CHECK(power.fraction * power.whole == std::exp2(whole));
  }
  for (const float far : {-127.0f, -3e38f, -INFINITY}) {
    const cuda::Power power = cuda::polynomial_power(far);
    CHECK(power.fraction * power.whole == 0x1p-126f);
  }
  const cuda::Power nan = cuda::polynomial_power(NAN);
  CHECK(std::isnan(nan.fraction * nan.whole));
}

}  // namespace attnscope::test
