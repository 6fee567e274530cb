#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/files/read_progress.h"
#include "tests/support/catch.h"
#include "tests/support/long_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The reports of a reporter: bytes done at last, by the name of the read.
class Told {
 public:
  ReadControl control(std::stop_token stop) {
    return {std::move(stop), [this](const std::string& what, int64_t bytes) {
              CHECK(bytes > kReportedBytes);
              return std::make_unique<Progress>(*this, what);
            }};
  }
  std::map<std::string, int64_t> reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  /// Is called at every step of a read.
  std::function<void()> step = [] {};

 private:
  class Progress : public ReadProgress {
   public:
    Progress(Told& told, std::string what) : told_(told), what_(std::move(what)) {}
    void update(int64_t bytes_done) override {
      {
        const std::lock_guard lock(told_.mutex_);
        told_.reads_[what_] = bytes_done;
      }
      told_.step();
    }

   private:
    Told& told_;
    const std::string what_;
  };

  mutable std::mutex mutex_;
  std::map<std::string, int64_t> reads_;
};

float first_value(const Capture& capture) {
  return test::first_value(capture.calls().front().problem->q().source());
}

}  // namespace

TEST_CASE("two captures are read at once, and one of them is stopped") {
  const TemporaryFolder folder;
  const auto kept_path = folder.path() / "kept.npz";
  const auto stopped_path = folder.path() / "stopped.npz";
  write_long_capture(kept_path);
  write_long_capture(stopped_path);
  std::stop_source keep, stop;
  Told kept, stopped;
  const Capture kept_capture = Capture::open(kept_path, {}, kept.control(keep.get_token()));
  const Capture stopped_capture =
      Capture::open(stopped_path, {}, stopped.control(stop.get_token()));
  CHECK(kept.reads().empty());
  CHECK(stopped.reads().empty());

  // Both are within their reads as the stop is requested.
  std::atomic<bool> kept_reads{false}, is_stopped{false};
  kept.step = [&] {
    kept_reads = true;
    kept_reads.notify_all();
    is_stopped.wait(false);
  };
  stopped.step = [&] {
    kept_reads.wait(false);
    stop.request_stop();
  };
  std::string error;
  std::thread other([&] {
    error = thrown_text(ErrorCode::interrupted, [&] { first_value(stopped_capture); });
    is_stopped = true;
    is_stopped.notify_all();
  });
  CHECK(first_value(kept_capture) == 0);
  other.join();

  const std::string stopped_member = stopped_path.string() + ": member q.npy";
  CHECK(error == "interrupted while reading " + stopped_member);
  const auto kept_told = kept.reads();
  const auto stopped_told = stopped.reads();
  REQUIRE(kept_told.size() == 1);
  REQUIRE(stopped_told.size() == 1);
  CHECK(kept_told.begin()->first == kept_path.string() + ": member q.npy");
  CHECK(kept_told.begin()->second > kReportedBytes);
  CHECK(stopped_told.begin()->first == stopped_member);
  CHECK(stopped_told.begin()->second < kReportedBytes);
  // The stop holds for the capture, and for it alone.
  CHECK(thrown_text(ErrorCode::interrupted, [&] { first_value(stopped_capture); }) == error);
  CHECK(first_value(kept_capture) == 0);
}

TEST_CASE("what options name is read with the capture's own control") {
  const TemporaryFolder folder;
  const auto q = folder.path() / "q.npz";
  const auto boundaries = folder.path() / "cu.npz";
  const std::string array = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 4), }\n";
  write_bytes(q, zip_bytes({{"q.npy", npy_bytes(array, std::string(32, '\0'))}}));
  write_bytes(boundaries,
              zip_bytes({{"cu_seqlens.npy",
                          npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n",
                                    raw(std::vector<int64_t>{0, 1, 2}))}}));
  std::stop_source stop;
  const ReadControl control{.stop = stop.get_token()};
  FactOverrides overrides;
  overrides.cu_seqlens = boundaries.string();
  const BareTensors pair{q.string(), q.string(), ""};
  CHECK(Capture::from_tensors(pair, overrides, control).calls().size() == 1);
  stop.request_stop();
  CHECK(thrown_text(ErrorCode::interrupted, [&] {
          Capture::from_tensors(pair, overrides, control);
        }) == "interrupted while reading " + boundaries.string() + ": member cu_seqlens.npy");
}
