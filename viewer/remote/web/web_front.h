#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "viewer/remote/message_line.h"
#include "viewer/remote/web/assets/web_assets.h"
#include "viewer/remote/web/web_limits.h"
#include "viewer/remote/web/web_rules.h"

namespace attnscope {

/// A window in a browser. To be destroyed before its front.
class WebWindow : public MessageLine {
 public:
  /// Ends the line because of what came by it, and says so (close code 4400).
  virtual void refuse(const std::string& why) = 0;
  /// Why it ended, one line; empty: it has not.
  virtual const std::string& ended() const = 0;
};

/// Serves a page and lets windows in, one at a time: one that brings the token takes the place of
/// the one before. All happens within wait(), on the caller's thread. Not thread-safe.
class WebFront {
 public:
  /// `doors`: sockets that listen and do not block. Borrows them and the page.
  WebFront(std::span<const int> doors, std::span<const WebAsset> page, std::string token,
           WebRules rules = {}, const WebLimits& limits = {});
  /// Says farewell to the window, for close_seconds at most.
  ~WebFront();
  WebFront(const WebFront&) = delete;
  WebFront& operator=(const WebFront&) = delete;

  /// Serves for so many seconds, or until there is something for the caller: a window, something of
  /// a window, its end, or `wake`, which became readable (−1: nothing; else always the same).
  void wait(double seconds, int wake = -1);
  /// The window that came in since it was last asked; may be null. It has been greeted.
  std::unique_ptr<WebWindow> take_window();
  /// How many connections there are.
  size_t connections() const;

 private:
  class Hall;
  const std::unique_ptr<Hall> hall_;
};

}  // namespace attnscope
