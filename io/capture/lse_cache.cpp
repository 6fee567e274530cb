#include "io/capture/lse_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/capture/content_hash.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic{'A', 'T', 'T', 'N', 'L', 'S', 'E', '2'};
/// Rows of q and k are hashed in pieces of about this many bytes.
constexpr int64_t kComparedBytes = 1 << 20;

/// A file: this, then `rows` sums (float64), then `rows` exponents (int64).
struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t byte_order = kCacheByteOrder;
  std::array<char, 32> key{};
  int64_t rows = 0;
  uint64_t checksum = 0;  ///< of sums and exponents
};
static_assert(sizeof(Header) == 64);

constexpr size_t kRowBytes = sizeof(double) + sizeof(int64_t);

std::string file_name(const std::string& key) { return "lse-" + key + ".bin"; }

Header make_header(const std::string& key, int64_t rows, std::span<const std::byte> payload) {
  Header header;
  std::memcpy(header.key.data(), key.data(), std::min(key.size(), header.key.size()));
  header.rows = rows;
  header.checksum = checksum64(payload);
  return header;
}

std::vector<std::byte> pack(std::span<const RowNorm> norms) {
  std::vector<std::byte> payload(norms.size() * kRowBytes);
  std::byte* sums = payload.data();
  std::byte* exponents = sums + norms.size() * sizeof(double);
  for (size_t i = 0; i < norms.size(); ++i) {
    std::memcpy(sums + i * sizeof(double), &norms[i].sum, sizeof(double));
    std::memcpy(exponents + i * sizeof(int64_t), &norms[i].exponent, sizeof(int64_t));
  }
  return payload;
}

void unpack(std::span<const std::byte> payload, std::span<RowNorm> norms) {
  const std::byte* sums = payload.data();
  const std::byte* exponents = sums + norms.size() * sizeof(double);
  for (size_t i = 0; i < norms.size(); ++i) {
    std::memcpy(&norms[i].sum, sums + i * sizeof(double), sizeof(double));
    std::memcpy(&norms[i].exponent, exponents + i * sizeof(int64_t), sizeof(int64_t));
  }
}

/// A sum that a row can have: RowNorm's form, an exponent with which sums and differences stay in
/// range.
bool is_plausible(const RowNorm& norm) {
  constexpr int64_t kMaxExponent = int64_t{1} << 61;
  const bool normal = norm.sum == 0 || (norm.sum >= 1 && norm.sum < 2);
  return normal && norm.exponent >= -kMaxExponent && norm.exponent <= kMaxExponent;
}

bool load_file(const fs::path& folder, const std::string& key, std::span<RowNorm> norms) {
  const size_t bytes = sizeof(Header) + norms.size() * kRowBytes;
  const auto file = load_cache_file(folder, file_name(key), static_cast<int64_t>(bytes));
  if (!file || file->size() != bytes) return false;
  const std::span<const std::byte> payload = std::span(*file).subspan(sizeof(Header));
  const Header expected = make_header(key, static_cast<int64_t>(norms.size()), payload);
  if (std::memcmp(file->data(), &expected, sizeof expected) != 0) return false;
  unpack(payload, norms);
  return std::all_of(norms.begin(), norms.end(), is_plausible);
}

std::vector<std::byte> whole_file(const std::string& key, std::span<const RowNorm> norms) {
  const std::vector<std::byte> payload = pack(norms);
  const Header header = make_header(key, static_cast<int64_t>(norms.size()), payload);
  std::vector<std::byte> file(sizeof header + payload.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), file.begin() + sizeof header);
  return file;
}

void add_head(ContentHash& hash, const HeadTensor& tensor, int64_t batch, int64_t head) {
  const int64_t step = std::max<int64_t>(1, kComparedBytes / tensor.row_bytes());
  std::vector<std::byte> rows;
  for (int64_t begin = 0; begin < tensor.tokens(); begin += step) {
    const IndexRange range{begin, std::min(begin + step, tensor.tokens())};
    rows.resize(static_cast<size_t>(range.size() * tensor.row_bytes()));
    tensor.read_rows(batch, head, range, rows.data());
    hash.add(std::span<const std::byte>(rows));
  }
}

}  // namespace

std::string LseCache::key(const NormSource& source, std::string_view backend,
                          std::stop_token stop) {
  const auto& [of, mask, batch, head] = source;
  const AttentionProblem& problem = *of;
  ContentHash hash(stop);
  hash.add(std::string(kMagic.begin(), kMagic.end()) + " " + std::string(version()));
  hash.add(std::string(backend));
  hash.add(score_name(problem.score()));
  hash.add(std::to_string(std::bit_cast<uint64_t>(problem.scale(head))));
  hash.add(problem.mask().identity());
  // Slopes of other heads.
  if (problem.mask().identity() != problem.mask().describe()) {
    hash.add("head " + std::to_string(batch) + " " + std::to_string(head));
  }
  if (!problem.sinks().is_none()) {
    hash.add("sinks " + std::to_string(batch) + " " + std::to_string(head));
    for (const int64_t extent : problem.sinks().shape()) hash.add(std::to_string(extent));
    hash.add(std::as_bytes(problem.sinks().logits()));
  }
  for (const HeadTensor* tensor : {&problem.q(), &problem.k()}) {
    hash.add(std::string(dtype_name(tensor->dtype())) + " " + std::to_string(tensor->tokens()) +
             " " + std::to_string(tensor->width()));
  }
  if (mask != nullptr) {
    std::string& mask_hash = mask_hashes_[mask];
    if (mask_hash.empty()) {
      ContentHash content(stop);
      content.add(*mask);
      mask_hash = content.hex();
    }
    hash.add(mask_hash);
    // Which part of the mask, and whether it broadcasts.
    hash.add(std::to_string(batch) + " " + std::to_string(head));
    for (int64_t extent : mask->shape()) hash.add(std::to_string(extent));
    hash.add(std::string(dtype_name(mask->dtype())));
  }
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  add_head(hash, problem.q(), batch, head);
  add_head(hash, problem.k(), batch, problem.kv_head(head));
  return hash.hex();
}

bool LseCache::load(const std::string& key, std::span<RowNorm> norms) const {
  for (const fs::path& folder : folders_.all()) {
    if (load_file(folder, key, norms)) return true;
  }
  return false;
}

std::optional<std::string> LseCache::store(const std::string& key, std::span<const RowNorm> norms) {
  if (sources_) sources_->require_unchanged();
  return folders_.store(file_name(key), whole_file(key, norms));
}

}  // namespace attnscope
