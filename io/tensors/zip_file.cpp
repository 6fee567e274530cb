#include "io/tensors/zip_file.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/utf8.h"
#include "io/tensors/deflate_ratio.h"

namespace attnscope {
namespace {

/// Of all members' unpacked bytes that stay, beside their states.
constexpr int64_t kUnpackedBytes = int64_t{8} << 20;

constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint32_t kEntryMagic = 0x02014b50;
constexpr uint32_t kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50;
constexpr uint32_t kLocator64Magic = 0x07064b50;
constexpr int64_t kLocalBytes = 30;
constexpr int64_t kEntryBytes = 46;
constexpr int64_t kEndBytes = 22;
constexpr int64_t kEnd64Bytes = 56;
constexpr int64_t kLocator64Bytes = 20;
constexpr int64_t kMaxComment = 0xffff;
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8;

/// Little-endian numbers of a piece of the file.
class ZipFields {
 public:
  explicit ZipFields(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    }
    return value;
  }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(size_t at) const { return number(at, 8); }

 private:
  std::string_view bytes_;
};

/// Sizes and place that a header states, those of its Zip64 field included.
struct Sizes {
  uint64_t bytes = 0, stored = 0, offset = 0;
};

/// A directory entry and what its local header must repeat.
struct Entry {
  ZipMember member;
  uint16_t flags = 0;
  int64_t header = 0;  ///< of the local header
  int64_t end = 0;     ///< of the data
};

/// Of an entry while the directory is read: it in a list that grows, its member, its places in two
/// orders, and its name once more in a set; without the names' letters.
constexpr int64_t kEntryMemory =
    2 * sizeof(Entry) + 2 * sizeof(ZipMember) + 3 * sizeof(size_t) + 80;

class DirectoryReader {
 public:
  /// Borrows the memory's account.
  DirectoryReader(const ByteSource& file, const std::string& name, HeadMemory& memory)
      : file_(file), name_(name), memory_(memory) {}

  std::vector<ZipMember> read() {
    find_directory();
    read_entries();
    for (Entry& entry : entries_) check_local(entry);
    check_overlaps();
    std::vector<ZipMember> members;
    for (Entry& entry : entries_) {
      if (entry.member.name.back() != '/') members.push_back(std::move(entry.member));
    }
    return members;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw file_error(name_, where, what);
  }
  void take_memory(int64_t bytes) { memory_.take(bytes, "zip", "its directory"); }
  std::string bytes_at(int64_t offset, int64_t count) const {
    std::string bytes(static_cast<size_t>(count), '\0');
    file_.read_at(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  void find_directory() {
    const int64_t tail = std::min(file_.size(), kEndBytes + kMaxComment);
    const std::string end = bytes_at(file_.size() - tail, tail);
    const ZipFields fields(end);
    int64_t at = tail - kEndBytes;
    while (at >= 0) {
      const auto place = static_cast<size_t>(at);
      if (fields.u32(place) == kEndMagic && at + kEndBytes + fields.u16(place + 20) == tail) break;
      --at;
    }
    if (at < 0) fail("zip", "has no directory at its end: the file is cut short or no zip file");
    const auto place = static_cast<size_t>(at);
    uint64_t entries = fields.u16(place + 10);
    uint64_t bytes = fields.u32(place + 12);
    uint64_t offset = fields.u32(place + 16);
    const int64_t end_offset = file_.size() - tail + at;
    directory_end_ = end_offset;
    const bool split = fields.u16(place + 4) != 0 || fields.u16(place + 6) != 0 ||
                       fields.u16(place + 8) != fields.u16(place + 10);
    if (split) fail("zip", "is one part of a split archive");
    if (entries == 0xffff || bytes == 0xffffffff || offset == 0xffffffff) {
      read_end64(end_offset - kLocator64Bytes, entries, bytes, offset);
    } else if (end_offset >= kLocator64Bytes &&
               ZipFields(bytes_at(end_offset - kLocator64Bytes, 4)).u32(0) == kLocator64Magic) {
      // Written by some although the numbers fit; both must say the same.
      uint64_t e = 0, b = 0, o = 0;
      read_end64(end_offset - kLocator64Bytes, e, b, o);
      if (e != entries || b != bytes || o != offset) {
        fail("zip", "has two ends of its directory that disagree");
      }
    }
    const auto limit = static_cast<uint64_t>(directory_end_);
    if (offset > limit || bytes > limit - offset || bytes != limit - offset) {
      fail("zip", "its directory does not end where its end record says (got " +
                      std::to_string(offset) + " + " + std::to_string(bytes) + ", expected " +
                      std::to_string(limit) + ")");
    }
    directory_ = static_cast<int64_t>(offset);
    count_ = entries;
  }

  void read_end64(int64_t locator, uint64_t& entries, uint64_t& bytes, uint64_t& offset) {
    if (locator < 0) fail("zip", "lacks the Zip64 end of its directory");
    const std::string where = bytes_at(locator, kLocator64Bytes);
    const uint64_t at = ZipFields(where).u64(8);
    const bool room = locator >= kEnd64Bytes && at <= static_cast<uint64_t>(locator - kEnd64Bytes);
    if (ZipFields(where).u32(0) != kLocator64Magic || !room) {
      fail("zip", "lacks the Zip64 end of its directory");
    }
    const std::string end = bytes_at(static_cast<int64_t>(at), kEnd64Bytes);
    const ZipFields fields(end);
    if (fields.u32(0) != kEnd64Magic) fail("zip", "lacks the Zip64 end of its directory");
    entries = fields.u64(32);
    bytes = fields.u64(40);
    offset = fields.u64(48);
    directory_end_ = static_cast<int64_t>(at);
  }

  void read_entries() {
    const int64_t bytes = directory_end_ - directory_;
    take_memory(bytes);
    const std::string directory = bytes_at(directory_, bytes);
    std::set<std::string> seen;
    int64_t at = 0;
    while (at < bytes) {
      if (bytes - at < kEntryBytes) fail("zip", "its directory ends within an entry");
      const ZipFields fields(std::string_view(directory).substr(static_cast<size_t>(at)));
      if (fields.u32(0) != kEntryMagic) {
        fail("zip", "entry " + std::to_string(entries_.size()) + " of its directory is damaged");
      }
      const int64_t name_bytes = fields.u16(28), extra_bytes = fields.u16(30);
      const int64_t total = kEntryBytes + name_bytes + extra_bytes + fields.u16(32);
      if (total > bytes - at) fail("zip", "its directory ends within an entry");
      const auto text = [&](int64_t from, int64_t count) {
        return directory.substr(static_cast<size_t>(at + from), static_cast<size_t>(count));
      };
      take_memory(kEntryMemory + 2 * name_bytes);
      Entry entry;
      entry.member.name = text(kEntryBytes, name_bytes);
      check_name(entry.member.name);
      if (!seen.insert(entry.member.name).second) {
        fail(member_text(entry), "is in the archive twice");
      }
      fill_entry(entry, fields, text(kEntryBytes + name_bytes, extra_bytes));
      entries_.push_back(std::move(entry));
      at += total;
    }
    if (entries_.size() != count_) {
      fail("zip", "its directory has another number of entries (got " +
                      std::to_string(entries_.size()) + ", expected " + std::to_string(count_) +
                      ")");
    }
  }

  static std::string member_text(const Entry& entry) { return "member " + entry.member.name; }

  void check_name(const std::string& name) const {
    const std::string where = "member " + name;
    if (name.empty()) fail("zip", "has a member without a name");
    if (!valid_utf8(name)) fail(where, "its name is no valid UTF-8");
    const std::filesystem::path path(name);
    const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
    const bool odd = std::any_of(name.begin(), name.end(),
                                 [](unsigned char c) { return c < ' ' || c == '\\' || c == 0x7f; });
    if (path.is_absolute() || climbs || odd) fail(where, "has an unsafe name");
  }

  void fill_entry(Entry& entry, const ZipFields& fields, const std::string& extra) const {
    const std::string where = member_text(entry);
    entry.flags = fields.u16(8);
    if ((entry.flags & kEncrypted) != 0) fail(where, "is encrypted");
    const uint16_t method = fields.u16(10);
    if (method != 0 && method != 8) {
      fail(where, "is packed by method " + std::to_string(method) +
                      " (stored and deflated members can be read)");
    }
    entry.member.deflated = method == 8;
    entry.member.crc = fields.u32(16);
    Sizes sizes{fields.u32(24), fields.u32(20), fields.u32(42)};
    apply_zip64(extra, sizes, true, where);
    const auto limit = static_cast<uint64_t>(directory_);
    if (sizes.offset > limit || sizes.stored > limit - sizes.offset) {
      fail(where, "lies beyond the archive's data");
    }
    if (!entry.member.deflated && sizes.stored != sizes.bytes) {
      fail(where, "is stored, but has two sizes (got " + std::to_string(sizes.stored) + " and " +
                      std::to_string(sizes.bytes) + ")");
    }
    const auto most = checked_mul(static_cast<int64_t>(sizes.stored), kMaxDeflateRatio);
    if (entry.member.deflated && most && sizes.bytes > static_cast<uint64_t>(*most)) {
      fail(where, "claims to unpack to more than deflate can pack (got " +
                      std::to_string(sizes.bytes) + " bytes from " + std::to_string(sizes.stored) +
                      ")");
    }
    entry.header = static_cast<int64_t>(sizes.offset);
    entry.member.stored_bytes = static_cast<int64_t>(sizes.stored);
    entry.member.bytes = static_cast<int64_t>(sizes.bytes);
  }

  /// Replaces the sizes that are all ones by those of the Zip64 field.
  void apply_zip64(const std::string& extra, Sizes& sizes, bool with_offset,
                   const std::string& where) const {
    const ZipFields fields(extra);
    size_t at = 0;
    size_t field = 0, field_end = 0;
    while (at + 4 <= extra.size()) {
      const size_t length = fields.u16(at + 2);
      if (length > extra.size() - at - 4) fail(where, "has a damaged extra field");
      if (fields.u16(at) == 1) {
        if (field_end != 0) fail(where, "has two Zip64 fields");
        field = at + 4;
        field_end = field + length;
      }
      at += 4 + length;
    }
    const auto take = [&](uint64_t& value) {
      if (value != 0xffffffff) return;
      if (field + 8 > field_end) fail(where, "lacks its Zip64 sizes");
      value = fields.u64(field);
      field += 8;
    };
    take(sizes.bytes);
    take(sizes.stored);
    if (with_offset) take(sizes.offset);
  }

  void check_local(Entry& entry) const {
    const std::string where = member_text(entry);
    const ZipMember& member = entry.member;
    if (directory_ - entry.header < kLocalBytes) fail(where, "lies beyond the archive's data");
    const std::string header = bytes_at(entry.header, kLocalBytes);
    const ZipFields fields(header);
    if (fields.u32(0) != kLocalMagic) fail(where, "has no local header where the directory says");
    const int64_t name_bytes = fields.u16(26), extra_bytes = fields.u16(28);
    const int64_t begin = entry.header + kLocalBytes + name_bytes + extra_bytes;
    if (begin > directory_ || member.stored_bytes > directory_ - begin) {
      fail(where, "lies beyond the archive's data");
    }
    const std::string rest = bytes_at(entry.header + kLocalBytes, name_bytes + extra_bytes);
    Sizes sizes{fields.u32(22), fields.u32(18), 0};
    apply_zip64(rest.substr(static_cast<size_t>(name_bytes)), sizes, false, where);
    // Where sizes and checksum follow the data, the local header has zeros.
    const bool follow = (entry.flags & kSizesFollow) != 0;
    const auto same = [&](uint64_t local, uint64_t central) {
      return local == central || (follow && local == 0);
    };
    const bool agree = rest.substr(0, static_cast<size_t>(name_bytes)) == member.name &&
                       fields.u16(6) == entry.flags && fields.u16(8) == (member.deflated ? 8 : 0) &&
                       same(fields.u32(14), member.crc) &&
                       same(sizes.stored, static_cast<uint64_t>(member.stored_bytes)) &&
                       same(sizes.bytes, static_cast<uint64_t>(member.bytes));
    if (!agree) fail(where, "its local header and the directory disagree");
    entry.member.data_offset = begin;
    entry.end = begin + member.stored_bytes;
  }

  void check_overlaps() const {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries_) order.push_back(&entry);
    std::sort(order.begin(), order.end(),
              [](const Entry* a, const Entry* b) { return a->header < b->header; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i]->header >= order[i - 1]->end) continue;
      fail(member_text(*order[i]), "overlaps the member " + order[i - 1]->member.name);
    }
  }

  const ByteSource& file_;
  const std::string name_;
  HeadMemory& memory_;
  int64_t directory_ = 0, directory_end_ = 0;
  uint64_t count_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

ZipFile::ZipFile(std::shared_ptr<const ByteSource> bytes, std::filesystem::path name,
                 ReadControl control)
    : file_(std::move(bytes)),
      path_(std::move(name)),
      control_(std::move(control)),
      unpacked_(std::make_shared<ChunkCache>(kUnpackedBytes)),
      head_memory_(path_.string(), control_.memory),
      members_(DirectoryReader(*file_, path_.string(), head_memory_).read()) {
  for (size_t i = 0; i < members_.size(); ++i) by_name_.push_back(i);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return members_[a].name < members_[b].name; });
}

const ZipMember* ZipFile::find(const std::string& name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](size_t i, const std::string& wanted) { return members_[i].name < wanted; });
  return found != by_name_.end() && members_[*found].name == name ? &members_[*found] : nullptr;
}

std::shared_ptr<const ByteSource> ZipFile::open(const ZipMember& member) const {
  return open_zip_member(file_, path_.string(), member, unpacked_, control_);
}

bool looks_like_zip(std::string_view start) {
  const std::string_view magic = start.substr(0, 4);
  return magic == "PK\x03\x04" || magic == "PK\x05\x06";
}

}  // namespace attnscope
