#include "io/packed_sequences.h"

#include <cstring>

#include "core/error.h"
#include "io/file_tensor.h"

namespace attnscope {
namespace {

/// More sequences than any batch packs.
constexpr int64_t kMaxBoundaries = 1 << 20;

void check_boundaries(const std::vector<int64_t>& list, const TensorSource& tensor, int64_t tokens,
                      const char* what) {
  const auto fail = [&](const std::string& text) { throw file_error(tensor.name(), "", text); };
  if (list.front() != 0) fail("does not begin with 0 (got " + std::to_string(list.front()) + ")");
  for (size_t i = 1; i < list.size(); ++i) {
    if (list[i] >= list[i - 1]) continue;
    fail("runs backwards at " + std::to_string(i) + " (got " + std::to_string(list[i]) + " after " +
         std::to_string(list[i - 1]) + ")");
  }
  if (list.back() != tokens) {
    fail("does not end at the last of the " + std::string(what) + " (got " +
         std::to_string(list.back()) + ", expected " + std::to_string(tokens) + ")");
  }
}

}  // namespace

std::vector<int64_t> read_boundaries(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  const bool integers = tensor.dtype() == DType::i32 || tensor.dtype() == DType::i64;
  if (!integers || shape.size() != 1 || shape[0] < 2 || shape[0] > kMaxBoundaries) {
    throw file_error(tensor.name(), "",
                     "expected int32 or int64 [sequences + 1] (got " +
                         std::string(dtype_name(tensor.dtype())) + " " + shape_text(shape) + ")");
  }
  const auto element = static_cast<size_t>(dtype_bytes(tensor.dtype()));
  std::vector<std::byte> bytes(static_cast<size_t>(shape[0]) * element);
  const int64_t begin = 0;
  tensor.read({&begin, 1}, shape, bytes.data());
  std::vector<int64_t> list(static_cast<size_t>(shape[0]));
  for (size_t i = 0; i < list.size(); ++i) {
    if (element == sizeof(int64_t)) {
      std::memcpy(&list[i], bytes.data() + i * element, element);
    } else {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * element, element);
      list[i] = value;
    }
  }
  return list;
}

Mask packed_mask(const CallTensors& tensors, const HeadTensor& q, const HeadTensor& k, bool causal,
                 std::vector<std::string>& notes) {
  const TensorSource& of_q = *tensors.cu_seqlens_q;
  const TensorSource& of_k = tensors.cu_seqlens_k ? *tensors.cu_seqlens_k : of_q;
  if (q.batch() != 1) {
    throw file_error(of_q.name(), "",
                     "packed sequences stand in one batch item (got " + std::to_string(q.batch()) +
                         "): should the layout be shd?");
  }
  std::vector<int64_t> queries = read_boundaries(of_q);
  std::vector<int64_t> keys = read_boundaries(of_k);
  check_boundaries(queries, of_q, q.tokens(), "queries");
  check_boundaries(keys, of_k, k.tokens(), "keys");
  if (queries.size() != keys.size()) {
    throw file_error(of_k.name(), "",
                     "has another number of sequences (got " + std::to_string(keys.size() - 1) +
                         ", expected " + std::to_string(queries.size() - 1) + ")");
  }
  if (causal && queries != keys) {
    throw file_error(of_k.name(), "",
                     "causal attention over sequences whose queries and keys are cut at different "
                     "places cannot be shown");
  }
  if (queries.size() == 2) return {};
  notes.push_back(of_q.name() + ": " + std::to_string(queries.size() - 1) +
                  " packed sequences, each attends to itself");
  return Mask::segments(std::move(queries), std::move(keys));
}

}  // namespace attnscope
