#include "kernels/cuda/host/row_layout.h"

#include <cassert>

#include "kernels/cuda/kernel/place_rows.h"

namespace attnscope::cuda {

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

}  // namespace attnscope::cuda
