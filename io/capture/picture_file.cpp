#include "io/capture/picture_file.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kPieceBytes = 1 << 18;

/// By the formats' own marks; a PNG's first chunk has to be its header, of 13 bytes.
bool begins_as_picture(std::string_view start) {
  constexpr std::string_view kPng("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  return start.starts_with(kPng) || start.starts_with("\xff\xd8\xff") ||
         start.starts_with("GIF87a") || start.starts_with("GIF89a") ||
         (start.starts_with("RIFF") &&
          start.substr(std::min<size_t>(start.size(), 8), 4) == "WEBP");
}

}  // namespace

void read_picture(const InputFile& file,
                  const std::function<void(std::span<const std::byte>)>& on) {
  std::vector<std::byte> piece;
  for (int64_t at = 0; at == 0 || at < file.size(); at += kPieceBytes) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, file.size() - at)));
    file.read_at(at, piece);
    const std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (at == 0 && !begins_as_picture(text)) {
      throw file_error(file.path().string(), "",
                       "is no picture: expected a PNG, JPEG, GIF or WebP file");
    }
    on(piece);
  }
  file.require_unchanged();
}

}  // namespace attnscope
