#include "io/tensors/token_order_file.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/files/input_file.h"
#include "io/tensors/npy.h"

namespace attnscope {
namespace {

/// More tokens than any sequence has, with their digits.
constexpr int64_t kMostTextBytes = int64_t{64} << 20;
constexpr int64_t kMostTokens = int64_t{1} << 23;
constexpr std::string_view kNpyMagic = "\x93NUMPY";

std::string bytes_of(const InputFile& input, int64_t count) {
  std::string bytes(static_cast<size_t>(std::min(count, input.size())), '\0');
  input.read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return bytes;
}

template <typename T>
std::vector<int64_t> values_of(const TensorSource& tensor) {
  const int64_t begin = 0, count = tensor.shape()[0];
  std::vector<T> values(static_cast<size_t>(count));
  tensor.read({&begin, 1}, {&count, 1}, reinterpret_cast<std::byte*>(values.data()));
  return {values.begin(), values.end()};
}

std::vector<int64_t> read_array(const std::filesystem::path& file) {
  const auto tensor = open_npy(file)->tensor("");
  const bool whole = tensor->dtype() == DType::i32 || tensor->dtype() == DType::i64;
  if (!whole || tensor->shape().size() != 1) {
    throw file_error(file.string(), "",
                     "expected an array of one axis of int32 or int64 (got " +
                         std::string(dtype_name(tensor->dtype())) + " with " +
                         std::to_string(tensor->shape().size()) + " axes)");
  }
  if (tensor->shape()[0] > kMostTokens) {
    throw file_error(file.string(), "",
                     "has " + std::to_string(tensor->shape()[0]) +
                         " numbers, more than any sequence has tokens");
  }
  return tensor->dtype() == DType::i32 ? values_of<int32_t>(*tensor) : values_of<int64_t>(*tensor);
}

std::vector<int64_t> read_numbers(const std::filesystem::path& file, const std::string& text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<int64_t> numbers;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const size_t past = std::min(text.find_first_of(kBetween, at), text.size());
    int64_t number = 0;
    const char* const end = text.data() + past;
    const auto [stop, error] = std::from_chars(text.data() + at, end, number);
    if (error != std::errc() || stop != end) {
      constexpr size_t kShown = 40;
      throw file_error(file.string(), "",
                       "number " + std::to_string(numbers.size()) +
                           ": expected a whole number, got " +
                           one_line(text.substr(at, std::min(past - at, kShown))));
    }
    numbers.push_back(number);
    at = past;
  }
  if (numbers.empty()) throw file_error(file.string(), "", "holds no numbers");
  return numbers;
}

}  // namespace

TokenOrder read_token_order(const std::filesystem::path& file) {
  TokenOrder order;
  order.kind = TokenOrder::Kind::listed;
  order.file = file.string();
  std::vector<int64_t> list;
  const InputFile input(file);
  if (bytes_of(input, static_cast<int64_t>(kNpyMagic.size())) == kNpyMagic) {
    list = read_array(file);
  } else if (input.size() > kMostTextBytes) {
    throw file_error(file.string(), "",
                     "is too long for an order (got " + std::to_string(input.size()) +
                         " bytes, limit " + std::to_string(kMostTextBytes) + ")");
  } else {
    list = read_numbers(file, bytes_of(input, input.size()));
  }
  order.list = std::make_shared<const std::vector<int64_t>>(std::move(list));
  return order;
}

TokenOrder open_token_order(const std::string& name_or_file) {
  std::error_code ignored;
  const bool file =
      !TokenOrder::is_name(name_or_file) && std::filesystem::exists(name_or_file, ignored);
  return file ? read_token_order(name_or_file) : TokenOrder::parse(name_or_file);
}

}  // namespace attnscope
