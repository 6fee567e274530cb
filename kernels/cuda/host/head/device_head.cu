#include "kernels/cuda/host/head/device_head.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "kernels/cuda/host/plans/split_plan.h"
#include "kernels/cuda/host/tensors/held_rows.h"
#include "kernels/cuda/host/tensors/row_layout.h"

namespace attnscope::cuda {
namespace {

/// Mask bits or biases that are uploaded for one step.
constexpr int64_t kMaskBytes = int64_t{8} << 20;
/// Device memory of a step of rows of which only norms are wanted.
constexpr int64_t kSumBytes = int64_t{64} << 20;

cudaDataType data_type(const HeadFormat& format) {
  if (format.element_bytes == 4) return CUDA_R_32F;
  return format.source == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

/// Of tensors in this type, padded to so many channels.
const KernelSet& kernels_of(DType dtype, int padded_dim, const DeviceShare& share) {
  if (share.kernels == DeviceKernels::cublas || dtype_bytes(dtype) != 2) return stored_kernels();
  const bool f16 = dtype == DType::f16;
  const auto runs = [&](const KernelSet* set) {
    return set != nullptr && set->runs_on(share.device.capability()) &&
           set->shared_bytes(padded_dim) <= share.device.block_shared_bytes();
  };
  const KernelSet* const wgmma = f16 ? wgmma_f16_kernels() : wgmma_bf16_kernels();
  if (share.wgmma && runs(wgmma)) return *wgmma;
  const KernelSet* const mma = f16 ? mma_f16_kernels() : mma_bf16_kernels();
  return runs(mma) ? *mma : stored_kernels();
}

}  // namespace

const KernelSet& DeviceHead::kernels_for(const AttentionProblem& problem,
                                         const DeviceShare& share) {
  return kernels_of(type_for(problem), HeadFormat::of(problem).padded_dim, share);
}

const KernelSet& DeviceHead::kernels_for_type(DType dtype, const DeviceShare& share) {
  return kernels_of(dtype, kChunkChannels, share);
}

int64_t DeviceHead::norm_rows(const AttentionProblem& problem, const KernelSet& kernels) {
  // Products that are stored have a size of their own.
  if (kernels.stored) return 0;
  // The host has to tell of every tile that the mask cuts: the lanes share that out.
  if (!problem.mask().is_none()) return Lane::kMostRows;
  const HeadFormat format = HeadFormat::of(problem, true);
  const int64_t parts = ceil_div(problem.num_keys(), kSegmentKeys) + 1;
  const int64_t row_bytes = parts * static_cast<int64_t>(sizeof(RowPart)) + format.row_bytes() +
                            format.source_row_bytes();
  const int64_t unit = int64_t{kernels.block_row_tiles} * kTileRows;
  return std::max<int64_t>(Lane::kMostRows, kSumBytes / row_bytes / unit * unit);
}

DType DeviceHead::type_for(const AttentionProblem& problem) {
  return HeadFormat::of(problem).has_features() ? DType::f32 : problem.q().dtype();
}

DeviceHead::DeviceHead(const AttentionProblem& problem, int64_t batch, int64_t head,
                       const Place& place, Trust trust)
    : problem_(problem),
      batch_(batch),
      head_(head),
      share_(place.share),
      fallback_(place.fallback),
      notice_(place.notice),
      kernels_(place.kernels),
      trust_(std::move(trust)),
      format_(HeadFormat::of(problem, !kernels_.stored)),
      features_(problem, batch, head),
      key_tiles_(static_cast<int>(ceil_div(problem.num_keys(), kTileKeys))),
      stored_tiles_(std::min(key_tiles_, Lane::kStoredTiles)),
      query_rows_(problem.q().device_rows(batch, head)),
      query_way_(way_of(query_rows_, format_, share_.device)) {
  // Products are always made of whole steps.
  tell_of_host_way(problem.q());
  tell_of_host_way(problem.k());
  const int64_t padded = round_up(key_tiles_, kernels_.stored ? stored_tiles_ : 1) * kTileKeys;
  try {
    KeyMemory::Held keys = share_.key_memory.take(padded * format_.row_bytes());
    const KeyUploader::Uploaded uploaded =
        share_.uploader.upload(format_, problem.k(), batch, problem.kv_head(head), padded,
                               static_cast<std::byte*>(keys->data()));
    key_exponent_ = uploaded.exponent;
    if (format_.tiled) most_held_ = most_held_length(problem, head, uploaded.longest);
    keys_ = std::move(keys);
  } catch (const OutOfDeviceMemory&) {
    if (notice_) {
      notice_("cuda: the keys of a head do not fit the device's memory: it is computed on the CPU");
    }
  }
}

void DeviceHead::tell_of_host_way(const HeadTensor& tensor) const {
  const std::string reason = host_way_reason(tensor, format_, share_.device);
  if (reason.empty() || !notice_) return;
  const std::string line = "cuda: tensors in the memory of device " +
                           std::to_string(tensor.source().device_place()->device) +
                           " come to device " + std::to_string(share_.device.index()) +
                           " through the host: " + reason;
  if (share_.is_news(line)) notice_(line);
}

const BoundHead& DeviceHead::fallback_head() const {
  std::call_once(fallback_once_, [&] { fallback_head_ = fallback_.bind(problem_, batch_, head_); });
  return *fallback_head_;
}

void DeviceHead::run(const std::function<void(Lane&)>& on_device,
                     const std::function<void(const BoundHead&)>& elsewhere) const {
  if (!is_on_device() || !try_on_device(on_device)) elsewhere(fallback_head());
}

bool DeviceHead::try_on_device(const std::function<void(Lane&)>& on_device) const {
  const auto tell = [&](const std::string& line) {
    if (notice_) notice_("cuda: out of device memory: " + line);
  };
  try {
    const LanePool::Lease lane = share_.pool.take();
    for (bool again = true; again;) {
      try {
        lane->begin_call();
        // The tensor's memory may be given back when the call has failed.
        const DrainedStream drained(fetches_queries() ? lane->stream() : nullptr);
        on_device(*lane);
        lane->end_call();
        return true;
      } catch (const OutOfDeviceMemory&) {
        again = lane->halve();
        if (again) tell("steps are halved to " + std::to_string(lane->most_rows()) + " rows");
      }
    }
  } catch (const OutOfDeviceMemory&) {
    // Not even a lane could be made.
  }
  tell("a part is computed on the CPU");
  return false;
}

int DeviceHead::step_rows(const Lane& lane) const {
  return kernels_.stored ? std::min(lane.most_rows(), Lane::kStoredRows) : lane.most_rows();
}

int DeviceHead::norm_step_rows(const Lane& lane) const {
  if (lane.is_halved()) return step_rows(lane);
  return std::max(step_rows(lane), static_cast<int>(norm_rows(problem_, kernels_)));
}

/// Key tiles of one step: all, unless products or masks must be made first. Whole segments.
int DeviceHead::step_tiles(int row_tiles) const {
  int tiles = key_tiles_;
  if (!problem_.mask().is_none()) {
    const int64_t tile_bytes = MaskTiles::most_bytes(problem_.mask(), row_tiles);
    const auto most = static_cast<int>(kMaskBytes / tile_bytes / kSegmentTiles) * kSegmentTiles;
    tiles = std::min(tiles, std::max(most, kSegmentTiles));
  }
  if (!kernels_.stored || stored_tiles_ == key_tiles_) return tiles;
  // A step may not reach into the next product.
  while (tiles < stored_tiles_ && stored_tiles_ % tiles != 0) tiles -= kSegmentTiles;
  return std::min(tiles, stored_tiles_);
}

void DeviceHead::load_mask(Lane& lane, Rows& rows, int first_tile, int end_tile) const {
  if (problem_.mask().is_none()) return;
  // Entries follow the sums of the same rows: often all of the mask is there.
  if (rows.masked_tiles.begin <= first_tile && end_tile <= rows.masked_tiles.end) return;
  rows.call.mask = {};
  rows.masked.clear();
  rows.masked_tiles = {first_tile, end_tile};
  const MaskTiles mask = make_mask_tiles(problem_, batch_, head_, rows.index, first_tile, end_tile);
  if (mask.tiles.empty()) return;
  if (lane.log().is_on()) rows.masked = mask.columns(rows.call.rows);
  const auto put = [&](DeviceBuffer& buffer, const auto& values) {
    using T = typename std::remove_cvref_t<decltype(values)>::value_type;
    T* const to = buffer.get<T>(static_cast<int64_t>(values.size()));
    lane.upload(to, std::span<const T>(values));
    return to;
  };
  TileMaskView& view = rows.call.mask;
  view.first = first_tile;
  view.stride = end_tile - first_tile;
  view.tiles = put(lane.mask_tiles, mask.tiles);
  if (!mask.bits.empty()) view.bits = put(lane.mask_bits, mask.bits);
  if (!mask.biases.empty()) view.biases = put(lane.mask_biases, mask.biases);
}

/// The products of the step that `tile` belongs to, where cuBLAS makes them.
void DeviceHead::make_products(Lane& lane, Rows& rows, int tile) const {
  if (!kernels_.stored) return;
  const int first = tile / stored_tiles_ * stored_tiles_;
  CallArgs& call = rows.call;
  if (call.products != nullptr && call.products_first == first) return;
  call.products_first = first;
  call.products_stride = int64_t{stored_tiles_} * kTileKeys;
  float* const products =
      lane.products.get<float>(int64_t{call.row_tiles} * kTileRows * call.products_stride);
  lane.multiply(call, data_type(format_), share_.tf32, first, stored_tiles_, products);
  call.products = products;
}

/// Which of the rows that load_rows() has brought are held; null: none.
const int32_t* DeviceHead::find_held(Lane& lane, const Rows& rows) const {
  if (most_held_ < 0) return nullptr;
  const int64_t padded_rows = int64_t{rows.call.row_tiles} * kTileRows;
  auto* const held = lane.held_rows.get<int32_t>(padded_rows);
  measure_queries(format_, static_cast<const std::byte*>(lane.query_source.data()), rows.call.rows,
                  padded_rows, most_held_, held, lane.stream(), lane.log());
  return held;
}

/// Blocks of the kernels that pass over keys, before these are split.
int DeviceHead::row_blocks(const Rows& rows) const {
  return static_cast<int>(ceil_div(rows.call.row_tiles, kernels_.block_row_tiles));
}

DeviceHead::StepNorms DeviceHead::sum_step(Lane& lane, Rows& rows, bool moments) const {
  const int segments = static_cast<int>(ceil_div(key_tiles_, kSegmentTiles));
  const int64_t stride = int64_t{rows.call.row_tiles} * kTileRows;
  RowPart* const parts = lane.parts.get<RowPart>(segments * stride);
  const int step = step_tiles(rows.call.row_tiles);
  const int32_t* const held = find_held(lane, rows);
  int resident = 1;
  check(kernels_.resident_blocks(format_.padded_dim, &resident), "the row sums' occupancy");
  for (int tile = 0; tile < key_tiles_; tile += step) {
    const int end = std::min(tile + step, key_tiles_);
    load_mask(lane, rows, tile, end);
    make_products(lane, rows, tile);
    NormArgs args;
    args.call = rows.call;
    args.first_segment = tile / kSegmentTiles;
    args.end_segment = static_cast<int>(ceil_div(end, kSegmentTiles));
    args.split_segments = plan_splits(row_blocks(rows), args.end_segment - args.first_segment,
                                      share_.device.multiprocessors(), resident)
                              .split_segments;
    args.parts = parts;
    args.held = held;
    lane.log().time(
        [&] { return row_sums_work(args, moments, facts_of(rows, kernels_.name)); },
        [&] { check(kernels_.sum_rows(args, moments, lane.stream()), "the row sums"); });
  }
  return finish_sums(lane, rows, segments, moments);
}

DeviceHead::StepNorms DeviceHead::finish_sums(Lane& lane, const Rows& rows, int segments,
                                              bool moments) const {
  CombineRowsArgs args;
  args.rows = rows.call.rows;
  args.stride = int64_t{rows.call.row_tiles} * kTileRows;
  args.segments = segments;
  args.parts = static_cast<const RowPart*>(lane.parts.data());
  args.rows_out = lane.row_parts.get<RowPart>(args.rows);
  lane.log().time(
      [&] {
        const int64_t parts = args.rows * (int64_t{segments} + 1);
        return LaunchWork{.kernel = "combine rows",
                          .bytes = static_cast<double>(parts) * sizeof(RowPart)};
      },
      [&] { check(launch_combine_rows(args, lane.stream()), "the row sums"); });
  std::vector<RowPart> parts(static_cast<size_t>(args.rows));
  lane.download(std::span(parts), args.rows_out);
  StepNorms step;
  step.norms.reserve(parts.size());
  for (size_t row = 0; row < parts.size(); ++row) {
    const RowPart& part = parts[row];
    // A sink has no key: it is added to the sum that the device made of the keys.
    const double sink = problem_.sinks().logit(batch_, head_, rows.index[row]);
    step.norms.push_back(norm_of(rows, row, part).with_logit(sink));
    if (!moments) continue;
    // −Σ p·log₂(p) with p = entry / sum and log₂(p) = x − reference − log₂(sum). Rounding may leave
    // the entropy of a single key a little below 0.
    const double entropy =
        part.sum > 0 ? std::numbers::ln2 * (std::log2(part.sum) - part.moment / part.sum) : 0;
    step.entropy.push_back(std::max(0.0, entropy));
  }
  return step;
}

CallFacts DeviceHead::facts_of(const Rows& rows, const char* product) const {
  return {product, kernels_.stored, format_.head_dim, format_.row_bytes(), rows.masked};
}

RowNorm DeviceHead::norm_of(const Rows& rows, size_t row, const RowPart& part) const {
  const int64_t query = rows.index[row];
  if (!std::isfinite(part.sum)) refuse_row(query);
  if (part.any == 0) return {};
  RowNorm norm = RowNorm::from_value(part.sum);
  if (is_linear(format_.score)) {
    // A sum near float32's end has lost keys to it. elu(x) + 1 is never 0, max(x, 0) may be.
    const bool is_relu = format_.score == ScoreFunction::linear_relu;
    if (!is_relu && part.sum < 0x1p-80) refuse_row(query);
    if (is_relu && part.sum < 0x1p-60 && (part.sum > 0 || features_.meets_any(query))) {
      refuse_row(query);
    }
    if (norm.sum != 0) norm.exponent += rows.exponents[row] + key_exponent_;
    return norm;
  }
  if (part.held != 0 && !is_held_sum(part.sum, problem_.num_keys())) {
    refuse_held_sum(query, part.sum);
  }
  const float largest = part.reference + part.largest;
  // A row that has keys is never zeros.
  if (!(std::fabs(largest) <= kMaxExponent) || !(part.sum > 0)) refuse_row(query);
  norm.exponent += static_cast<int64_t>(part.reference);
  return norm;
}

void DeviceHead::load_scales(Lane& lane, const Rows& rows, std::span<const RowNorm> norms) const {
  std::vector<RowScale> scales;
  for (size_t row = 0; row < norms.size(); ++row) {
    const RowNorm& norm = norms[row];
    RowScale scale;
    if (norm.sum == 0) {
      // A masked row: no factor can make anything of its entries.
    } else if (is_linear(format_.score)) {
      const int64_t shift = rows.exponents[row] + key_exponent_ - norm.exponent;
      scale.factor = static_cast<float>(std::ldexp(1.0 / norm.sum, static_cast<int>(shift)));
    } else {
      scale = {static_cast<float>(norm.exponent), static_cast<float>(1.0 / norm.sum)};
    }
    scales.push_back(scale);
  }
  RowScale* const to = lane.scales.get<RowScale>(static_cast<int64_t>(scales.size()));
  lane.upload(to, std::span<const RowScale>(scales));
}

void DeviceHead::row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                           std::span<std::byte> workspace) const {
  assert(is_normalised_score() && norms.size() == queries.index.size());
  run(
      [&](Lane& lane) {
        const auto total = static_cast<int64_t>(queries.index.size());
        const int most = norm_step_rows(lane);
        for (int64_t first = 0; first < total; first += most) {
          Rows rows = load_rows(lane, queries, first, std::min<int64_t>(most, total - first));
          const StepNorms step = sum_step(lane, rows, false);
          std::copy(step.norms.begin(), step.norms.end(), norms.begin() + first);
        }
      },
      [&](const BoundHead& head) {
        // Its workspace is made for so many, see DeviceBackend::workspace_bytes.
        for (size_t first = 0; first < norms.size(); first += kFallbackRows) {
          const size_t count = std::min<size_t>(kFallbackRows, norms.size() - first);
          std::span<std::byte> left = workspace;
          const QueryBlock rows =
              on_host(queries.part(first, count, format_.source_row_bytes()), left);
          head.row_norms(rows, norms.subspan(first, count), left);
        }
      });
}

void DeviceHead::refuse_row(int64_t row) const {
  throw Error(
      ErrorCode::value,
      problem_.name() + ": head " + std::to_string(head_) + ", query " + std::to_string(row) +
          (is_linear(format_.score)
               ? ": the scores add up to more or less than float32 holds (--backend reference "
                 "counts in double)"
               : ": logits are too large for float32 to tell keys apart (limit 2900000)"));
}

void DeviceHead::refuse_held_sum(int64_t row, double sum) const {
  throw Error(ErrorCode::unavailable, "cuda: " + problem_.name() + ": head " +
                                          std::to_string(head_) + ", query " + std::to_string(row) +
                                          ": the device's sum is none that queries and keys of " +
                                          "these lengths have (got " + std::to_string(sum) + ")");
}

}  // namespace attnscope::cuda
