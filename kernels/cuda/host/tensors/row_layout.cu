#include "kernels/cuda/host/tensors/row_layout.h"

#include <cassert>

#include "kernels/cuda/kernel/measure_rows.h"
#include "kernels/cuda/kernel/place_rows.h"

namespace attnscope::cuda {
namespace {

MeasureRowsArgs measured(const HeadFormat& format, const std::byte* source, int64_t count) {
  assert(format.tiled);
  MeasureRowsArgs args;
  args.source = source;
  args.rows = static_cast<int>(count);
  args.channels = format.head_dim;
  args.f16 = format.source == DType::f16;
  return args;
}

void queue_measuring(const MeasureRowsArgs& args, cudaStream_t stream, LaunchLog& log) {
  log.time(
      [&] {
        const int64_t bytes = int64_t{args.rows} * args.channels * 2 +
                              (args.held == nullptr ? 0 : int64_t{args.out_rows} * 4);
        return LaunchWork{.kernel = "measure rows", .bytes = static_cast<double>(bytes)};
      },
      [&] { check(launch_measure_rows(args, stream), "measuring rows"); });
}

}  // namespace

void place_rows(const HeadFormat& format, Operand operand, const std::byte* source, int64_t count,
                int64_t placed, std::byte* to, cudaStream_t stream, LaunchLog& log) {
  assert(!format.has_features() && count <= placed && placed % format.row_unit() == 0);
  PlaceRowsArgs args;
  args.source = source;
  args.out = to;
  args.rows = static_cast<int>(count);
  args.out_rows = static_cast<int>(placed);
  args.source_bytes = static_cast<int>(format.source_row_bytes());
  args.row_bytes = static_cast<int>(format.row_bytes());
  args.tiled = format.tiled;
  args.queries = operand == Operand::queries;
  log.time(
      [&] {
        const int64_t bytes = count * format.source_row_bytes() + placed * format.row_bytes();
        return LaunchWork{.kernel = "place rows", .bytes = static_cast<double>(bytes)};
      },
      [&] { check(launch_place_rows(args, stream), "placing rows"); });
}

void measure_keys(const HeadFormat& format, const std::byte* source, int64_t count,
                  int32_t* longest, cudaStream_t stream, LaunchLog& log) {
  MeasureRowsArgs args = measured(format, source, count);
  args.out_rows = args.rows;
  args.longest = longest;
  queue_measuring(args, stream, log);
}

void measure_queries(const HeadFormat& format, const std::byte* source, int64_t count,
                     int64_t placed, float most, int32_t* held, cudaStream_t stream,
                     LaunchLog& log) {
  MeasureRowsArgs args = measured(format, source, count);
  args.out_rows = static_cast<int>(placed);
  args.held = held;
  args.most = most;
  queue_measuring(args, stream, log);
}

}  // namespace attnscope::cuda
