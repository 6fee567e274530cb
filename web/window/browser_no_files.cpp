#include "web/window/browser.h"

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/capture/capture_growth.h"
#include "io/capture/capture_guard.h"
#include "io/capture/computable.h"
#include "io/capture/evictions.h"
#include "io/capture/partial_calls.h"
#include "io/tensors/token_order_file.h"
#include "viewer/app/recent_pictures.h"
#include "viewer/app/sample_capture.h"
#include "viewer/session/recent_files.h"
#include "viewer/session/session.h"
#include "viewer/tiles/capture_follower.h"
#include "viewer/tiles/opened_maps.h"

// A window in a browser has no files: what the window's program would do with them says so. In
// place of the libraries that read and write captures, of which nothing else is part of the page.

namespace attnscope {
namespace {

Error no_files(const std::string& what) {
  return {ErrorCode::unavailable, what + ": a window in a browser opens and writes no files"};
}

}  // namespace

std::filesystem::path CaptureOrigin::name() const { return path; }

OpenedMaps OpenedMaps::open(const CaptureOrigin& origin, const ReadControl&,
                            const std::filesystem::path&) {
  throw no_files(one_line(origin.path.string()));
}
std::vector<int64_t> picture_frames(const Capture&) { return {}; }

void Capture::require_unchanged() const {}
bool keeps_pictures(const Capture&, const Capture&) { return false; }
void require_whole_calls(const Capture&) { throw no_files("a capture"); }
std::string not_understood_text(const Capture&) { return ""; }
bool can_grow(const std::filesystem::path&) { return false; }
std::vector<std::filesystem::path> guarded_inputs(const Capture&) { return {}; }
std::vector<EvictedKeys> evictions_of(const CallEntry&) { return {}; }

CaptureFollower::CaptureFollower(std::filesystem::path path, FactOverrides, ReadControl, Captures,
                                 std::function<void()>) {
  throw no_files(one_line(path.string()));
}
CaptureFollower::~CaptureFollower() = default;
CaptureFollower::Captures CaptureFollower::take() { return {}; }
std::string CaptureFollower::take_problem() { return ""; }
bool CaptureFollower::begun() const { return false; }

TokenOrder open_token_order(const std::string& name) { return TokenOrder::parse(name); }

std::vector<RecentFile> recent_files(const std::filesystem::path&) noexcept { return {}; }
void find_gone(std::vector<RecentFile>&) noexcept {}
bool remember_file(const std::filesystem::path&, const std::filesystem::path&,
                   const std::string&) noexcept {
  return false;
}

bool keep_recent_picture(const std::filesystem::path&, const std::filesystem::path&,
                         const gl::ReadPixels&) noexcept {
  return false;
}
std::optional<Canvas> recent_picture(const std::filesystem::path&,
                                     const std::filesystem::path&) noexcept {
  return std::nullopt;
}

SampleCapture::SampleCapture() { throw no_files("the sample"); }
SampleCapture::~SampleCapture() = default;
bool SampleCapture::holds(const std::filesystem::path&) const { return false; }
void SampleCapture::write(const std::filesystem::path& out) {
  throw no_files(one_line(out.string()));
}

bool is_session_file(const std::filesystem::path&) { return false; }
StoredSession read_session(const std::filesystem::path& file) {
  throw no_files(one_line(file.string()));
}
ViewState restored_view(const StoredSession& session, const SessionHeads&) {
  throw no_files(one_line(session.capture.string()));
}
void write_session(const Session&, const SessionHeads&, const std::filesystem::path& file, bool) {
  throw no_files(one_line(file.string()));
}

}  // namespace attnscope
