#include <xxhash.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/checked_math.h"
#include "core/error.h"
#include "io/capture.h"

namespace attnscope {
namespace {

/// Tensors are read in pieces of about this many bytes.
constexpr int64_t kPieceBytes = 1 << 20;

/// XXH3-128 over what is added, in order.
class ContentHash {
 public:
  explicit ContentHash(std::stop_token stop) : stop_(std::move(stop)), state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  void add(const std::string& text) {
    const uint64_t size = text.size();
    XXH3_128bits_update(state_.get(), &size, sizeof size);
    XXH3_128bits_update(state_.get(), text.data(), text.size());
  }

  /// The elements in row-major order, in their own type.
  void add(const TensorSource& tensor) {
    const auto shape = tensor.shape();
    std::vector<int64_t> begin(shape.size(), 0);
    std::vector<int64_t> count(shape.begin(), shape.end());
    for (int64_t extent : shape) {
      if (extent == 0) return;
    }
    add_box(tensor, 0, begin, count);
  }

  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
    std::string text;
    for (const uint64_t half : {hash.high64, hash.low64}) {
      for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
    }
    return text;
  }

 private:
  /// Cuts along `axis` into pieces of about kPieceBytes, or goes one axis further in.
  void add_box(const TensorSource& tensor, size_t axis, std::vector<int64_t>& begin,
               std::vector<int64_t>& count) {
    const auto shape = tensor.shape();
    int64_t inner = dtype_bytes(tensor.dtype());
    for (size_t a = axis + 1; a < shape.size(); ++a) inner *= shape[a];
    const bool last = axis + 1 >= shape.size();
    const int64_t total = shape.empty() ? 1 : shape[axis];
    const int64_t step =
        inner > kPieceBytes && !last ? 1 : std::max<int64_t>(1, kPieceBytes / inner);
    for (int64_t at = 0; at < total; at += step) {
      if (!shape.empty()) {
        begin[axis] = at;
        count[axis] = std::min(step, total - at);
      }
      if (inner > kPieceBytes && !last) {
        add_box(tensor, axis + 1, begin, count);
        continue;
      }
      if (stop_.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
      const int64_t elements = *checked_count(count);
      buffer_.resize(static_cast<size_t>(elements * dtype_bytes(tensor.dtype())));
      tensor.read(begin, count, buffer_.data());
      XXH3_128bits_update(state_.get(), buffer_.data(), buffer_.size());
    }
    if (!shape.empty()) {
      begin[axis] = 0;
      count[axis] = shape[axis];
    }
  }

  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::stop_token stop_;
  std::unique_ptr<XXH3_state_t, Free> state_;
  std::vector<std::byte> buffer_;
};

/// The facts that decide a call's maps and how an export describes them.
std::string canonical_facts(const SelectedCall& selected) {
  const CallEntry& call = *selected.call;
  const AttentionProblem& p = *call.problem;
  nlohmann::json json;
  json["step"] = call.id.step;
  json["layer"] = call.id.layer;
  json["layer_name"] = call.layer_name;
  json["kind"] = kind_name(call.id.kind);
  json["branches"] = call.id.branches;
  json["batch"] = selected.batch;
  json["heads"] = selected.heads;
  json["scale"] = p.scale();
  json["score"] = score_name(p.score());
  json["mask"] = p.mask().describe();
  json["query_grid"] = {p.query_tokens().grid_text(), p.query_tokens().text_text()};
  json["key_grid"] = {p.key_tokens().grid_text(), p.key_tokens().text_text()};
  json["text_valid"] = p.key_tokens().text_valid();
  json["layout"] = layout_name(p.q().layout());
  json["tokens"] = call.tokens;
  json["timestep"] = call.timestep ? nlohmann::json(*call.timestep) : nlohmann::json();
  json["q_state"] = call.q_state;
  json["head_offset"] = call.head_offset;
  json["model"] = call.model;
  json["prompt"] = call.prompt;
  for (const HeadTensor* tensor : {&p.q(), &p.k()}) {
    const auto shape = tensor->source().shape();
    json["tensors"].push_back(
        {dtype_name(tensor->source().dtype()), std::vector<int64_t>(shape.begin(), shape.end())});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string Capture::content_hash(const std::vector<SelectedCall>& selected, bool with_values,
                                  std::stop_token stop) const {
  ContentHash hash(std::move(stop));
  for (const SelectedCall& call : selected) {
    const AttentionProblem& problem = *call.call->problem;
    hash.add(canonical_facts(call));
    hash.add(problem.q().source());
    hash.add(problem.k().source());
    if (call.call->mask) hash.add(*call.call->mask);
    if (with_values && problem.v()) hash.add(problem.v().source());
  }
  return hash.hex();
}

}  // namespace attnscope
