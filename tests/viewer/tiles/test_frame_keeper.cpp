#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "viewer/tiles/frame_keeper.h"

using namespace attnscope;

namespace {

/// A keeper of pictures that are made up: number n is 8 × 4 pixels of grey n.
class Pictures {
 public:
  explicit Pictures(int64_t memory = 1 << 20) : budget_(memory) {
    keeper_.emplace(
        [this](int64_t number) {
          ++reads;
          if (number == 13) throw Error(ErrorCode::file, "thirteen.png: PNG: damaged");
          return GreyImage{8, 4, std::vector<uint8_t>(32, static_cast<uint8_t>(number))};
        },
        [this](int64_t bytes, std::string_view purpose) { return budget_.reserve(bytes, purpose); },
        [this] { return budget_.used(); },
        [this] {
          const std::lock_guard lock(mutex_);
          woken_.notify_all();
        });
  }
  ~Pictures() { keeper_.reset(); }
  FrameKeeper& keeper() { return *keeper_; }
  MemoryBudget& budget() { return budget_; }
  bool wait() {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 1000; ++i) {
      if (keeper_->missing() == 0) return true;
      woken_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return false;
  }

  std::atomic<int> reads{0};

 private:
  MemoryBudget budget_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::optional<FrameKeeper> keeper_;
};

}  // namespace

TEST_CASE("pictures come in the size that was asked for, those wanted before stay a while") {
  Pictures pictures;
  FrameKeeper& keeper = pictures.keeper();
  CHECK(keeper.find({5, 4, 2}) == nullptr);
  keeper.want({{5, 4, 2}, {6, 4, 2}});
  REQUIRE(pictures.wait());
  const auto frame = keeper.find({5, 4, 2});
  REQUIRE(frame);
  CHECK(frame->image.width == 4);
  CHECK(frame->image.height == 2);
  CHECK(frame->image.pixels == std::vector<uint8_t>(8, 5));
  CHECK(frame->width == 8);
  CHECK(frame->height == 4);
  CHECK(frame->problem.empty());
  CHECK(keeper.find({5, 8, 4}) == nullptr);
  CHECK(keeper.bytes() == 16);
  keeper.want({{7, 2, 1}});
  REQUIRE(pictures.wait());
  CHECK(keeper.find({5, 4, 2}));
  keeper.want({{8, 2, 1}});
  REQUIRE(pictures.wait());
  CHECK_FALSE(keeper.find({5, 4, 2}));
  CHECK(keeper.bytes() == 4);
  CHECK(pictures.reads == 4);
  // Wishes that are the same again read nothing.
  keeper.want({{8, 2, 1}});
  CHECK(keeper.missing() == 0);
  CHECK(pictures.reads == 4);
}

TEST_CASE("a picture that cannot be read says why, and is not read again") {
  Pictures pictures;
  pictures.keeper().want({{13, 4, 2}, {1, 4, 2}});
  REQUIRE(pictures.wait());
  CHECK(pictures.keeper().find({13, 4, 2})->problem == "thirteen.png: PNG: damaged");
  CHECK(pictures.keeper().find({1, 4, 2})->problem.empty());
  CHECK(pictures.reads == 2);
}

TEST_CASE("pictures that do not fit the memory say so") {
  Pictures pictures(100);
  pictures.keeper().want({{1, 100, 100}});
  REQUIRE(pictures.wait());
  CHECK_FALSE(pictures.keeper().find({1, 100, 100})->problem.empty());
  CHECK(pictures.budget().used() == 0);
  CHECK(pictures.reads == 0);
}

TEST_CASE("a picture that found no memory is read once others gave some back") {
  Pictures pictures(100);
  MemoryReservation others = pictures.budget().reserve(97, "others");
  pictures.keeper().want({{1, 4, 2}});
  REQUIRE(pictures.wait());
  CHECK_FALSE(pictures.keeper().find({1, 4, 2})->problem.empty());
  others = {};
  CHECK(pictures.keeper().missing() == 1);
  REQUIRE(pictures.wait());
  CHECK(pictures.keeper().find({1, 4, 2})->problem.empty());
  CHECK(pictures.reads == 1);
}
