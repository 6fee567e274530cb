#include "web/window/page_window.h"

#include <emscripten/emscripten.h>
#include <emscripten/html5.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "viewer/app/app_script_host.h"
#include "viewer/script/view_script.h"
#include "web/window/browser.h"
#include "web/window/web_screen.h"

namespace attnscope {
namespace {

/// Of tiles and the like that came, and of their textures: what a tab of a browser may well take.
constexpr int64_t kHeldBytes = int64_t{256} << 20;
constexpr int64_t kTextureBytes = int64_t{256} << 20;
/// How often a script looks whether what it waits for is there.
constexpr double kScriptSeconds = 0.02;

std::string taken_from(char* text) {
  std::string copy(text);
  std::free(text);
  return copy;
}

ViewerApp::Settings app_settings() {
  ViewerApp::Settings settings;
  settings.texture_bytes = kTextureBytes;
  settings.follow = true;
  // An address tells all that is to be seen.
  settings.begin_by_data = taken_from(browser_view()).empty();
  settings.warn = settings.note = [](const std::string& line) {
    emscripten_log(EM_LOG_CONSOLE, "%s", line.c_str());
  };
  return settings;
}

std::unique_ptr<PageWindow> the_window;

EM_BOOL on_context_lost(int, const void*, void*) {
  browser_cover("The browser took the graphics away", "What was drawn is gone.", "Reload",
                PageWindow::kReload);
  return EM_TRUE;
}

}  // namespace

PageWindow::PageWindow(const std::string& address, const std::string& token)
    : window_(Window::Settings{}), app_(window_, app_settings()), scripts_(app_) {
  web_screen_turns().wake = [this] { wake(); };
  app_.set_script_host(std::make_unique<AppScriptHost>(app_, false, true));
  emscripten_set_webglcontextlost_callback("#canvas", nullptr, EM_FALSE, on_context_lost);
  link_ = std::make_unique<WebLink>(
      address, token,
      WebLink::Handlers{
          [this](RemoteHello hello) { return open(std::move(hello)); },
          [this](WebLink::State state, const std::string& text) { tell(state, text); }});
  wake();
}

RemoteTileSource* PageWindow::open(RemoteHello hello) {
  const std::string name = hello.name.empty() ? hello.calls.front().name : hello.name;
  auto tiles = std::make_unique<RemoteTileSource>(name, std::move(hello), kHeldBytes,
                                                  [this] { window_.wake(); });
  RemoteTileSource* const source = tiles.get();
  app_.open(CaptureOrigin{name, {}, {}}, std::move(tiles));
  show_view(taken_from(browser_view()));
  return source;
}

/// Shows what the page's address tells, before the first frame is drawn; what cannot be shown is
/// said, and the window begins with what stood before it.
void PageWindow::show_view(const std::string& script) {
  if (script.empty()) return;
  std::string problem;
  try {
    AppScriptHost host(app_, false);
    ScriptRunner runner(parse_view_script(script), host);
    // Words of a view wait for nothing, though each of them would be drawn.
    while (runner.step(app_.seconds()) == ScriptRunner::State::running) {
    }
    problem = runner.error();
  } catch (const Error& e) {
    problem = e.what();
  }
  if (problem.empty()) return;
  problem = "the address's view: " + problem;
  app_.tell(problem);
  emscripten_log(EM_LOG_CONSOLE, "%s", one_line(problem).c_str());
  // The address stays as it is until somebody looks elsewhere.
  if (app_.document() != nullptr) kept_ = app_.document()->history.now();
}

/// The address follows what is seen, so that it is there again when the page is loaded anew.
void PageWindow::keep_view() {
  if (app_.document() == nullptr) return;
  const Document& document = *app_.document();
  const ViewState& now = document.history.now();
  if (kept_ && *kept_ == now) return;
  kept_ = now;
  try {
    browser_keep_view(view_script(now, document.picker).c_str());
  } catch (const Error& e) {
    app_.tell(std::string("the address stays as it was: ") + e.what());
  }
}

void PageWindow::tell(WebLink::State state, const std::string& text) {
  switch (state) {
    case WebLink::State::connecting:
      browser_banner(("connecting \u2026 " + text).c_str());
      break;
    case WebLink::State::lost:
      browser_banner(text.c_str());
      break;
    case WebLink::State::open:
      browser_banner("");
      browser_uncover();
      break;
    case WebLink::State::refused:
      browser_banner("");
      browser_cover(
          "The server did not take this address",
          "Open the address that attnscope serve printed, with all that stands behind the #. "
          "Each start of it has another one, but with --token-file.",
          "", 0);
      break;
    case WebLink::State::taken:
      browser_banner("");
      browser_cover(
          "Somebody else looks now",
          "The maps were opened in another tab or by another person; the server shows them to "
          "one at a time.",
          "Look here again", kConnect);
      break;
    case WebLink::State::ended:
      browser_banner("");
      browser_cover("There is no connection any more", text.c_str(), "Reload", kReload);
      break;
  }
}

void PageWindow::act(int action) {
  if (action == kReload) browser_reload();
  if (action != kConnect) return;
  browser_uncover();
  kept_.reset();
  link_->connect(taken_from(browser_token()));
}

void PageWindow::run_script(int number, const std::string& text) {
  scripts_.add(number, text);
  wake();
}

void PageWindow::wake() {
  if (asked_for_frame_ || stopped_) return;
  asked_for_frame_ = true;
  emscripten_request_animation_frame(
      [](double, void* self) {
        static_cast<PageWindow*>(self)->frame();
        return EM_FALSE;
      },
      this);
}

void PageWindow::sleep(double seconds) {
  if (timer_ >= 0) emscripten_clear_timeout(std::exchange(timer_, -1));
  if (seconds < 0) return;
  timer_ = static_cast<int>(emscripten_set_timeout(
      [](void* self) {
        static_cast<PageWindow*>(self)->timer_ = -1;
        static_cast<PageWindow*>(self)->wake();
      },
      1000 * seconds, this));
}

/// The browser's turn for us: one step of the window's loop, which never waits.
void PageWindow::frame() {
  asked_for_frame_ = false;
  try {
    const bool drawn = app_.step(-1);
    if (drawn) keep_view();
    const bool scripted = scripts_.step();
    if (drawn) {
      wake();
    } else {
      sleep(scripted ? kScriptSeconds : web_screen_turns().sleep);
    }
  } catch (const std::exception& e) {
    stop(e.what());
  }
}

void PageWindow::stop(const std::string& why) {
  stopped_ = true;
  browser_cover("The window has stopped", why.c_str(), "Reload", kReload);
}

}  // namespace attnscope

// Called by browser.js.
extern "C" {
EMSCRIPTEN_KEEPALIVE void web_act(int action) {
  if (attnscope::the_window) attnscope::the_window->act(action);
}
EMSCRIPTEN_KEEPALIVE void web_script(int number, const char* text) {
  if (attnscope::the_window) attnscope::the_window->run_script(number, text);
}
}

int main() {
  using namespace attnscope;
  try {
    the_window =
        std::make_unique<PageWindow>(taken_from(browser_address()), taken_from(browser_token()));
  } catch (const std::exception& e) {
    browser_banner("");
    browser_cover("The window cannot be shown", e.what(), "Reload", PageWindow::kReload);
  }
  return 0;
}
