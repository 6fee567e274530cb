#include "io/tensors/safetensors_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr int64_t kPieceBytes = int64_t{1} << 20;

/// The format's name of a dtype.
std::string_view stored_name(DType dtype) {
  constexpr std::array<std::string_view, 17> kNames{
      "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I64",
      "I32", "I16", "I8",  "U64",  "U32",     "U16",     "U8",          "BOOL"};
  return kNames[static_cast<size_t>(dtype)];
}

std::vector<int64_t> all_of_axis(int64_t extent) {
  std::vector<int64_t> places(static_cast<size_t>(extent));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

/// Brings forth the box of a tensor from axis `axis` on, cut so that a piece stays small.
void write_box(const TensorSource& tensor, size_t axis, std::vector<int64_t>& begin,
               std::vector<int64_t>& count, std::vector<std::byte>& buffer,
               const std::function<void(std::span<const std::byte>)>& write) {
  const int64_t bytes = *checked_count(count) * dtype_bytes(tensor.dtype());
  if (bytes == 0) return;
  if (bytes <= kPieceBytes || axis == count.size()) {
    buffer.resize(static_cast<size_t>(bytes));
    tensor.read(begin, count, buffer.data());
    write(buffer);
    return;
  }
  const int64_t extent = count[axis];
  const int64_t first = begin[axis];
  const int64_t step = std::max<int64_t>(1, extent * kPieceBytes / bytes);
  for (int64_t at = 0; at < extent; at += step) {
    begin[axis] = first + at;
    count[axis] = std::min(step, extent - at);
    write_box(tensor, axis + 1, begin, count, buffer, write);
  }
  begin[axis] = first;
  count[axis] = extent;
}

}  // namespace

int64_t TensorToWrite::bytes() const {
  const auto count = checked_count(shape);
  const auto bytes = count ? checked_mul(*count, dtype_bytes(dtype)) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::resource, name + ": is larger than any file");
  return *bytes;
}

TensorToWrite head_tensor_part(std::string name, const HeadTensor& tensor,
                               std::vector<int64_t> batch, std::vector<int64_t> heads) {
  const std::vector<int64_t> shape{static_cast<int64_t>(batch.size()),
                                   static_cast<int64_t>(heads.size()), tensor.tokens(),
                                   tensor.width()};
  return {std::move(name), tensor.dtype(), shape,
          [tensor, batch = std::move(batch), heads = std::move(heads)](const auto& write) {
            const int64_t row_bytes = std::max<int64_t>(1, tensor.row_bytes());
            const int64_t step = std::max<int64_t>(1, kPieceBytes / row_bytes);
            std::vector<std::byte> buffer;
            for (int64_t item : batch) {
              for (int64_t head : heads) {
                for (int64_t row = 0; row < tensor.tokens(); row += step) {
                  const IndexRange rows{row, std::min(row + step, tensor.tokens())};
                  buffer.resize(static_cast<size_t>(rows.size() * tensor.row_bytes()));
                  tensor.read_rows(item, head, rows, buffer.data());
                  write(std::span<const std::byte>(buffer));
                }
              }
            }
          }};
}

TensorToWrite tensor_part(std::string name, std::shared_ptr<const TensorSource> tensor,
                          std::vector<int64_t> first, std::vector<int64_t> second) {
  std::vector<int64_t> shape(tensor->shape().begin(), tensor->shape().end());
  if (shape.size() >= 2) {
    if (first.empty()) first = all_of_axis(shape[0]);
    if (second.empty()) second = all_of_axis(shape[1]);
    shape[0] = static_cast<int64_t>(first.size());
    shape[1] = static_cast<int64_t>(second.size());
  }
  const DType dtype = tensor->dtype();
  return {std::move(name), dtype, shape,
          [tensor = std::move(tensor), shape, first = std::move(first),
           second = std::move(second)](const auto& write) {
            std::vector<int64_t> begin(shape.size(), 0), count = shape;
            std::vector<std::byte> buffer;
            if (shape.size() < 2) {
              write_box(*tensor, 0, begin, count, buffer, write);
              return;
            }
            for (int64_t i : first) {
              for (int64_t j : second) {
                begin[0] = i;
                begin[1] = j;
                count[0] = count[1] = 1;
                write_box(*tensor, 2, begin, count, buffer, write);
              }
            }
          }};
}

void write_safetensors(StagedFile& file, const std::map<std::string, std::string>& metadata,
                       const std::vector<TensorToWrite>& tensors,
                       const std::function<void(int64_t bytes)>& progress) {
  OrderedJson header;
  header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    const int64_t bytes = tensor.bytes();
    header[tensor.name] = {{"dtype", stored_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  }
  std::string json = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  json.resize(static_cast<size_t>(round_up(static_cast<int64_t>(json.size()), 8)), ' ');
  const auto length = std::bit_cast<std::array<std::byte, 8>>(static_cast<uint64_t>(json.size()));
  file.append(length);
  file.append(std::as_bytes(std::span(json)));
  for (const TensorToWrite& tensor : tensors) {
    tensor.pieces([&](std::span<const std::byte> piece) {
      file.append(piece);
      progress(static_cast<int64_t>(piece.size()));
    });
  }
}

}  // namespace attnscope
