#include "io/tensors/hdf5_chunk_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kMaxObjectHeaderBytes = 1 << 20;
constexpr int kMaxBlocks = 64;
constexpr uint64_t kUndefined = ~uint64_t{0};
constexpr int64_t kHeaderChecksumBytes = 4;

constexpr int kLayoutMessage = 8;
constexpr int kContinuationMessage = 16;

/// Little-endian numbers, one after the other; what lies beyond the end is 0 and noted.
class HeaderFields {
 public:
  explicit HeaderFields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t take(size_t count) {
    uint64_t value = 0;
    const std::span<const std::byte> field = take_bytes(count);
    for (size_t i = field.size(); i-- > 0;) value = value << 8 | static_cast<uint64_t>(field[i]);
    return value;
  }
  std::span<const std::byte> take_bytes(size_t count) {
    if (count > left()) {
      overrun_ = true;
      count = 0;
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  size_t left() const { return bytes_.size(); }
  bool overrun() const { return overrun_; }

 private:
  std::span<const std::byte> bytes_;
  bool overrun_ = false;
};

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

/// The messages of an object header, block after block.
class HeaderBlocks {
 public:
  HeaderBlocks(const InputFile& file, int64_t address) : file_(file) {
    std::array<std::byte, 64> start{};
    const auto head = read(address, std::min<int64_t>(start.size(), file.size() - address), start);
    HeaderFields fields(head);
    if (!begins_with(fields.take_bytes(4), "OHDR") || fields.take(1) != 2) return;
    const uint64_t flags = fields.take(1);
    numbered_ = (flags & 4) != 0;
    if ((flags & 32) != 0) fields.take(16);  // times
    if ((flags & 16) != 0) fields.take(4);   // how attributes are stored
    const uint64_t bytes = fields.take(size_t{1} << (flags & 3));
    if (fields.overrun()) return;
    const auto used = static_cast<int64_t>(head.size() - fields.left());
    add_block(address + used, bytes);
  }

  /// The first message of this type; empty where there is none.
  std::vector<std::byte> find(int type) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      HeaderFields fields(blocks_[b]);
      while (fields.left() >= 4) {
        const auto found = static_cast<int>(fields.take(1));
        const auto bytes = static_cast<size_t>(fields.take(2));
        fields.take(numbered_ ? 3 : 1);
        const auto data = fields.take_bytes(bytes);
        if (fields.overrun()) break;
        if (found == type) return {data.begin(), data.end()};
        if (found == kContinuationMessage) add_continuation(data);
      }
    }
    return {};
  }

 private:
  std::span<const std::byte> read(int64_t address, int64_t bytes, std::span<std::byte> to) const {
    if (address < 0 || bytes <= 0 || address > file_.size() - bytes) return {};
    file_.read_at(address, to.first(static_cast<size_t>(bytes)));
    return to.first(static_cast<size_t>(bytes));
  }
  void add_block(int64_t address, uint64_t bytes) {
    if (bytes > kMaxObjectHeaderBytes || blocks_.size() == kMaxBlocks) return;
    std::vector<std::byte> block(bytes);
    if (read(address, static_cast<int64_t>(bytes), block).empty()) return;
    blocks_.push_back(std::move(block));
  }
  void add_continuation(std::span<const std::byte> data) {
    HeaderFields fields(data);
    const uint64_t address = fields.take(8);
    const uint64_t bytes = fields.take(8);
    constexpr uint64_t kFrame = 8;  // signature and checksum
    if (fields.overrun() || address > static_cast<uint64_t>(file_.size()) || bytes < kFrame) return;
    add_block(static_cast<int64_t>(address) + 4, bytes - kFrame);
  }

  const InputFile& file_;
  bool numbered_ = false;
  std::deque<std::vector<std::byte>> blocks_;  ///< grows while it is gone through
};

}  // namespace

Hdf5ChunkIndex::Hdf5ChunkIndex(std::shared_ptr<const InputFile> file, std::string where,
                               int64_t header, int64_t chunks)
    : file_(std::move(file)), where_(std::move(where)), chunks_(chunks) {
  const std::vector<std::byte> layout = HeaderBlocks(*file_, header).find(kLayoutMessage);
  HeaderFields fields(layout);
  constexpr uint64_t kVersion = 4, kChunked = 2;
  if (fields.take(1) != kVersion || fields.take(1) != kChunked) fail("has no index of its chunks");
  const uint64_t flags = fields.take(1);
  const uint64_t dimensions = fields.take(1);
  fields.take_bytes(fields.take(1) * dimensions);  // the chunk's extents
  constexpr uint64_t kSingleChunk = 1, kFixedArray = 3, kFiltered = 2;
  const uint64_t kind = fields.take(1);
  if (kind == kSingleChunk && (flags & kFiltered) != 0) {
    const auto bytes = static_cast<int64_t>(fields.take(8));
    const auto skipped = static_cast<uint32_t>(fields.take(4));
    const uint64_t address = fields.take(8);
    if (fields.overrun() || chunks_ != 1) fail("has a damaged index of its chunks");
    if (address != kUndefined) single_ = {static_cast<int64_t>(address), bytes, skipped};
  } else if (kind == kFixedArray) {
    fields.take(1);  // told by the array itself
    const auto address = static_cast<int64_t>(fields.take(8));
    if (fields.overrun()) fail("has a damaged index of its chunks");
    if (static_cast<uint64_t>(address) != kUndefined) read_fixed_array(address);
  } else {
    fail("has an index of its chunks of another kind");
  }
}

void Hdf5ChunkIndex::fail(const std::string& what) const {
  throw file_error(file_->path().string(), where_, what);
}

void Hdf5ChunkIndex::read_fixed_array(int64_t address) {
  constexpr uint64_t kOfFilteredChunks = 1;
  const auto read = [&](int64_t at, std::span<std::byte> to) {
    if (at < 0 || at > file_->size() - static_cast<int64_t>(to.size())) {
      fail("its index of chunks lies beyond the end of the file");
    }
    file_->read_at(at, to);
    return HeaderFields(to);
  };
  std::array<std::byte, 24> header{};
  HeaderFields fields = read(address, header);
  const bool known = begins_with(fields.take_bytes(4), "FAHD") && fields.take(1) == 0 &&
                     fields.take(1) == kOfFilteredChunks;
  entry_bytes_ = static_cast<int64_t>(fields.take(1));
  const uint64_t page_bits = fields.take(1);
  const uint64_t count = fields.take(8);
  const uint64_t block = fields.take(8);
  // An address, 1 to 8 bytes of size, and a mask.
  if (!known || entry_bytes_ < 13 || entry_bytes_ > 20 || page_bits > 32 ||
      count != static_cast<uint64_t>(chunks_)) {
    fail("has a damaged index of its chunks");
  }
  if (block == kUndefined) return;
  std::array<std::byte, 14> start{};
  const auto at = static_cast<int64_t>(block);
  HeaderFields prefix = read(at, start);
  if (!begins_with(prefix.take_bytes(4), "FADB") || prefix.take(1) != 0 ||
      prefix.take(1) != kOfFilteredChunks || prefix.take(8) != static_cast<uint64_t>(address)) {
    fail("has a damaged index of its chunks");
  }
  // All of its entries were allocated with the block.
  if (chunks_ > file_->size() / entry_bytes_) fail("its index of chunks is cut short");
  entries_ = at + static_cast<int64_t>(start.size());
  const int64_t page = int64_t{1} << page_bits;
  if (chunks_ <= page) return;
  page_entries_ = page;
  written_pages_ = entries_;
  entries_ += ceil_div(ceil_div(chunks_, page), 8) + kHeaderChecksumBytes;
}

int64_t Hdf5ChunkIndex::entry_address(int64_t number) const {
  if (page_entries_ == 0) return entries_ + number * entry_bytes_;
  const int64_t page = number / page_entries_;
  std::byte written{};
  file_->read_at(written_pages_ + page / 8, {&written, 1});
  if ((written & (std::byte{0x80} >> (page % 8))) == std::byte{}) return -1;
  return entries_ + number * entry_bytes_ + page * kHeaderChecksumBytes;
}

std::optional<ChunkPlace> Hdf5ChunkIndex::place(int64_t number) const {
  if (single_ || entries_ < 0) return single_;
  const int64_t at = entry_address(number);
  if (at < 0) return std::nullopt;
  std::array<std::byte, 20> bytes{};
  const auto entry = std::span(bytes).first(static_cast<size_t>(entry_bytes_));
  file_->read_at(at, entry);
  HeaderFields fields(entry);
  const uint64_t address = fields.take(8);
  const auto stored = static_cast<int64_t>(fields.take(static_cast<size_t>(entry_bytes_) - 12));
  const auto skipped = static_cast<uint32_t>(fields.take(4));
  if (address == kUndefined) return std::nullopt;
  return ChunkPlace{static_cast<int64_t>(address), stored, skipped};
}

}  // namespace attnscope
