#include "io/pictures/text/system_fonts.h"

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "io/files/input_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  std::string_view file;
  int face = 0;  ///< of a collection
};

// In collections of pan-CJK fonts the third face has the forms of simplified Chinese, which is what
// the prompts of video models in these scripts mostly are.
constexpr std::array kCandidates{
    Candidate{"NotoSansCJK-Regular.ttc", 2},
    Candidate{"NotoSansCJKsc-Regular.otf"},
    Candidate{"NotoSansCJK-VF.otf.ttc", 2},
    Candidate{"NotoSansSC-Regular.otf"},
    Candidate{"NotoSansSC-Regular.ttf"},
    Candidate{"SourceHanSans.ttc", 2},
    Candidate{"SourceHanSansSC-Regular.otf"},
    Candidate{"SourceHanSansCN-Regular.otf"},
    Candidate{"wqy-microhei.ttc"},
    Candidate{"wqy-zenhei.ttc"},
    Candidate{"DroidSansFallbackFull.ttf"},
    Candidate{"DroidSansFallback.ttf"},
    Candidate{"NotoSansJP-Regular.otf"},
    Candidate{"ipag.ttf"},
    Candidate{"NotoSansKR-Regular.otf"},
    Candidate{"NanumGothic.ttf"},
    Candidate{"DejaVuSans.ttf"},
    Candidate{"NotoSans-Regular.ttf"},
    Candidate{"NotoSansThai-Regular.ttf"},
    Candidate{"NotoSansHebrew-Regular.ttf"},
    Candidate{"NotoSansArmenian-Regular.ttf"},
    Candidate{"NotoSansGeorgian-Regular.ttf"},
    Candidate{"NotoSansEthiopic-Regular.ttf"},
    Candidate{"NotoSansArabic-Regular.ttf"},
    Candidate{"NotoSansDevanagari-Regular.ttf"},
    Candidate{"NotoSansSymbols-Regular.ttf"},
    Candidate{"NotoSansSymbols2-Regular.ttf"},
    Candidate{"NotoEmoji-Regular.ttf"},
    Candidate{"FreeSans.ttf"},
    Candidate{"FreeSans.otf"},
    Candidate{"unifont.otf"},
    Candidate{"unifont.ttf"},
};

std::vector<fs::path> usual_folders() {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("ATTNSCOPE_FONTS")) return {fs::path(named)};
  if (const char* home = std::getenv("HOME")) {
    folders.push_back(fs::path(home) / ".local/share/fonts");
    folders.push_back(fs::path(home) / ".fonts");
  }
  folders.emplace_back("/usr/local/share/fonts");
  folders.emplace_back("/usr/share/fonts");
  return folders;
}

}  // namespace

SystemFonts::SystemFonts(const std::vector<fs::path>& folders) : opened_(kCandidates.size()) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, options, error), end; !error && at != end;
         at.increment(error)) {
      files_.try_emplace(at->path().filename().string(), at->path());
    }
  }
}

SystemFonts::~SystemFonts() = default;

const SystemFonts& SystemFonts::installed() {
  static const SystemFonts fonts(usual_folders());
  return fonts;
}

std::optional<fs::path> SystemFonts::find(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const auto found = files_.find(name);
    if (found != files_.end()) return found->second;
  }
  return std::nullopt;
}

const SystemFont& SystemFonts::opened(size_t candidate) const {
  if (opened_[candidate]) return *opened_[candidate];
  auto font = std::make_unique<SystemFont>();
  if (const auto path = find({std::string(kCandidates[candidate].file)})) {
    font->file = *path;
    try {
      const InputFile file(*path);
      font->bytes.resize(static_cast<size_t>(file.size()));
      file.read_at(0, std::as_writable_bytes(std::span(font->bytes)));
      font->face = FontFace::of(font->bytes, kCandidates[candidate].face);
    } catch (const Error&) {
      // A font that cannot be read is as good as none: the next one is asked.
    }
    if (!font->face) font->bytes = {};
  }
  opened_[candidate] = std::move(font);
  return *opened_[candidate];
}

const SystemFont* SystemFonts::with_letter(char32_t code) const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    const SystemFont& font = opened(i);
    if (font.face && font.face->glyph(code) != 0) return &font;
  }
  return nullptr;
}

}  // namespace attnscope
