#include "viewer/app/start_screen.h"

#include <fmt/chrono.h>

#include <ctime>
#include <utility>

#include "viewer/app/recent_pictures.h"
#include "viewer/session/recent_files.h"

namespace attnscope {
namespace {

std::string counted(int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// A line for the list of what was opened lately: the day, the capture's size, its model.
std::string facts_text(const Document& document) {
  const MapSource& call = document.call_of(document.history.now().head);
  const int64_t queries = call.queries.tokens(), keys = call.keys.tokens();
  const std::string tokens =
      queries == keys ? counted(queries, "token") : fmt::format("{}\u00d7{} tokens", queries, keys);
  const std::string model = document.capture ? document.capture->model() : "";
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  localtime_r(&now, &day);
  return fmt::format("{:%Y-%m-%d} \u00b7 {}, {} \u00b7 {}{}", day,
                     counted(document.own_calls, "call"),
                     counted(static_cast<int64_t>(call.heads.size()), "head"), tokens,
                     model.empty() ? "" : " \u00b7 " + model);
}

}  // namespace

void StartScreen::remember(const Document& document) {
  remember_file(list_, document.origin.path, facts_text(document));
  recent_.reset();
}

void StartScreen::keep_picture(const Document& document, const gl::ReadPixels& map) {
  keep_recent_picture(list_, document.origin.path, map);
  recent_.reset();
}

void StartScreen::read() {
  std::vector<RecentFile> files = recent_files(list_);
  find_gone(files);
  recent_.emplace();
  pictures_.clear();
  for (RecentFile& file : files) {
    RecentEntry& entry = recent_->emplace_back();
    entry.file = std::move(file);
    if (entry.file.gone) continue;
    const std::optional<Canvas> picture = recent_picture(list_, entry.file.file);
    if (!picture) continue;
    gl::PictureTexture& texture = pictures_.emplace_back();
    texture.resize(picture->width(), picture->height());
    texture.update(0, 0, *picture);
    entry.picture = texture.name();
    entry.width = texture.width();
    entry.height = texture.height();
  }
}

EmptyState StartScreen::state() {
  if (!recent_) read();
  EmptyState state;
  state.recent = *recent_;
  return state;
}

}  // namespace attnscope
