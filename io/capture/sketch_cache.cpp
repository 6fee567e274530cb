#include "io/capture/sketch_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "core/base/version.h"
#include "io/capture/content_hash.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

constexpr std::array<char, 8> kSketchMagic{'A', 'T', 'T', 'N', 'A', 'T', 'L', '1'};

/// A file: this, then for every head its rows (int64), whether it is exact and its class (int64
/// each), its numbers (float64), the largest and the mean weights of its cells (float32).
struct SketchHeader {
  std::array<char, 8> magic = kSketchMagic;
  uint64_t byte_order = kCacheByteOrder;
  std::array<char, 32> key{};
  int64_t heads = 0, cells = 0, numbers = 0;
  uint64_t checksum = 0;  ///< of all that follows
};
static_assert(sizeof(SketchHeader) == 80);

std::string sketch_file_name(const std::string& key) { return "atlas-" + key + ".bin"; }

size_t head_bytes(int64_t cells) {
  return 3 * sizeof(int64_t) + head_fields().size() * sizeof(double) +
         static_cast<size_t>(cells) * 2 * sizeof(float);
}

SketchHeader make_header(const std::string& key, int64_t heads, int64_t cells,
                         std::span<const std::byte> payload) {
  SketchHeader header;
  std::memcpy(header.key.data(), key.data(), std::min(key.size(), header.key.size()));
  header.heads = heads;
  header.cells = cells;
  header.numbers = static_cast<int64_t>(head_fields().size());
  header.checksum = checksum64(payload);
  return header;
}

template <typename Values>
void put(std::byte*& to, const Values& values) {
  const auto bytes = std::as_bytes(std::span(values));
  std::memcpy(to, bytes.data(), bytes.size());
  to += bytes.size();
}

template <typename Values>
void take(const std::byte*& from, Values& values) {
  const auto bytes = std::as_writable_bytes(std::span(values));
  std::memcpy(bytes.data(), from, bytes.size());
  from += bytes.size();
}

/// Weights, and means that are not above the largest of their cell, but for a rounding.
bool are_weights(const HeadSketch& sketch) {
  for (size_t i = 0; i < sketch.max.size(); ++i) {
    const float max = sketch.max[i], mean = sketch.mean[i];
    if (!(std::isfinite(max) && mean >= 0 && mean <= max * 1.0001f + 1e-30f)) return false;
  }
  return true;
}

std::shared_ptr<const HeadSketch> read_head(const std::byte*& from, const SketchCells& cells) {
  auto sketch = std::make_shared<HeadSketch>();
  std::array<int64_t, 3> facts{};
  take(from, facts);
  sketch->cells = cells;
  sketch->numbers.resize(head_fields().size());
  sketch->max.resize(static_cast<size_t>(cells.count()));
  sketch->mean.resize(sketch->max.size());
  take(from, sketch->numbers);
  take(from, sketch->max);
  take(from, sketch->mean);
  sketch->rows = facts[0];
  sketch->exact = facts[1] == 1;
  sketch->head_class = static_cast<HeadClass>(facts[2]);
  const bool plausible = facts[0] > 0 && facts[0] <= cells.queries &&
                         sketch->exact == (facts[0] == cells.queries) && facts[2] >= 0 &&
                         facts[2] <= static_cast<int64_t>(HeadClass::undefined);
  return plausible && are_weights(*sketch) ? sketch : nullptr;
}

}  // namespace

std::string SketchCache::key(const std::string& stamp, std::string_view backend, int64_t batch) {
  ContentHash hash{std::stop_token()};
  hash.add(std::string(kSketchMagic.begin(), kSketchMagic.end()) + " " + std::string(version()));
  hash.add(stamp);
  hash.add(std::string(backend));
  hash.add(std::to_string(batch));
  return hash.hex();
}

std::optional<SketchCache::Sketches> SketchCache::load(const std::string& key,
                                                       const SketchCells& cells,
                                                       int64_t heads) const {
  const size_t bytes =
      sizeof(SketchHeader) + static_cast<size_t>(heads) * head_bytes(cells.count());
  for (const std::filesystem::path& folder : folders_.all()) {
    const auto file = load_cache_file(folder, sketch_file_name(key), static_cast<int64_t>(bytes));
    if (!file || file->size() != bytes) continue;
    const std::span<const std::byte> payload = std::span(*file).subspan(sizeof(SketchHeader));
    const SketchHeader expected = make_header(key, heads, cells.count(), payload);
    if (std::memcmp(file->data(), &expected, sizeof expected) != 0) continue;
    Sketches sketches;
    const std::byte* from = payload.data();
    for (int64_t h = 0; h < heads; ++h) sketches.push_back(read_head(from, cells));
    const bool all = std::all_of(sketches.begin(), sketches.end(),
                                 [](const auto& sketch) { return sketch != nullptr; });
    if (all) return sketches;
  }
  return std::nullopt;
}

std::optional<std::string> SketchCache::store(const std::string& key, const Sketches& sketches) {
  if (sources_) sources_->require_unchanged();
  const auto heads = static_cast<int64_t>(sketches.size());
  const int64_t cells = sketches.front()->cells.count();
  std::vector<std::byte> file(sizeof(SketchHeader) + sketches.size() * head_bytes(cells));
  std::byte* to = file.data() + sizeof(SketchHeader);
  for (const auto& sketch : sketches) {
    const std::array<int64_t, 3> facts{sketch->rows, sketch->exact ? 1 : 0,
                                       static_cast<int64_t>(sketch->head_class)};
    put(to, facts);
    put(to, sketch->numbers);
    put(to, sketch->max);
    put(to, sketch->mean);
  }
  const SketchHeader header = make_header(
      key, heads, cells, std::span<const std::byte>(file).subspan(sizeof(SketchHeader)));
  std::memcpy(file.data(), &header, sizeof header);
  return folders_.store(sketch_file_name(key), file);
}

}  // namespace attnscope
