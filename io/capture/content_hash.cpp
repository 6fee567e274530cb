#include "io/capture/content_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <new>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kHashPieceBytes = 1 << 20;

}  // namespace

struct ContentHash::State {
  State() : hash(XXH3_createState()) {
    if (hash == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(hash);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(hash); }
  XXH3_state_t* const hash;
};

ContentHash::ContentHash(std::stop_token stop)
    : stop_(std::move(stop)), state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;

void ContentHash::add(const std::string& text) {
  const uint64_t size = text.size();
  XXH3_128bits_update(state_->hash, &size, sizeof size);
  XXH3_128bits_update(state_->hash, text.data(), text.size());
}

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

void ContentHash::add(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  std::vector<int64_t> begin(shape.size(), 0);
  std::vector<int64_t> count(shape.begin(), shape.end());
  for (int64_t extent : shape) {
    if (extent == 0) return;
  }
  add_box(tensor, 0, begin, count);
}

std::string ContentHash::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->hash);
  constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  std::string text;
  for (const uint64_t half : {hash.high64, hash.low64}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

/// Cuts along `axis` into pieces of about kHashPieceBytes, or goes one axis further in.
void ContentHash::add_box(const TensorSource& tensor, size_t axis, std::vector<int64_t>& begin,
                          std::vector<int64_t>& count) {
  const auto shape = tensor.shape();
  int64_t inner = dtype_bytes(tensor.dtype());
  for (size_t a = axis + 1; a < shape.size(); ++a) inner *= shape[a];
  const bool last = axis + 1 >= shape.size();
  const int64_t total = shape.empty() ? 1 : shape[axis];
  const int64_t step =
      inner > kHashPieceBytes && !last ? 1 : std::max<int64_t>(1, kHashPieceBytes / inner);
  for (int64_t at = 0; at < total; at += step) {
    if (!shape.empty()) {
      begin[axis] = at;
      count[axis] = std::min(step, total - at);
    }
    if (inner > kHashPieceBytes && !last) {
      add_box(tensor, axis + 1, begin, count);
      continue;
    }
    if (stop_.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const int64_t elements = *checked_count(count);
    buffer_.resize(static_cast<size_t>(elements * dtype_bytes(tensor.dtype())));
    tensor.read(begin, count, buffer_.data());
    add(std::span<const std::byte>(buffer_));
  }
  if (!shape.empty()) {
    begin[axis] = 0;
    count[axis] = shape[axis];
  }
}

}  // namespace attnscope
