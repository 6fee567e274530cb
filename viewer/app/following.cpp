#include "viewer/app/following.h"

#include <utility>

#include "core/base/error.h"
#include "io/capture/capture_growth.h"

namespace attnscope {
namespace {

AddedToDocument taken_from_afar(Document& document) {
  AddedToDocument added;
  for (const RemoteAdded& more : document.remote->take_added()) {
    added.pictures |= more.pictures && *more.pictures != document.pictures;
    document.add(more);
    added.warnings.insert(added.warnings.end(), more.warnings.begin(), more.warnings.end());
    added.calls += static_cast<int64_t>(more.calls.size());
    if (!more.problem.empty()) added.problem = more.problem;
  }
  return added;
}

}  // namespace

void Following::end() {
  follower_.reset();
  awaited_.reset();
  prepare_ = {};
}

void Following::await(const CaptureOrigin& origin, std::function<void(Document&)> prepare) {
  awaited_ = origin;
  prepare_ = std::move(prepare);
  follower_ = std::make_unique<CaptureFollower>(origin.path, origin.facts, control_,
                                                CaptureFollower::Captures{}, wake_);
}

void Following::follow(const Document& document) {
  if (!document.capture || document.other || document.origin.path.empty() ||
      document.capture->named_folder() || !can_grow(document.origin.path)) {
    return;
  }
  ReadControl control = control_;
  control.stop = document.stop->token();
  follower_ =
      std::make_unique<CaptureFollower>(document.origin.path, document.origin.facts, control,
                                        CaptureFollower::Captures{document.capture}, wake_);
}

std::string Following::prepare(Document& document) {
  if (!prepare_) return "";
  try {
    prepare_(document);
    prepare_ = {};
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

AddedToDocument Following::take(Document& document, const TileSourceMaker& make) {
  if (document.remote != nullptr) return taken_from_afar(document);
  AddedToDocument added;
  if (!follower_ || awaited_) return added;
  for (const auto& more : follower_->take()) {
    document.add(more, make);
    for (const std::string& warning : more->warnings()) added.warnings.push_back(warning);
    const size_t pictures = document.pictures.size();
    added.pictures_replaced |= !document.take_pictures(*more);
    added.pictures |= document.pictures.size() > pictures;
    added.calls += static_cast<int64_t>(more->calls().size());
  }
  added.problem = follower_->take_problem();
  return added;
}

}  // namespace attnscope
