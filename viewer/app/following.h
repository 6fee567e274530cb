#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/app/document.h"
#include "viewer/tiles/capture_follower.h"

namespace attnscope {

/// The calls and pictures that came to a document since it was last looked at.
struct AddedToDocument {
  int64_t calls = 0;  ///< the last of its calls
  std::vector<std::string> warnings;
  bool pictures = false;           ///< the video has others now
  bool pictures_replaced = false;  ///< it has, but those that were there are none of them
  std::string problem;  ///< that keeps the newest from being read, told once; empty: none
};

/// The capture that is waited for, and what a recorder adds to the one that is open. Only on the
/// window's thread.
class Following {
 public:
  /// `wake` is called from another thread when there is something new.
  Following(ReadControl control, std::function<void()> wake)
      : control_(std::move(control)), wake_(std::move(wake)) {}

  /// Calls may come by themselves.
  bool is_on() const { return follower_ != nullptr; }
  void end();
  /// Waits for a capture of which nothing is there yet; `prepare` is called with its document.
  void await(const CaptureOrigin& origin, std::function<void(Document&)> prepare);
  /// The capture that is waited for; null: none is.
  const CaptureOrigin* awaited() const { return awaited_ ? &*awaited_ : nullptr; }
  /// True once there is something to open of it.
  bool has_begun() const { return awaited_ && follower_->begun(); }
  /// Follows what is open, where a recorder may still add to it. Names of files do not say when a
  /// call is complete.
  void follow(const Document& document);
  /// Prepares the view that was to be shown first of the capture that was waited for, with
  /// `prepare`; kept until it can be. Why it cannot be yet; empty: it was, or there is none.
  std::string prepare(Document& document);
  void set_prepare(std::function<void(Document&)> prepare) { prepare_ = std::move(prepare); }
  /// Ends the waiting: what await() was given to prepare.
  std::function<void(Document&)> take_prepare() { return std::exchange(prepare_, {}); }
  /// Adds what was found to the document; also what another machine found. Throws what
  /// Document::add() throws.
  AddedToDocument take(Document& document, const TileSourceMaker& make);

 private:
  const ReadControl control_;
  const std::function<void()> wake_;
  std::optional<CaptureOrigin> awaited_;       ///< nothing is open until then
  std::function<void(Document&)> prepare_;     ///< of what is not there yet
  std::unique_ptr<CaptureFollower> follower_;  ///< of the document, or of what is waited for
};

}  // namespace attnscope
