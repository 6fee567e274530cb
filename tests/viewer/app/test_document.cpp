#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/long_capture.h"
#include "tests/support/temporary_folder.h"
#include "viewer/app/document.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Brings no tiles; reads the first value of the capture on a thread of its own, and waits for that
/// when it is destroyed, as workers are waited for.
class ReadingSource : public TileSource {
 public:
  ReadingSource(const Capture& capture, std::string& error)
      : reader_([&capture, &error] {
          const TensorSource& q = capture.calls().front().problem->q().source();
          error = thrown_text(ErrorCode::interrupted, [&] { first_value(q); });
        }) {}

  MapGeometry geometry(const HeadId&) const override { return {}; }
  void want(Wishes) override {}
  Answer find(const Ask& ask) const override { return no_answer(ask); }
  std::string problem(const Ask&) const override { return ""; }
  bool offers(const Ask&) const override { return false; }
  bool exact(const HeadId&) const override { return false; }
  TileSourceStatus status() const override { return {}; }

 private:
  std::jthread reader_;
};

/// Takes its time, and tells that the read has begun.
class SlowProgress : public ReadProgress {
 public:
  explicit SlowProgress(std::atomic<bool>& begun) : begun_(begun) {}
  void update(int64_t bytes_done) override {
    CHECK(bytes_done < kReportedBytes);
    begun_ = true;
    begun_.notify_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

 private:
  std::atomic<bool>& begun_;
};

}  // namespace

TEST_CASE("a document's long reads end as it is closed, and as its opener's stop is requested") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "long.npz";
  write_long_capture(path);
  for (const bool close : {true, false}) {
    INFO((close ? "closed" : "stopped"));
    std::string error;
    std::stop_source stop;
    std::atomic<bool> begun{false};
    const ReadControl control{stop.get_token(), [&](const std::string&, int64_t) {
                                return std::make_unique<SlowProgress>(begun);
                              }};
    TileSourceMaker make;
    make.of_capture = [&](const Capture& capture, std::function<void()>) {
      return std::make_unique<ReadingSource>(capture, error);
    };
    CaptureOrigin origin;
    origin.path = path;
    auto document = Document::open(origin, control, make, [] {});
    begun.wait(false);
    if (!close) {
      stop.request_stop();
      document->tiles.reset();
    }
    document.reset();
    CHECK(error == "interrupted while reading " + path.string() + ": member q.npy");
  }
}
