#include "io/tensors/zip_member.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <mutex>
#include <string>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kBufferBytes = 64 * 1024;
/// States kept of a deflated member, about 40 KiB each.
constexpr int64_t kMaxStates = 32;
constexpr int64_t kMinSpacing = 8 << 20;
/// Unpacked at once, and kept: neighbouring heads and rows often lie in the same piece.
constexpr int64_t kUnpackedPieceBytes = int64_t{256} << 10;
/// Readers that go on where they ended: rows of several heads are read in turns.
constexpr size_t kMaxCursors = 4;

std::string hex(uint32_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[value >> shift & 15];
  return text;
}

/// The base of the readers of both kinds of members, stored and deflated.
class Member : public ByteSource {
 public:
  Member(std::shared_ptr<const ByteSource> file, std::string file_name, ZipMember member,
         ReadControl control)
      : file_(std::move(file)),
        file_name_(std::move(file_name)),
        member_(std::move(member)),
        control_(std::move(control)) {}
  int64_t size() const override { return member_.bytes; }

 protected:
  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(file_name_, "member " + member_.name, what);
  }
  void check_range(int64_t offset, size_t count) const {
    if (offset > size() || static_cast<int64_t>(count) > size() - offset) {
      fail("ends at byte " + std::to_string(size()));
    }
  }
  std::string what() const { return file_name_ + ": member " + member_.name; }
  void check_crc(uLong crc) const {
    if (crc == member_.crc || !member_.has_crc) return;
    fail("is damaged: its checksum does not match (CRC-32 " + hex(static_cast<uint32_t>(crc)) +
         ", recorded " + hex(member_.crc) + ")");
  }

  std::shared_ptr<const ByteSource> file_;
  std::string file_name_;
  ZipMember member_;
  ReadControl control_;
};

class StoredMember : public Member {
 public:
  using Member::Member;

  void read_at(int64_t offset, std::span<std::byte> destination) const override {
    check_range(offset, destination.size());
    file_->read_at(member_.data_offset + offset, destination);
  }

  void verify() const override {
    if (!member_.has_crc) return;
    const std::lock_guard lock(mutex_);
    if (verified_) return;
    std::vector<std::byte> buffer(static_cast<size_t>(std::min<int64_t>(size(), 4 * kBufferBytes)));
    uLong crc = crc32(0, nullptr, 0);
    LongRead pass(control_, what(), size());
    for (int64_t at = 0; at < size(); at += static_cast<int64_t>(buffer.size())) {
      const auto count =
          static_cast<size_t>(std::min<int64_t>(size() - at, static_cast<int64_t>(buffer.size())));
      read_at(at, std::span(buffer).first(count));
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(buffer.data()), count);
      pass.update(at + static_cast<int64_t>(count));
    }
    check_crc(crc);
    verified_ = true;
  }

 private:
  mutable std::mutex mutex_;
  mutable bool verified_ = false;
};

/// Unpacks a member from some place on. A copy goes on from the same place by itself.
class InflateCursor {
 public:
  InflateCursor(const ByteSource& file, const std::string& file_name, const ZipMember& member)
      : file_(file), file_name_(file_name), member_(member) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) out_of_memory();
  }
  InflateCursor(const InflateCursor& other)
      : file_(other.file_),
        file_name_(other.file_name_),
        member_(other.member_),
        taken_(other.taken_ - other.stream_.avail_in),
        position_(other.position_),
        ended_(other.ended_) {
    auto* source = const_cast<z_stream*>(&other.stream_);  // an old interface: it only reads
    if (inflateCopy(&stream_, source) != Z_OK) out_of_memory();
    stream_.next_in = nullptr;
    stream_.avail_in = 0;
  }
  InflateCursor& operator=(const InflateCursor&) = delete;
  ~InflateCursor() { inflateEnd(&stream_); }

  int64_t position() const { return position_; }

  /// Unpacks up to `count` bytes; returns how many there were before the end.
  size_t read(std::byte* destination, size_t count) {
    size_t done = 0;
    while (done < count && !ended_) {
      if (stream_.avail_in == 0) fill();
      const size_t piece = std::min<size_t>(count - done, UINT_MAX);
      stream_.next_out = reinterpret_cast<Bytef*>(destination + done);
      stream_.avail_out = static_cast<uInt>(piece);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += piece - stream_.avail_out;
      if (result == Z_MEM_ERROR) out_of_memory();
      if (result == Z_STREAM_END) ended_ = true;
      const bool starved = result == Z_BUF_ERROR && stream_.avail_in == 0;
      if (starved && taken_ < member_.stored_bytes) continue;
      if (result != Z_OK && result != Z_STREAM_END) {
        fail(starved ? "ends too early" : "its packed data are damaged");
      }
    }
    position_ += static_cast<int64_t>(done);
    return done;
  }
  /// True where the packed data end here, and nothing follows them.
  bool at_end() {
    std::byte none;
    return read(&none, 1) == 0 && taken_ - stream_.avail_in == member_.stored_bytes;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(file_name_, "member " + member_.name, what);
  }
  [[noreturn]] static void out_of_memory() {
    throw Error(ErrorCode::resource, "no memory is left to unpack a zip member");
  }
  void fill() {
    const int64_t left = member_.stored_bytes - taken_;
    if (left == 0) return;
    buffer_.resize(static_cast<size_t>(std::min(left, kBufferBytes)));
    file_.read_at(member_.data_offset + taken_, buffer_);
    taken_ += static_cast<int64_t>(buffer_.size());
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(buffer_.size());
  }

  const ByteSource& file_;
  const std::string& file_name_;
  const ZipMember& member_;
  z_stream stream_{};
  std::vector<std::byte> buffer_;
  int64_t taken_ = 0;  ///< packed bytes that were read from the file
  int64_t position_ = 0;
  bool ended_ = false;
};

class DeflatedMember : public Member {
 public:
  DeflatedMember(std::shared_ptr<const ByteSource> file, std::string file_name, ZipMember member,
                 ReadControl control, std::shared_ptr<ChunkCache> unpacked)
      : Member(std::move(file), std::move(file_name), std::move(member), std::move(control)),
        unpacked_(std::move(unpacked)) {}

  bool unpacks_in_order() const override { return true; }

  void read_at(int64_t offset, std::span<std::byte> destination) const override {
    check_range(offset, destination.size());
    while (!destination.empty()) {
      const int64_t piece = offset / kUnpackedPieceBytes;
      const ChunkCache::Bytes bytes =
          unpacked_->get({file_.get(), member_.data_offset, piece},
                         [&] { return unpack(piece * kUnpackedPieceBytes); });
      const auto begin = static_cast<size_t>(offset - piece * kUnpackedPieceBytes);
      const size_t count = std::min(bytes->size() - begin, destination.size());
      std::memcpy(destination.data(), bytes->data() + begin, count);
      destination = destination.subspan(count);
      offset += static_cast<int64_t>(count);
    }
  }

  void verify() const override {
    const std::lock_guard lock(mutex_);
    if (verified_) return;
    const int64_t spacing = std::max(kMinSpacing, size() / kMaxStates);
    InflateCursor cursor(*file_, file_name_, member_);
    std::vector<std::byte> buffer(static_cast<size_t>(kBufferBytes));
    uLong crc = crc32(0, nullptr, 0);
    states_.clear();
    LongRead pass(control_, what(), size());
    while (cursor.position() < size()) {
      const auto count = static_cast<size_t>(std::min(size() - cursor.position(), kBufferBytes));
      const size_t got = cursor.read(buffer.data(), count);
      if (got != count) fail("unpacks to fewer bytes than it says");
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(buffer.data()), got);
      pass.update(cursor.position());
      const int64_t last = states_.empty() ? 0 : states_.back()->position();
      if (cursor.position() - last >= spacing) {
        states_.push_back(std::make_unique<InflateCursor>(cursor));
      }
    }
    if (!cursor.at_end()) fail("unpacks to more bytes than it says");
    check_crc(crc);
    verified_ = true;
  }

 private:
  /// The piece from `begin` on.
  std::vector<std::byte> unpack(int64_t begin) const {
    std::vector<std::byte> bytes(
        static_cast<size_t>(std::min(kUnpackedPieceBytes, size() - begin)));
    const std::lock_guard lock(mutex_);
    try {
      InflateCursor& cursor = cursor_before(begin);
      skip(cursor, begin - cursor.position());
      if (cursor.read(bytes.data(), bytes.size()) != bytes.size()) {
        fail("unpacks to fewer bytes than it says");
      }
    } catch (...) {
      cursors_.clear();  // one of them stands nobody knows where
      throw;
    }
    return bytes;
  }

  /// The cursor to go on with: the nearest one before `offset`, or a kept state that is nearer.
  InflateCursor& cursor_before(int64_t offset) const {
    size_t best = cursors_.size();
    for (size_t i = 0; i < cursors_.size(); ++i) {
      if (cursors_[i]->position() > offset) continue;
      if (best == cursors_.size() || cursors_[i]->position() > cursors_[best]->position()) best = i;
    }
    const InflateCursor* state = nullptr;
    for (const auto& kept : states_) {
      if (kept->position() <= offset) state = kept.get();
    }
    const int64_t have = best == cursors_.size() ? -1 : cursors_[best]->position();
    if (have < 0 || (state != nullptr && state->position() > have)) {
      if (cursors_.size() == kMaxCursors) cursors_.pop_back();
      cursors_.push_back(state != nullptr
                             ? std::make_unique<InflateCursor>(*state)
                             : std::make_unique<InflateCursor>(*file_, file_name_, member_));
      best = cursors_.size() - 1;
    }
    // The one used last comes first.
    std::rotate(cursors_.begin(), cursors_.begin() + static_cast<std::ptrdiff_t>(best),
                cursors_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    return *cursors_.front();
  }

  void skip(InflateCursor& cursor, int64_t count) const {
    if (count == 0) return;
    std::vector<std::byte> buffer(static_cast<size_t>(std::min(count, kBufferBytes)));
    while (count > 0) {
      const auto piece =
          static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(buffer.size())));
      if (cursor.read(buffer.data(), piece) != piece) fail("unpacks to fewer bytes than it says");
      check_read_stop(control_, what());
      count -= static_cast<int64_t>(piece);
    }
  }

  const std::shared_ptr<ChunkCache> unpacked_;
  mutable std::mutex mutex_;
  mutable bool verified_ = false;
  mutable std::vector<std::unique_ptr<InflateCursor>> states_;   ///< ascending
  mutable std::vector<std::unique_ptr<InflateCursor>> cursors_;  ///< the one used last first
};

}  // namespace

std::shared_ptr<const ByteSource> open_zip_member(std::shared_ptr<const ByteSource> file,
                                                  const std::string& file_name,
                                                  const ZipMember& member,
                                                  std::shared_ptr<ChunkCache> unpacked,
                                                  const ReadControl& control) {
  if (member.deflated) {
    return std::make_shared<DeflatedMember>(std::move(file), file_name, member, control,
                                            std::move(unpacked));
  }
  return std::make_shared<StoredMember>(std::move(file), file_name, member, control);
}

}  // namespace attnscope
