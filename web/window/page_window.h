#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viewer/app/viewer_app.h"
#include "web/window/web_link.h"
#include "web/window/web_scripts.h"

namespace attnscope {

/// The window in the page: what it shows, where that comes from, and when the next frame is drawn.
/// There is one, which never ends. On the page's thread.
class PageWindow {
 public:
  /// Throws Error(unavailable) where there is no WebGL 2.
  PageWindow(const std::string& address, const std::string& token);

  void run_script(int number, const std::string& text);
  /// A button of the cover was pressed, or the page's address has another token.
  void act(int action);
  /// A frame as soon as the browser has one.
  void wake();

  /// The actions of the cover's buttons, for act().
  static constexpr int kReload = 1, kConnect = 2;

 private:
  RemoteTileSource* open(RemoteHello hello);
  void tell(WebLink::State state, const std::string& text);
  void show_view(const std::string& script);
  void keep_view();
  void frame();
  void sleep(double seconds);
  void stop(const std::string& why);

  Window window_;
  ViewerApp app_;
  WebScripts scripts_;
  std::optional<ViewState> kept_;  ///< of the view that the address has
  bool asked_for_frame_ = false, stopped_ = false;
  int timer_ = -1;
  std::unique_ptr<WebLink> link_;  ///< last: it calls the others
};

}  // namespace attnscope
