// One file that several processes write, here several sinks of one process: its bytes, and what is
// gone on with when some or all of them end too soon.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/export/read/export_verify.h"
#include "io/export/write/make_export.h"
#include "io/export/write/shared_export.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr std::chrono::milliseconds kShort{200};
const ExportWriteOptions kFresh{.sync = false};
const ExportWriteOptions kResume{.sync = false, .resume = true};

struct Product {
  ExportProduct product;
  Encoding encoding;
};
const std::vector<Product> kProducts{{ExportProduct::weights, Encoding::f16_scaled},
                                     {ExportProduct::logits, Encoding::f32},
                                     {ExportProduct::lse, Encoding::f32},
                                     {ExportProduct::output, Encoding::f32}};

/// More tiles than any export here has; the sinks are not asked for their end() then.
constexpr int64_t kAll = 1 << 20;

/// Sinks that write one file, as processes of these ranks do.
class Job {
 public:
  Job(const ExportSpec& spec, const std::string& out, size_t ranks,
      const ExportWriteOptions& options = kResume) {
    sinks_.push_back(make_shared_export(spec, out, options));
    // As it travels between processes.
    const auto invitation = ExportInvitation::parse(sinks_.front()->invite().text());
    for (size_t rank = 1; rank < ranks; ++rank) {
      sinks_.push_back(join_shared_export(spec, out, options, invitation, static_cast<int>(rank)));
    }
  }
  SharedExport& operator[](size_t rank) { return *sinks_[rank]; }
  void feed(const FedValues& values, int64_t stop_after = kAll) {
    for (size_t rank = 0; rank < sinks_.size(); ++rank) {
      test::feed(*sinks_[rank], values,
                 {.seed = 7,
                  .threads = 2,
                  .stop_after = stop_after,
                  .part = rank,
                  .parts = sinks_.size()});
    }
  }
  void finish(
      const std::function<void()>& meanwhile = [] {},
      std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    int64_t tiles = 0;
    PromisedSums left{.pieces = {}, .patience = patience};
    for (const auto& sink : sinks_) left.pieces.push_back(sink->hand_in());
    for (const auto& sink : sinks_) tiles += sink->tiles_done();
    meanwhile();
    sinks_.front()->finish(left, tiles);
  }

 private:
  std::vector<std::unique_ptr<SharedExport>> sinks_;
};

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder.path())) {
    if (item.path().extension() != ".lock") names.push_back(item.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string whole_bytes(const ExportSpec& spec, const FedValues& values) {
  const TemporaryFolder folder;
  feed(*make_export(spec, folder / "whole.h5", kFresh), values);
  return read_bytes(folder / "whole.h5");
}

std::vector<std::shared_ptr<CallEntry>> two_calls() {
  FixtureFacts other = joint_facts();
  other.layer = 4;
  return {make_call(joint_facts()), make_call(other)};
}

std::string failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void flip(const std::string& path, int64_t from_end) {
  std::string bytes = read_bytes(path);
  bytes[bytes.size() - static_cast<size_t>(from_end)] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("several writers make the bytes of one") {
  const auto calls = two_calls();
  for (const Product& p : kProducts) {
    const ExportSpec spec = make_spec(calls, p.product, p.encoding);
    const FedValues values{.logits = p.product == ExportProduct::logits};
    const std::string whole = whole_bytes(spec, values);
    for (const size_t ranks : {1, 2, 5}) {
      INFO(export_product_name(p.product) << " by " << ranks);
      const TemporaryFolder folder;
      Job job(spec, folder / "out.h5", ranks);
      job.feed(values);
      job.finish();
      CHECK(read_bytes(folder / "out.h5") == whole);
      CHECK(names_in(folder) == std::vector<std::string>{"out.h5"});
    }
  }
}

TEST_CASE("what some of several writers left is gone on with by any number") {
  const auto calls = two_calls();
  for (const Product& p : kProducts) {
    const ExportSpec spec = make_spec(calls, p.product, p.encoding);
    const FedValues values{.logits = p.product == ExportProduct::logits};
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    int64_t kept = 0;
    for (const size_t ranks : {2, 1, 2}) {
      INFO(export_product_name(p.product) << " by " << ranks);
      Job job(spec, out, ranks);
      CHECK(job[0].resume().resumed == (kept > 0));
      CHECK(job[0].resume().tiles_kept == kept);
      CHECK(job[0].resume().tiles_dropped == 0);
      job.feed(values, 1);
      kept = job[0].tiles_done();
      for (size_t rank = 1; rank < ranks; ++rank) kept += job[rank].tiles_done();
    }
    const VerifyReport partial = verify_export(out + ".part", {}, nullptr);
    CHECK(partial.bad == 0);
    CHECK_FALSE(partial.good());
    {
      const auto alone = make_export(spec, out, kResume);
      CHECK(alone->resume().tiles_kept == kept);
      feed(*alone, values, {.stop_after = 1});
    }
    Job job(spec, out, 3);
    CHECK(job[0].resume().tiles_kept > kept);
    job.feed(values);
    job.finish();
    CHECK(read_bytes(out) == whole_bytes(spec, values));
    CHECK(names_in(folder) == std::vector<std::string>{"out.h5"});
  }
}

TEST_CASE("what a writer's files lost is computed again") {
  const auto calls = two_calls();
  const ExportSpec spec = make_spec(calls);
  const std::string whole = whole_bytes(spec, {});
  struct Damage {
    std::string file;
    int64_t from_end;  ///< of the byte that changes; 0: the file is cut in half
    int64_t dropped;   ///< at least
  };
  // Of a journal what follows is not believed; what a log lost does not agree with its journal.
  for (const Damage& damage : {Damage{"out.h5.journal.1", 1, 0}, Damage{"out.h5.sums.1", 0, 1},
                               Damage{"out.h5.sums.2", 5, 1}}) {
    INFO(damage.file);
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    {
      Job job(spec, out, 3);
      job.feed({}, 3);
    }
    if (damage.from_end > 0) {
      flip(folder / damage.file, damage.from_end);
    } else {
      const std::string log = folder / damage.file;
      std::filesystem::resize_file(log, std::filesystem::file_size(log) / 2);
    }
    Job job(spec, out, 2);
    CHECK(job[0].resume().tiles_dropped >= damage.dropped);
    CHECK(job[0].resume().tiles_kept > 0);
    job.feed({});
    job.finish();
    CHECK(read_bytes(out) == whole);
  }
}

TEST_CASE("files of writers that belong to nothing are refused, or put away") {
  const auto calls = two_calls();
  const ExportSpec spec = make_spec(calls);
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  {
    Job job(spec, out, 2);
    job.feed({}, 2);
  }
  {
    ExportSpec other = make_spec(calls);
    other.capture_hash = "another";
    CHECK(failure([&] { make_export(other, out, kResume); }).find("belongs to another export") !=
          std::string::npos);
    const TemporaryFolder elsewhere;
    {
      Job job(other, elsewhere / "out.h5", 2);
      job.feed({}, 2);
    }
    std::filesystem::rename(elsewhere / "out.h5.journal.1", folder / "out.h5.journal.1");
  }
  const std::string refused = failure([&] { make_export(spec, out, kResume); });
  CHECK(refused.find("out.h5.journal.1: belongs to another export: capture_hash is ") !=
        std::string::npos);
  // A writer that never came, or whose folder is another one, must not be taken for one without
  // tiles.
  {
    const TemporaryFolder fresh;
    Job job(spec, fresh / "out.h5", 2);
    job.feed({});
    std::filesystem::remove(fresh / "out.h5.sums.1");
    CHECK(failure([&] {
            job.finish([] {}, kShort);
          }).find("out.h5.sums.1: has not all that its process wrote (expected ") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(fresh / "out.h5"));
  }
  // So must not one of which a part is seen; what is seen later is waited for.
  for (const bool later : {false, true}) {
    const TemporaryFolder fresh;
    Job job(spec, fresh / "out.h5", 2);
    job.feed({});
    const std::string log = fresh / "out.h5.sums.1";
    std::jthread other_host;
    const auto end = [&] {
      job.finish(
          [&] {
            const std::string whole = read_bytes(log);
            std::ofstream(log, std::ios::binary | std::ios::trunc)
                << whole.substr(0, whole.size() - 9);
            if (!later) return;
            other_host = std::jthread([&log, whole] {
              std::this_thread::sleep_for(std::chrono::milliseconds(200));
              std::ofstream(log + ".whole", std::ios::binary) << whole;
              std::filesystem::rename(log + ".whole", log);
            });
          },
          later ? std::chrono::seconds(60) : kShort);
    };
    if (later) {
      end();
    } else {
      CHECK(failure(end).find("has not all that its process wrote") != std::string::npos);
    }
    CHECK(std::filesystem::exists(fresh / "out.h5") == later);
  }
  {
    // --force gives it all up; names that are like theirs are somebody else's.
    std::ofstream(folder / "out.h5.journal.x") << "mine";
    std::ofstream(folder / "out.h5.sums") << "mine";
    feed(*make_export(spec, out, {.force = true, .sync = false}), {});
    CHECK(names_in(folder) ==
          std::vector<std::string>{"out.h5", "out.h5.journal.x", "out.h5.sums"});
  }
}

TEST_CASE("tiles that no writer did keep the file from being complete") {
  const auto calls = two_calls();
  const ExportSpec spec = make_spec(calls);
  const TemporaryFolder folder;
  Job job(spec, folder / "out.h5", 2);
  job.feed({}, 2);
  CHECK(failure([&] { job.finish(); }).find("it stays incomplete") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
}
