#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/pictures/text/font_face.h"

namespace attnscope {

/// A font that is installed, in memory.
struct SystemFont {
  std::filesystem::path file;
  std::vector<unsigned char> bytes;
  std::optional<FontFace> face;  ///< none: it cannot be read, or has no outlines
};

/// The fonts that a system has, by the names of their files. Fonts are read when a letter first
/// needs them (Noto Sans CJK: 20 MB) and stay in memory. Thread-safe.
class SystemFonts {
 public:
  /// The files in these folders and below; of two with one name, the one that comes first.
  explicit SystemFonts(const std::vector<std::filesystem::path>& folders);
  ~SystemFonts();
  /// Those of the folders that fonts usually are in: the user's (~/.local/share/fonts, ~/.fonts),
  /// /usr/local/share/fonts, /usr/share/fonts; or that alone which ATTNSCOPE_FONTS in the
  /// environment names. Looked through once.
  static const SystemFonts& installed();

  /// The first of the file names that is installed.
  std::optional<std::filesystem::path> find(const std::vector<std::string>& names) const;
  /// The font that stands in for others in a script they lack: the first that has the letter of a
  /// list of widespread ones with many letters (Noto Sans CJK, WenQuanYi, Droid Sans Fallback …).
  /// Null: none has it. Lives as long as this.
  const SystemFont* with_letter(char32_t code) const;

 private:
  const SystemFont& opened(size_t candidate) const;

  std::map<std::string, std::filesystem::path> files_;
  mutable std::mutex mutex_;
  /// One a candidate of with_letter(); empty: not looked at yet.
  mutable std::vector<std::unique_ptr<const SystemFont>> opened_;
};

}  // namespace attnscope
