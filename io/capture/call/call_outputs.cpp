#include "io/capture/call/call_outputs.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "core/base/error.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

void expect_shape(const TensorSource& tensor, std::initializer_list<int64_t> expected) {
  const auto shape = tensor.shape();
  if (std::equal(shape.begin(), shape.end(), expected.begin(), expected.end())) return;
  throw file_error(tensor.name(), "",
                   "expected shape " + shape_text(std::vector<int64_t>(expected)) + " (got " +
                       shape_text(shape) + ")");
}

void check_rows(const TensorSource& rows, int64_t queries) {
  const auto shape = rows.shape();
  std::vector<int64_t> values(static_cast<size_t>(shape[0]));
  const int64_t begin = 0;
  rows.read({&begin, 1}, shape, reinterpret_cast<std::byte*>(values.data()));
  for (int64_t row : values) {
    if (row >= 0 && row < queries) continue;
    throw file_error(rows.name(), "",
                     "row " + std::to_string(row) + " is outside the sequence (limit " +
                         std::to_string(queries - 1) + ")");
  }
}

}  // namespace

void check_outputs(const CallTensors& tensors, const HeadTensors& heads, const std::string& name) {
  const int64_t batch = heads.q.batch();
  const int64_t count = heads.q.heads();
  if (tensors.lse) {
    if (tensors.lse->dtype() != DType::f32) {
      throw file_error(tensors.lse->name(), "",
                       "expected f32 (got " + std::string(dtype_name(tensors.lse->dtype())) + ")");
    }
    expect_shape(*tensors.lse, {batch, count, heads.q.tokens()});
  }
  if (!tensors.out && !tensors.out_rows) return;
  if (!tensors.out || !tensors.out_rows) {
    throw file_error(name, tensors.out ? "out" : "out_rows",
                     "the tensors out and out_rows belong together, and one is missing");
  }
  const auto rows = tensors.out_rows->shape();
  if (tensors.out_rows->dtype() != DType::i64 || rows.size() != 1) {
    throw file_error(tensors.out_rows->name(), "", "expected int64 [rows]");
  }
  if (!is_floating(tensors.out->dtype())) {
    throw file_error(tensors.out->name(), "", "expected a floating dtype");
  }
  const auto shape = tensors.out->shape();
  const int64_t width = heads.v ? heads.v.width() : shape.empty() ? 0 : shape.back();
  expect_shape(*tensors.out, {batch, count, rows[0], width});
  check_rows(*tensors.out_rows, heads.q.tokens());
}

}  // namespace attnscope
