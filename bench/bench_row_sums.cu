// The row sums of one head on the device at hand, kernels alone: how long each kind of them takes,
// for each way to split the keys among blocks, with rows that are held by their lengths and
// without, and whether the sums are right.
//   bench_row_sums 17776x64            (tokens x head_dim; the split that the backend plans)
//   bench_row_sums 118800x128 4 8 30   (blocks of 4, 8 and 30 segments of 1024 keys)
// Exits 1 where a sum is wrong or the device fails.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <random>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "kernels/cuda/host/plans/split_plan.h"
#include "kernels/cuda/host/tensors/row_layout.h"
#include "kernels/cuda/kernel/kernel_set.h"

namespace attnscope::cuda {
namespace {

constexpr int kRepeats = 10;
constexpr int64_t kCheckedRows = 64;

struct Head {
  int64_t tokens = 0;
  int width = 0;
  std::vector<bf16> q, k;
  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
};

Head random_head(int64_t tokens, int width) {
  Head head{tokens, width, {}, {}};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (auto* tensor : {&head.q, &head.k}) {
    for (int64_t i = 0; i < tokens * width; ++i) tensor->push_back(to_bf16(normal(random)));
  }
  return head;
}

double lse_of(const Head& head, int64_t row) {
  std::vector<double> logits;
  for (int64_t key = 0; key < head.tokens; ++key) {
    double product = 0;
    for (int c = 0; c < head.width; ++c) {
      product += static_cast<double>(to_float(head.q[static_cast<size_t>(row * head.width + c)])) *
                 static_cast<double>(to_float(head.k[static_cast<size_t>(key * head.width + c)]));
    }
    logits.push_back(product * head.scale());
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

/// Queries and keys of a head on the device, as a kind of kernels wants them.
class Bench {
 public:
  Bench(Device& device, const Head& head)
      : device_(device),
        head_(head),
        log_(stream_, nullptr),
        queries_(device),
        keys_(device),
        parts_(device),
        rows_(device),
        held_(device) {
    HeadFormat format;
    format.source = DType::bf16;
    format.head_dim = head.width;
    format.padded_dim = static_cast<int>(round_up(head.width, 16));
    format.element_bytes = 2;
    format.tiled = true;
    args_.call.rows = args_.call.num_keys = static_cast<int>(head.tokens);
    args_.call.row_tiles = args_.call.key_tiles =
        static_cast<int>(ceil_div(head.tokens, kTileRows));
    args_.call.padded_dim = format.padded_dim;
    args_.call.queries = place(format, Operand::queries, head.q, queries_);
    args_.call.keys = place(format, Operand::keys, head.k, keys_);
    const double factor = head.scale() * std::numbers::log2e;
    args_.call.score.exponent_high = static_cast<float>(factor);
    args_.call.score.exponent_low =
        static_cast<float>(factor - static_cast<double>(args_.call.score.exponent_high));
    args_.end_segment = static_cast<int>(ceil_div(head.tokens, kSegmentKeys));
    args_.parts = parts_.get<RowPart>(args_.end_segment * padded_rows());
    // Random rows of any width are: a row's exponents stay within ± 30.
    auto* const held = held_.get<int32_t>(padded_rows());
    check(cudaMemsetAsync(held, 1, static_cast<size_t>(padded_rows()) * sizeof(int32_t), stream_),
          "marking rows");
  }

  /// Prints a line; whether the sums are right. `split` 0: as the backend plans.
  bool run(const KernelSet& kernels, int split, bool held) {
    args_.held = held ? static_cast<const int32_t*>(held_.data()) : nullptr;
    int resident = 1;
    check(kernels.resident_blocks(args_.call.padded_dim, &resident), "the occupancy");
    const int blocks =
        (args_.call.row_tiles + kernels.block_row_tiles - 1) / kernels.block_row_tiles;
    args_.split_segments =
        split > 0 ? split
                  : plan_splits(blocks, args_.end_segment, device_.multiprocessors(), resident)
                        .split_segments;
    const double seconds =
        median_seconds([&] { check(kernels.sum_rows(args_, false, stream_), "the row sums"); });
    const double combine = median_seconds([&] { combine_rows(); });
    const double entries = static_cast<double>(head_.tokens) * static_cast<double>(head_.tokens);
    const double error = worst_error();
    std::printf(
        "%-6s %-9s %6d segments a block, %5d blocks: %9.4f ms, %7.1f TFLOP/s, %8.1f Gexp/s; "
        "combined in %7.4f ms; LSE off by %.1e\n",
        kernels.name, held ? "held" : "not held", args_.split_segments,
        blocks * ((args_.end_segment + args_.split_segments - 1) / args_.split_segments),
        seconds * 1e3, 2 * entries * head_.width / seconds * 1e-12, entries / seconds * 1e-9,
        combine * 1e3, error);
    return error < 1e-4;
  }

 private:
  int64_t padded_rows() const { return int64_t{args_.call.row_tiles} * kTileRows; }

  const void* place(const HeadFormat& format, Operand operand, const std::vector<bf16>& tensor,
                    DeviceBuffer& to) {
    DeviceBuffer source(device_);
    const auto bytes = static_cast<int64_t>(tensor.size() * sizeof(bf16));
    auto* const raw = source.get<std::byte>(bytes);
    auto* const placed = to.get<std::byte>(padded_rows() * format.row_bytes());
    check(cudaMemcpy(raw, tensor.data(), static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
          "copying to the device");
    // It returns as soon as the host's bytes are staged, and the other stream does not wait.
    check(cudaStreamSynchronize(nullptr), "copying to the device");
    place_rows(format, operand, raw, head_.tokens, padded_rows(), placed, stream_, log_);
    stream_.finish();
    return placed;
  }

  void combine_rows() {
    CombineRowsArgs args;
    args.rows = args_.call.rows;
    args.stride = padded_rows();
    args.segments = args_.end_segment;
    args.parts = args_.parts;
    args.rows_out = rows_.get<RowPart>(args.rows);
    check(launch_combine_rows(args, stream_), "combining rows");
  }

  template <typename Work>
  double median_seconds(Work work) {
    const Event start(Event::Kind::timed), stop(Event::Kind::timed);
    std::vector<double> seconds;
    for (int i = 0; i < kRepeats; ++i) {
      start.record(stream_);
      work();
      stop.record(stream_);
      stop.wait();
      seconds.push_back(static_cast<double>(stop.milliseconds_since(start)) * 1e-3);
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
    return seconds[kRepeats / 2];
  }

  /// Of some rows, against double.
  double worst_error() {
    std::vector<RowPart> rows(static_cast<size_t>(head_.tokens));
    check(cudaMemcpy(rows.data(), rows_.data(), rows.size() * sizeof(RowPart),
                     cudaMemcpyDeviceToHost),
          "copying from the device");
    if (expected_.empty()) {
      for (int64_t i = 0; i < kCheckedRows; ++i) expected_.push_back(lse_of(head_, row_of(i)));
    }
    double worst = 0;
    for (int64_t i = 0; i < kCheckedRows; ++i) {
      const RowPart& row = rows[static_cast<size_t>(row_of(i))];
      const double lse =
          std::numbers::ln2 * (std::log2(row.sum) + static_cast<double>(row.reference));
      const double error = std::fabs(lse - expected_[static_cast<size_t>(i)]);
      worst = error <= worst ? worst : error;  // NaN, too
    }
    return worst;
  }
  int64_t row_of(int64_t i) const { return i * (head_.tokens - 1) / (kCheckedRows - 1); }

  Device& device_;
  const Head& head_;
  const Stream stream_;
  LaunchLog log_;
  DeviceBuffer queries_, keys_, parts_, rows_, held_;
  NormArgs args_;
  std::vector<double> expected_;
};

int run(int argc, char** argv) {
  long long tokens = 0;
  int width = 0;
  if (argc < 2 || std::sscanf(argv[1], "%lldx%d", &tokens, &width) != 2 || tokens < 1 ||
      tokens > 1000000 || width < 1 || width > 256) {
    std::fprintf(stderr, "usage: bench_row_sums TOKENSxWIDTH [SEGMENTS ...], widths up to 256\n");
    return 2;
  }
  std::vector<int> splits;
  for (int i = 2; i < argc; ++i) splits.push_back(std::max(0, std::atoi(argv[i])));
  if (splits.empty()) splits.push_back(0);
  Device device(0, 0, 0);
  const Head head = random_head(tokens, width);
  Bench bench(device, head);
  std::printf("%s, %lld tokens of %d channels, bf16\n", device.name().c_str(), tokens, width);
  bool right = true;
  bool any = false;
  for (const KernelSet* kernels : {wgmma_bf16_kernels(), mma_bf16_kernels()}) {
    if (kernels == nullptr || !kernels->runs_on(device.capability())) continue;
    any = true;
    for (const int split : splits) {
      for (const bool held : {true, false}) right = bench.run(*kernels, split, held) && right;
    }
  }
  if (!any) std::fprintf(stderr, "bench_row_sums: no kernels of this build run on the device\n");
  return any && right ? 0 : 1;
}

}  // namespace
}  // namespace attnscope::cuda

int main(int argc, char** argv) {
  try {
    return attnscope::cuda::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_row_sums: %s\n", error.what());
    return 1;
  }
}
