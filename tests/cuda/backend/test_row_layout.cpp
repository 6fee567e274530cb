// How rows of queries and keys come to lie in device memory. On the emulation.
#include <cstring>
#include <random>
#include <vector>

#include "core/base/checked_math.h"
#include "kernels/cuda/host/tensors/row_layout.h"
#include "kernels/cuda/kernel/tile_args.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

/// The bytes of rows one by one, as docs/cuda.md and tile_args.h say: units of 16 bytes, chunks of
/// 64 channels, eight units of a row turned by its place.
std::vector<std::byte> expected_bytes(const cuda::HeadFormat& format, bool queries,
                                      const std::vector<std::byte>& source, int64_t count,
                                      int64_t placed) {
  std::vector<std::byte> out(static_cast<size_t>(placed * format.row_bytes()));
  for (int64_t row = 0; row < count; ++row) {
    const int64_t tile = row / 128;
    int64_t line = row % 128;
    // Sixteen rows of each of four warps, then their second sixteen.
    if (queries) line = line / 32 * 16 + line / 16 % 2 * 64 + line % 16;
    for (int64_t at = 0; at < format.source_row_bytes(); ++at) {
      int64_t to = row * format.row_bytes() + at;
      if (format.tiled) {
        const int64_t unit = at / 16 % 8;
        to = tile * 128 * format.row_bytes() + at / 128 * (128 * 128) + line * 128 +
             (unit ^ (line % 8)) * 16 + at % 16;
      }
      out[static_cast<size_t>(to)] =
          source[static_cast<size_t>(row * format.source_row_bytes() + at)];
    }
  }
  return out;
}

/// The bytes of rows as the device places them.
std::vector<std::byte> placed_bytes(const cuda::HeadFormat& format, cuda::Operand operand,
                                    const std::vector<std::byte>& source, int64_t count,
                                    int64_t placed) {
  cuda::Device device(0, 0, 0);
  const cuda::Stream stream;
  cuda::LaunchLog log(stream, nullptr);
  cuda::DeviceBuffer from(device), to(device);
  const auto bytes = static_cast<int64_t>(source.size());
  auto* const raw = from.get<std::byte>(bytes);
  std::vector<std::byte> result(static_cast<size_t>(placed * format.row_bytes()));
  auto* const out = to.get<std::byte>(static_cast<int64_t>(result.size()));
  cuda::check(cudaMemcpy(raw, source.data(), source.size(), cudaMemcpyHostToDevice), "in");
  cuda::place_rows(format, operand, raw, count, placed, out, stream, log);
  stream.finish();
  cuda::check(cudaMemcpy(result.data(), out, result.size(), cudaMemcpyDeviceToHost), "out");
  return result;
}

}  // namespace

TEST_CASE("rows are placed byte by byte where kernels look for them, with zeros around them") {
  emulation::reset();
  std::mt19937 random(7);
  struct Case {
    DType dtype;
    int head_dim;
    int64_t rows;
  };
  for (const Case& c :
       {Case{DType::f16, 64, 128}, Case{DType::bf16, 72, 140}, Case{DType::f16, 128, 300},
        Case{DType::f16, 5, 1}, Case{DType::bf16, 37, 131}, Case{DType::f32, 40, 70},
        Case{DType::f32, 3, 129}}) {
    for (const bool tiled : {false, true}) {
      if (tiled && c.dtype == DType::f32) continue;
      cuda::HeadFormat format;
      format.source = c.dtype;
      format.head_dim = c.head_dim;
      format.padded_dim = static_cast<int>(round_up(c.head_dim, 16));
      format.element_bytes = dtype_bytes(c.dtype);
      format.tiled = tiled;
      std::vector<std::byte> source(static_cast<size_t>(c.rows * format.source_row_bytes()));
      for (std::byte& byte : source) byte = static_cast<std::byte>(random());
      const int64_t placed = round_up(c.rows, 128);
      for (const bool queries : {false, true}) {
        INFO(dtype_name(c.dtype) << " x " << c.head_dim << ", " << c.rows << " rows, "
                                 << (tiled ? "in tiles" : "one after the other")
                                 << (queries ? ", queries" : ", keys"));
        const auto operand = queries ? cuda::Operand::queries : cuda::Operand::keys;
        CHECK(placed_bytes(format, operand, source, c.rows, placed) ==
              expected_bytes(format, queries, source, c.rows, placed));
      }
    }
  }
  CHECK(emulation::counters().device_allocations == 0);
}

}  // namespace attnscope::test
