#include "web/window/browser.h"

#include "core/base/error.h"
#include "io/pictures/film/film_writer.h"
#include "viewer/app/film_export.h"
#include "viewer/app/viewer_app.h"

// In place of viewer/app/film_export.cpp, viewer_app_mask_file.cpp, viewer_app_figure.cpp,
// viewer_app_heads_file.cpp and io/pictures/film/film_writer.cpp: a window in a browser has no
// files.

namespace attnscope {
namespace {

Error no_exports(const char* what) {
  return {ErrorCode::unavailable,
          std::string("a window in a browser writes no ") + what + ": attnscope view does"};
}

}  // namespace

bool can_write_mp4() { return false; }
void FilmExport::check_name(const std::filesystem::path&) { throw no_exports("films"); }
FilmExport::FilmExport(const Film&, std::filesystem::path, bool, std::function<void()>)
    : force_(false) {
  throw no_exports("films");
}
std::vector<FrameRequest> FilmExport::wants() const { return {}; }
bool FilmExport::step(const TileSource&) { throw no_exports("films"); }

void ViewerApp::save_mask(const std::filesystem::path&) { throw no_exports("masks"); }
void ViewerApp::save_figure(const std::filesystem::path&) { throw no_exports("pages"); }
void ViewerApp::save_heads(const std::filesystem::path&) { throw no_exports("lists of heads"); }

}  // namespace attnscope
