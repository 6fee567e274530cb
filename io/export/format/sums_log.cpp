#include "io/export/format/sums_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "io/files/checksum.h"
#include "io/files/input_file.h"
#include "io/files/leftovers.h"
#include "io/files/rank_files.h"

namespace attnscope {
namespace {

constexpr int64_t kHeadBytes = 16;  // place and length
constexpr int64_t kSumBytes = 4;
constexpr std::chrono::milliseconds kLook{50};
/// A row panel's LSEs are the largest pieces that are written.
constexpr int64_t kMostPieceBytes = int64_t{64} << 20;

std::span<const std::byte> bytes_of(const std::array<int64_t, 2>& head) {
  return std::as_bytes(std::span(head));
}

}  // namespace

SumsLog::SumsLog(const std::filesystem::path& path, bool sync)
    : sync_(sync), file_(path, PosixFile::Mode::create) {
  file_.write_at(std::as_bytes(std::span(kSumsMagic)), 0);
  end_ = static_cast<int64_t>(kSumsMagic.size());
}

void SumsLog::add(std::span<const std::byte> bytes, int64_t place) {
  const std::array<int64_t, 2> head{place, static_cast<int64_t>(bytes.size())};
  const std::lock_guard lock(mutex_);
  const size_t begin = pending_.size();
  const auto append = [&](std::span<const std::byte> piece) {
    pending_.insert(pending_.end(), piece.begin(), piece.end());
  };
  append(bytes_of(head));
  append(bytes);
  const uint32_t sum = checksum(std::span(pending_).subspan(begin));
  append(std::as_bytes(std::span(&sum, 1)));
  ++pieces_;
}

void SumsLog::sync() {
  const std::lock_guard lock(mutex_);
  file_.write_at(pending_, end_);
  if (sync_) file_.sync_data();
  end_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
}

int64_t read_sums(const std::filesystem::path& log, int64_t room,
                  const std::function<void(std::span<const std::byte> bytes, int64_t place)>& put) {
  std::error_code error;
  if (std::filesystem::status(log, error).type() == std::filesystem::file_type::not_found) return 0;
  const InputFile in(log);
  auto at = static_cast<int64_t>(kSumsMagic.size());
  std::array<char, kSumsMagic.size()> magic{};
  const auto there = static_cast<size_t>(std::min(in.size(), at));
  in.read_at(0, std::as_writable_bytes(std::span(magic).first(there)));
  // One that is cut short before its first piece has none.
  if (std::string_view(magic.data(), there) != kSumsMagic.substr(0, there)) {
    throw file_error(log.string(), "byte 0", "is no log of checksums");
  }
  std::vector<std::byte> piece;
  int64_t pieces = 0;
  while (in.size() - at >= kHeadBytes + kSumBytes) {
    std::array<int64_t, 2> head{};
    in.read_at(at, std::as_writable_bytes(std::span(head)));
    const auto [place, bytes] = head;
    if (bytes < 0 || bytes > kMostPieceBytes || bytes > in.size() - at - kHeadBytes - kSumBytes)
      break;
    piece.resize(static_cast<size_t>(kHeadBytes + bytes + kSumBytes));
    in.read_at(at, piece);
    uint32_t stored = 0;
    std::memcpy(&stored, piece.data() + kHeadBytes + bytes, sizeof stored);
    if (stored != checksum(std::span(piece).first(static_cast<size_t>(kHeadBytes + bytes)))) break;
    if (place < 0 || place > room - bytes) {
      throw file_error(log.string(), "byte " + std::to_string(at),
                       "has a place that the export does not have (got " + std::to_string(place) +
                           ", limit " + std::to_string(room - bytes) + ")");
    }
    put(std::span<const std::byte>(piece).subspan(kHeadBytes, static_cast<size_t>(bytes)), place);
    at += std::ssize(piece);
    ++pieces;
  }
  return pieces;
}

int64_t replay_sums(const std::filesystem::path& log, const PosixFile& file) {
  return read_sums(log, file.size(), [&](std::span<const std::byte> bytes, int64_t place) {
    file.write_at(bytes, place);
  });
}

void replay_promised_sums(const std::filesystem::path& out, const PromisedSums& promised,
                          const PosixFile& file) {
  for (int rank = 1; rank < static_cast<int>(promised.pieces.size()); ++rank) {
    const std::filesystem::path log = rank_sums_path(out, rank);
    const int64_t expected = promised.pieces[static_cast<size_t>(rank)];
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const int64_t found = replay_sums(log, file);
      if (found == expected) break;
      if (std::chrono::steady_clock::now() - begin > promised.patience) {
        throw file_error(log.string(), "",
                         "has not all that its process wrote (expected " +
                             std::to_string(expected) + " pieces, got " + std::to_string(found) +
                             ")");
      }
      std::this_thread::sleep_for(kLook);
    }
  }
}

}  // namespace attnscope
