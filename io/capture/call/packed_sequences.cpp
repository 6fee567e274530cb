#include "io/capture/call/packed_sequences.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// More sequences than any batch packs.
constexpr int64_t kMaxBoundaries = 1 << 20;

Error misfit(ErrorCode code, const TensorSource& tensor, const std::string& text) {
  return Error(code, tensor.name() + ": " + text);
}

void check_boundaries(const std::vector<int64_t>& list, const TensorSource& tensor,
                      const HeadTensor& packed, const char* what, ErrorCode code) {
  if (list.front() != 0) {
    throw misfit(code, tensor, "does not begin with 0 (got " + std::to_string(list.front()) + ")");
  }
  for (size_t i = 1; i < list.size(); ++i) {
    if (list[i] >= list[i - 1]) continue;
    throw misfit(code, tensor,
                 "runs backwards at " + std::to_string(i) + " (got " + std::to_string(list[i]) +
                     " after " + std::to_string(list[i - 1]) + ")");
  }
  if (list.back() == packed.tokens()) return;
  const std::string tokens = std::to_string(packed.tokens()) + " " + what;
  const std::string by = " (by the layout " + std::string(layout_name(packed.layout())) + ")";
  if (list.back() > packed.tokens()) {
    throw misfit(code, tensor,
                 "ends at " + std::to_string(list.back()) + ", beyond the " + tokens + by);
  }
  throw misfit(code, tensor,
               "ends at " + std::to_string(list.back()) + " of " + tokens + by +
                   ": where the rest is padding, cut it off, or make it a sequence of its own by a "
                   "further boundary, " +
                   std::to_string(packed.tokens()));
}

/// Boundaries that were written out in an option.
class ListTensor : public TensorSource {
 public:
  ListTensor(std::string name, std::vector<int64_t> values)
      : name_(std::move(name)),
        values_(std::move(values)),
        extent_(static_cast<int64_t>(values_.size())) {}
  DType dtype() const override { return DType::i64; }
  std::span<const int64_t> shape() const override { return {&extent_, 1}; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    std::memcpy(destination, values_.data() + begin[0],
                static_cast<size_t>(count[0]) * sizeof(int64_t));
  }

 private:
  const std::string name_;
  const std::vector<int64_t> values_;
  const int64_t extent_;
};

std::shared_ptr<const TensorSource> open_boundaries(const std::string& option,
                                                    const std::string& text, const char* role,
                                                    const ReadControl& control) {
  if (!is_number_list(text)) {
    std::error_code error;
    if (!std::filesystem::exists(reference_file(text), error)) {
      throw usage_error(option + " " + text + ": neither a list such as 0,9,24 nor a file");
    }
    return open_tensor_reference(text, usual_names(role), control);
  }
  std::vector<int64_t> values;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    int64_t value = 0;
    const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || stop != word.data() + word.size() || value < 0) {
      throw usage_error(option + " " + text + ": \"" + word +
                        "\" is no whole number from 0 (expected a list such as 0,9,24)");
    }
    values.push_back(value);
    at = end + 1;
  }
  return std::make_shared<ListTensor>(option, std::move(values));
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

CallTensors with_packed_options(CallTensors tensors, const FactOverrides& overrides,
                                const ReadControl& control, std::vector<std::string>& notes) {
  if (overrides.cu_seqlens_k && !overrides.cu_seqlens) {
    throw usage_error("--cu-seqlens-k needs --cu-seqlens, which is of the queries");
  }
  if (!overrides.cu_seqlens) return tensors;
  if (tensors.cu_seqlens_q) {
    notes.push_back("--cu-seqlens " + *overrides.cu_seqlens + " overrides the recorded " +
                    tensors.cu_seqlens_q->name());
  }
  tensors.cu_seqlens_q =
      open_boundaries("--cu-seqlens", *overrides.cu_seqlens, "cu_seqlens_q", control);
  tensors.cu_seqlens_k =
      overrides.cu_seqlens_k
          ? open_boundaries("--cu-seqlens-k", *overrides.cu_seqlens_k, "cu_seqlens_k", control)
          : nullptr;
  return tensors;
}

Mask packed_mask(const CallTensors& tensors, const HeadTensor& q, const HeadTensor& k,
                 const CountedPlaces& counted, ErrorCode code, std::vector<std::string>& notes) {
  const TensorSource& of_q = *tensors.cu_seqlens_q;
  const TensorSource& of_k = tensors.cu_seqlens_k ? *tensors.cu_seqlens_k : of_q;
  if (q.batch() != 1) {
    throw misfit(code, of_q,
                 "packed sequences stand in one batch item (got " + std::to_string(q.batch()) +
                     "): should the layout be shd?");
  }
  std::vector<int64_t> queries = read_boundaries(of_q);
  std::vector<int64_t> keys = read_boundaries(of_k);
  check_boundaries(queries, of_q, q, "queries", code);
  check_boundaries(keys, of_k, k, "keys", code);
  if (queries.size() != keys.size()) {
    throw misfit(code, of_k,
                 "has another number of sequences (got " + std::to_string(keys.size() - 1) +
                     ", expected " + std::to_string(queries.size() - 1) + ")");
  }
  if (!counted.from_first.empty() && queries != keys) {
    throw misfit(code, of_k,
                 counted.from_first +
                     " attention over sequences whose queries and keys are cut at "
                     "different places cannot be shown");
  }
  const int64_t shift = k.tokens() - q.tokens();
  for (size_t i = 1; i < queries.size() && !counted.from_last.empty(); ++i) {
    if (keys[i] - queries[i] == shift) continue;
    throw misfit(code, of_k,
                 counted.from_last + " is counted from the last token, and sequence " +
                     std::to_string(i - 1) + " has its last key elsewhere than the whole call");
  }
  if (queries.size() == 2) return {};
  notes.push_back(of_q.name() + ": " + std::to_string(queries.size() - 1) +
                  " packed sequences, each attends to itself");
  return Mask::segments(std::move(queries), std::move(keys));
}

}  // namespace attnscope
