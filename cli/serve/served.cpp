#include "cli/serve/served.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/capture/capture_growth.h"
#include "io/capture/computable.h"

namespace attnscope {

Served::Served(const ServeRequest& request, OpenedMaps maps, const TileBackend& backend,
               const ReadControl& control, std::function<void()> wake)
    : maps_(std::move(maps)) {
  const TilesOptions options{request.run, request.cache, request.follow};
  if (maps_.exported) {
    tiles_ =
        std::make_unique<TileService>(maps_.exported, options.of_exports(backend), std::move(wake));
    hello_ = first_hello(request);
    return;
  }
  if (maps_.other) {
    tiles_ = tiles_of_two(*maps_.capture, *maps_.other, backend,
                          options.of_captures(*maps_.capture, &*maps_.other), wake);
  } else {
    auto growing = std::make_unique<CaptureTiles>(
        *maps_.capture, backend, options.of_captures(*maps_.capture), request.follow, wake);
    growing_ = growing.get();
    tiles_ = std::move(growing);
  }
  const FactOverrides facts = fact_overrides(request.capture);
  if (!facts.mask && facts.score == ScoreFunction::softmax) {
    check_ = options.quick_check(*maps_.capture, backend, wake);
  }
  if (request.follow) {
    follower_ = std::make_unique<CaptureFollower>(request.capture.capture, facts, control,
                                                  CaptureFollower::Captures{maps_.capture},
                                                  std::move(wake));
  }
  hello_ = first_hello(request);
}

RemoteHello Served::first_hello(const ServeRequest& request) const {
  RemoteHello hello;
  hello.version = version();
  if (!request.capture.capture.empty()) {
    hello.name = std::filesystem::absolute(request.capture.capture).lexically_normal().string();
  }
  hello.calls = maps_.calls;
  hello.own_calls = maps_.own_calls;
  hello.computed = maps_.exported == nullptr;
  hello.offers = offers_of(*tiles_);
  if (maps_.capture) {
    hello.pictures = picture_frames(*maps_.capture);
    hello.warnings = maps_.capture->warnings();
    const std::string unknown = not_understood_text(*maps_.capture);
    if (!unknown.empty()) hello.warnings.push_back(unknown);
  }
  if (maps_.other) {
    for (const std::string& more : maps_.other->warnings()) hello.warnings.push_back(more);
  }
  return hello;
}

TileServer::Watched Served::watched() const {
  return {[this] { return check_ ? check_->warning() : ""; }, [this] { return changed_file(); }};
}

std::vector<RemoteAdded> Served::take_added() {
  std::vector<RemoteAdded> all;
  if (!follower_) return all;
  try {
    for (const auto& more : follower_->take()) all.push_back(add(more));
  } catch (const Error& e) {
    follower_.reset();
    problem_ = std::string("it is not followed any more: ") + e.what();
    all.push_back({{}, {}, {}, problem_});
    return all;
  }
  const std::string problem = follower_->take_problem();
  if (!problem.empty()) {
    problem_ = problem;
    all.push_back({{}, {}, {}, problem});
  }
  return all;
}

RemoteAdded Served::add(const std::shared_ptr<const Capture>& more) {
  growing_->add_capture(*more);
  added_.push_back(more);
  RemoteAdded added;
  added.calls = map_sources(*more);
  added.warnings = more->warnings();
  const Capture& pictured = pictured_ == nullptr ? *maps_.capture : *pictured_;
  if (keeps_pictures(pictured, *more)) {
    pictured_ = more.get();
    added.pictures = hello_.pictures = picture_frames(*more);
  } else {
    added.warnings.emplace_back(
        "the capture's pictures of its video were replaced: open it again to see them");
  }
  // Whoever looks from now on has it from the start.
  hello_.calls.insert(hello_.calls.end(), added.calls.begin(), added.calls.end());
  hello_.own_calls += std::ssize(added.calls);
  hello_.warnings.insert(hello_.warnings.end(), added.warnings.begin(), added.warnings.end());
  return added;
}

std::string Served::changed_file() const {
  try {
    if (maps_.capture) maps_.capture->require_unchanged();
    for (const auto& more : added_) more->require_unchanged();
    if (maps_.other) maps_.other->require_unchanged();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace attnscope
