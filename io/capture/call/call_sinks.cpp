#include "io/capture/call/call_sinks.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// True where each extent is the call's or 1.
bool fits(const Sinks::Shape& shape, const Sinks::Shape& call) {
  return std::equal(shape.begin(), shape.end(), call.begin(),
                    [](int64_t own, int64_t all) { return own == 1 || own == all; });
}

/// The error of a tensor that cannot be the sinks of a call.
using Misfit = std::function<Error(const std::string& what)>;

/// The axes of a tensor of sinks. Nothing where it fits no call of these extents.
std::optional<Sinks::Shape> sink_shape(std::span<const int64_t> shape, const Sinks::Shape& call,
                                       const Misfit& misfit) {
  std::vector<int64_t> axes(shape.begin(), shape.end());
  if (axes.size() == 4 && axes.back() == 1) axes.pop_back();
  std::vector<Sinks::Shape> ways;
  if (axes.empty()) ways.push_back({1, 1, 1});
  if (axes.size() == 1) ways.push_back({1, axes[0], 1});
  if (axes.size() == 2) {
    ways.push_back({axes[0], axes[1], 1});
    ways.push_back({1, axes[0], axes[1]});
  }
  if (axes.size() == 3) {
    ways.push_back({axes[0], axes[1], axes[2]});
    if (axes[2] == 1 && axes[1] == 1) ways.push_back({1, axes[0], 1});
  }
  std::erase_if(ways, [&](const Sinks::Shape& way) { return !fits(way, call); });
  if (ways.empty()) return std::nullopt;
  if (ways.size() > 1 && ways[0] != ways[1]) {
    throw misfit("fits [batch, heads] and [heads, queries] alike (got " + shape_text(shape) +
                 "): give it three axes");
  }
  return ways.front();
}

}  // namespace

void require_floats(const TensorSource& tensor, ErrorCode wrong) {
  if (is_floating(tensor.dtype()) && !is_float8(tensor.dtype())) return;
  throw wrong_tensor(
      tensor, wrong,
      "expected f32, f16, bf16 or f64 (got " + std::string(dtype_name(tensor.dtype())) + ")");
}

std::vector<float> floats_in(const TensorSource& tensor, std::span<const int64_t> begin,
                             std::span<const int64_t> count) {
  require_floats(tensor);
  const int64_t numbers = *checked_count(count);
  std::vector<std::byte> raw(static_cast<size_t>(numbers * dtype_bytes(tensor.dtype())));
  tensor.read(begin, count, raw.data());
  std::vector<float> floats(static_cast<size_t>(numbers));
  to_floats(tensor.dtype(), raw.data(), numbers, floats.data());
  return floats;
}

std::vector<float> all_floats(const TensorSource& tensor) {
  const auto extents = tensor.shape();
  return floats_in(tensor, std::vector<int64_t>(extents.size(), 0), extents);
}

Sinks read_sinks(const TensorSource& tensor, const Sinks::Shape& call, ErrorCode wrong) {
  const auto extents = tensor.shape();
  const auto misfit = [&](const std::string& what) { return wrong_tensor(tensor, wrong, what); };
  const auto shape = sink_shape(extents, call, misfit);
  if (!shape) {
    throw misfit("expected a logit a head [" + std::to_string(call[1]) +
                 "], or what broadcasts to " +
                 shape_text(std::vector<int64_t>(call.begin(), call.end())) + " (got " +
                 shape_text(extents) + ")");
  }
  require_floats(tensor, wrong);
  std::vector<float> logits = all_floats(tensor);
  return with_name(tensor.name(), ErrorCode::file,
                   [&] { return Sinks(*shape, std::move(logits)); });
}

Sinks call_sinks(const CallTensors& tensors, const HeadTensor& q, const FactOverrides& overrides,
                 const ReadControl& control, std::vector<std::string>& notes) {
  const Sinks::Shape call{q.batch(), q.heads(), q.tokens()};
  if (!overrides.sinks) return tensors.sinks ? read_sinks(*tensors.sinks, call) : Sinks();
  const std::string& option = *overrides.sinks;
  if (tensors.sinks) {
    notes.push_back("--sinks " + option + " overrides the recorded " + tensors.sinks->name());
  }
  if (option == "none") return {};
  if (const auto number = parse_number(option)) {
    return with_name("--sinks", ErrorCode::usage, [&] {
      return Sinks({1, 1, 1}, {static_cast<float>(*number)});
    });
  }
  return read_sinks(*open_tensor_reference(option, usual_names("sinks"), control), call,
                    ErrorCode::usage);
}

}  // namespace attnscope
