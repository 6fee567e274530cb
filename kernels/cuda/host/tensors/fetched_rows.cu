#include "kernels/cuda/host/tensors/fetched_rows.h"

namespace attnscope::cuda {
namespace {

/// True of rows that a copy between devices can bring: it moves runs of bytes, each farther on.
bool is_pitched(const DeviceRows& rows) {
  return (rows.channel_stride == 1 || rows.width == 1) &&
         (rows.row_stride >= rows.width || rows.rows == 1);
}

void queue_gather(const GatherRowsArgs& args, cudaStream_t stream, LaunchLog& log) {
  log.time(
      [&] {
        const int64_t bytes =
            2 * int64_t{args.source.rows} * args.source.channels * args.source.element_bytes;
        return LaunchWork{.kernel = "gather rows", .bytes = static_cast<double>(bytes)};
      },
      [&] { check(launch_gather_rows(args, stream), "gathering rows"); });
}

}  // namespace

TensorRows tensor_rows(const DeviceRows& rows) {
  TensorRows of;
  of.data = rows.data;
  of.rows = static_cast<int>(rows.rows);
  of.channels = static_cast<int>(rows.width);
  of.row_stride = rows.row_stride;
  of.channel_stride = rows.channel_stride;
  of.element_bytes = static_cast<int>(dtype_bytes(rows.dtype));
  return of;
}

RowsWay way_of(const std::optional<DeviceRows>& rows, const HeadFormat& format, Device& device) {
  if (!rows || format.has_features()) return RowsWay::host;
  if (rows->device == device.index()) return RowsWay::gather;
  const bool straight = is_pitched(*rows) && device.peer(rows->device) == Device::Peer::open;
  return straight ? RowsWay::peer : RowsWay::host;
}

std::string host_way_reason(const HeadTensor& tensor, const HeadFormat& format, Device& device) {
  const auto place = tensor.source().device_place();
  const auto rows = tensor.device_rows(0, 0);
  if (!place || way_of(rows, format, device) != RowsWay::host) return {};
  if (!rows) return "they are rounded there to float32";
  if (format.has_features()) return "their features are made there";
  if (!is_pitched(*rows)) return "their rows do not lie in one piece";
  return device.peer(rows->device) == Device::Peer::wrong ? "copies between them come out wrong"
                                                          : "it does not reach the other's memory";
}

void fetch_rows(RowsWay way, const DeviceRows& rows, std::byte* to, cudaStream_t stream,
                LaunchLog& log) {
  if (way == RowsWay::gather) return gather_listed_rows(rows, nullptr, rows.rows, to, stream, log);
  const auto width = static_cast<size_t>(rows.row_bytes());
  // A single row's stride says nothing.
  const size_t pitch =
      rows.rows == 1 ? width : static_cast<size_t>(rows.row_stride * dtype_bytes(rows.dtype));
  log.time_copy("copy from another device", rows.rows * rows.row_bytes(), [&] {
    check(cudaMemcpy2DAsync(to, width, rows.data, pitch, width, static_cast<size_t>(rows.rows),
                            cudaMemcpyDefault, stream),
          "copying from another device");
  });
}

void gather_listed_rows(const DeviceRows& rows, const int64_t* places, int64_t count, std::byte* to,
                        cudaStream_t stream, LaunchLog& log) {
  GatherRowsArgs args;
  args.source = tensor_rows(rows);
  args.source.rows = static_cast<int>(count);
  args.places = places;
  args.out = to;
  queue_gather(args, stream, log);
}

}  // namespace attnscope::cuda
