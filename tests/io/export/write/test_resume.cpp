#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_journal.h"
#include "io/export/read/export_verify.h"
#include "io/export/write/make_export.h"
#include "io/export/write/pooled_export.h"
#include "io/files/json_types.h"
#include "io/results/head_json.h"
#include "io/results/record_journal.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/head_records.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/waiting.h"

using namespace attnscope;
using namespace attnscope::test;
using namespace std::chrono_literals;

namespace {

const ExportWriteOptions kFresh{.force = false, .sync = false};
const ExportWriteOptions kResume{.force = false, .sync = false, .resume = true};
const ExportWriteOptions kResumeAll{
    .force = false, .sync = false, .resume = true, .verify_all = true};

/// Of a run that may go on meanwhile.
std::vector<JournalRecord> records_of(const std::string& out) {
  try {
    const auto journal = read_journal(out + ".journal");
    return journal ? journal->records : std::vector<JournalRecord>();
  } catch (const Error&) {
    return {};  // it was removed while it was being opened
  }
}

VerifyReport verify(const std::filesystem::path& path) { return verify_export(path, {}, nullptr); }

struct Product {
  ExportProduct product;
  Encoding encoding;
};
const std::vector<Product> kProducts{{ExportProduct::weights, Encoding::f16_scaled},
                                     {ExportProduct::weights, Encoding::u8_log2},
                                     {ExportProduct::logits, Encoding::f32},
                                     {ExportProduct::lse, Encoding::f32},
                                     {ExportProduct::output, Encoding::f32}};

}  // namespace

TEST_CASE("a resumed export is byte for byte the undisturbed one") {
  std::vector calls{make_call(joint_facts())};
  FixtureFacts cross = joint_facts();
  cross.layer = 4;
  cross.kind = CallKind::cross;
  cross.branches = {"uncond", "cond"};
  cross.keys = TokenGrid::text_only(31);
  cross.tokens = {};
  calls.push_back(make_call(cross));
  for (const Product& p : kProducts) {
    const TemporaryFolder folder;
    const ExportSpec spec = make_spec(calls, p.product, p.encoding);
    const FedValues values{.logits = p.product == ExportProduct::logits};
    {
      const auto sink = make_export(spec, folder / "whole.h5", kFresh);
      feed(*sink, values);
    }
    const std::string out = folder / "out.h5";
    // Several interruptions, other orders, other tile widths, other thread counts.
    unsigned seed = 1;
    int64_t kept = 0;
    for (const int64_t stop : {0, 1, 3, 4}) {
      INFO("product " << export_product_name(p.product) << " stop after " << stop);
      const auto sink = make_export(spec, out, kResume);
      CHECK(sink->resume().resumed == (seed > 2));
      CHECK(sink->resume().tiles_dropped == 0);
      CHECK(sink->resume().tiles_kept == kept);
      feed(*sink, values,
           {.seed = seed, .threads = 2, .segment_chunks = 1 + seed % 2, .stop_after = stop});
      sink->suspend();
      kept = sink->tiles_done();
      CHECK(sink->tiles_kept() == kept);
      ++seed;
    }
    const VerifyReport partial = verify(out + ".part");
    CHECK(partial.bad == 0);
    CHECK(partial.tiles_good == kept);
    CHECK(partial.tiles_missing == partial.state.tiles_total - kept);
    CHECK_FALSE(partial.good());
    {
      const auto sink = make_export(spec, out, kResumeAll);
      CHECK(sink->resume().bytes_checked > 0);
      feed(*sink, values, {.threads = 2});
    }
    CHECK(read_bytes(out) == read_bytes(folder / "whole.h5"));
    CHECK_FALSE(std::filesystem::exists(out + ".journal"));
    CHECK(verify(out).good());
    const auto again = make_export(spec, out, kResume);
    CHECK(again->resume().complete);
  }
}

TEST_CASE("what a partial file lost is computed again") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  const std::string out = folder / "out.h5";
  {
    const auto sink = make_export(spec, folder / "whole.h5", kFresh);
    feed(*sink, {});
  }
  {
    const auto sink = make_export(spec, out, kFresh);
    feed(*sink, {}, {.stop_after = 3});
  }
  const ExportManifest stored = read_manifest(out + ".part");
  const int64_t place = stored.groups[0].places.entries + 12345;
  poke(out + ".part", place, '\x77');
  CHECK(verify(out + ".part").bad == 1);
  {
    const auto sink = make_export(spec, out, kResume);
    CHECK(sink->resume().tiles_dropped == 2);
    feed(*sink, {}, {.stop_after = 1});
  }
  {
    const auto sink = make_export(spec, out, kResume);
    CHECK(sink->resume().tiles_dropped == 0);
    feed(*sink, {});
  }
  CHECK(read_bytes(out) == read_bytes(folder / "whole.h5"));
}

TEST_CASE("a partial file is gone on with by the same export alone") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const std::string out = folder / "out.h5";
  {
    const auto sink = make_export(make_spec(calls), out, kFresh);
    feed(*sink, {}, {.stop_after = 3});
  }
  const auto error = [&](const ExportSpec& spec, const ExportWriteOptions& options) {
    return thrown_text(ErrorCode::file, [&] { make_export(spec, out, options); });
  };
  ExportSpec other = make_spec(calls);
  other.options_json = R"({"product":"weights","dtype":"u8"})";
  const std::string text = error(other, kResume);
  INFO(text);
  CHECK(text.find("options.dtype is \"f16\" there, \"u8\" here") != std::string::npos);
  other = make_spec(calls);
  other.capture_hash = "fedcba9876543210";
  CHECK(error(other, kResume).find("capture_hash") != std::string::npos);
  CHECK(error(make_spec(calls), kFresh).find("--resume") != std::string::npos);
  // Every refusal left it as it was.
  {
    const auto sink = make_export(make_spec(calls), out, kResume);
    CHECK(sink->resume().resumed);
    feed(*sink, {});
  }
  CHECK(error(other, kResume).find("is another export") != std::string::npos);
  CHECK(verify(out).good());
}

TEST_CASE("what one kind of run left is another's to refuse, not to remove") {
  FixtureFacts second = joint_facts();
  second.layer = 5;
  const std::vector calls{make_call(joint_facts()), make_call(second)};
  const auto spec_of = [&](const std::string& kind) {
    ExportSpec spec = make_spec(calls);
    spec.options_json = R"({"product":")" + kind + R"("})";
    spec.gzip = kind == "gzip";
    if (kind == "topk") spec.product = ExportProduct::topk;
    if (kind == "pooled") spec.product = ExportProduct::pooled;
    if (kind == "topk" || kind == "pooled") spec.encoding = Encoding::f32;
    if (kind == "topk") spec.detail = KeepLargest{4};
    if (kind == "pooled") spec.detail = PoolBlocks{16, false};
    return spec;
  };
  const OrderedJson identity = record_list_header(
      "stats", {{"capture_hash", spec_of("stats").capture_hash}, {"options", {{"exact", false}}}});
  const auto is_record = [](const auto& json) { return parse_head_json(json).has_value(); };
  const auto start = [&](const std::string& kind, const std::string& out, bool force) {
    ExportWriteOptions options = kResume;
    options.force = force;
    if (kind == "stats") {
      const RecordJournal journal(out, identity, "dump", {.force = force, .resume = true},
                                  is_record);
    } else if (kind == "pooled") {
      make_pooled_export(spec_of(kind), out, options);
    } else {
      make_export(spec_of(kind), out, options);
    }
  };
  const std::vector<std::string> kinds{"weights", "gzip", "topk", "pooled", "stats"};
  for (const std::string& left : kinds) {
    if (left == "pooled") continue;
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    if (left == "stats") {
      RecordJournal journal(out, identity, "dump", {}, is_record);
      journal.append(head_json(sample_record(0, false)));
    } else {
      // In order, all of the first of two equal calls: its shard is complete.
      const auto sink = make_export(spec_of(left), out, kFresh);
      feed(*sink, {}, {.segment_chunks = 1, .stop_after = sink->tiles_total() / 2});
      sink->abort();
    }
    const bool in_shards = left == "gzip" || left == "topk";
    const std::string data =
        in_shards ? std::filesystem::directory_iterator(out + ".d.part")->path().string()
                  : out + ".part";
    const std::string bytes = read_bytes(data);
    for (const std::string& other : kinds) {
      if (other == left) continue;
      for (const bool force : {false, true}) {
        INFO(left << " is left, " << other << " is resumed, force " << force);
        const std::string text = thrown_text(ErrorCode::file, [&] { start(other, out, force); });
        INFO(text);
        CHECK(text.find("belongs to ") != std::string::npos);
        REQUIRE(read_bytes(data) == bytes);
      }
    }
    start(left, out, false);
    CHECK(read_bytes(data) == bytes);
    if (left == "stats") {
      CHECK(RecordJournal(out, identity, "dump", {.resume = true}, is_record).kept() == 1);
    } else {
      CHECK(make_export(spec_of(left), out, kResume)->resume().tiles_kept > 0);
    }
  }
}

TEST_CASE("lists of records of every command that keeps one are gone on with") {
  const auto is_record = [](const auto& json) { return parse_head_json(json).has_value(); };
  for (const std::string command : {"stats", "mask", "lab"}) {
    INFO(command);
    const TemporaryFolder folder;
    const std::string out = folder / "out.json";
    const OrderedJson header =
        record_list_header(command, {{"capture_hash", "0"}, {"options", OrderedJson::object()}});
    {
      RecordJournal journal(out, header, "dump", {}, is_record);
      journal.append(head_json(sample_record(0, false)));
    }
    CHECK(RecordJournal(out, header, "dump", {.resume = true}, is_record).kept() == 1);
  }
}

TEST_CASE("a part whose journal is gone or damaged is not believed") {
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const auto begin = [&] {
    const auto sink = make_export(spec, out, {.force = true, .sync = false});
    feed(*sink, {}, {.stop_after = 3});
  };
  begin();
  std::filesystem::remove(out + ".journal");
  {
    const auto sink = make_export(spec, out, kResume);
    CHECK_FALSE(sink->resume().resumed);
    feed(*sink, {});
  }
  CHECK(verify(out).good());
  std::filesystem::remove(out);
  begin();
  poke(out + ".journal", 20, '\x01');
  CHECK(thrown_text(ErrorCode::file, [&] { make_export(spec, out, kResume); }) != "");
  CHECK(std::filesystem::exists(out + ".part"));
  // A structure that is not the one that was written.
  begin();
  const std::string bytes = read_bytes(out + ".part");
  const size_t name = bytes.find("0123456789abcdef");
  REQUIRE(name != std::string::npos);
  poke(out + ".part", static_cast<int64_t>(name), 'x');
  CHECK(thrown_text(ErrorCode::file, [&] { make_export(spec, out, kResume); }).find("damaged") !=
        std::string::npos);
  CHECK(std::filesystem::exists(out + ".part"));
}

TEST_CASE("kills at random places lose nothing that was committed") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  const std::string out = folder / "out.h5";
  int64_t tiles = 0;
  {
    const auto sink = make_export(spec, folder / "whole.h5", {.commits = {.bytes = 1}});
    feed(*sink, {}, {.segment_chunks = 1});
    tiles = sink->tiles_total();
  }
  const std::string bytes = read_bytes(folder / "whole.h5");
  std::mt19937 random(11);
  const int wanted = sanitized() ? 10 : 40;
  int kills = 0, with_tiles = 0;
  std::vector<JournalRecord> committed;
  const auto take_whole = [&] {
    REQUIRE(read_bytes(out) == bytes);
    REQUIRE(verify(out).good());
    std::filesystem::remove(out);
    committed.clear();
  };
  const auto run_export = [&](unsigned run) {
    const auto sink =
        make_export(spec, out, {.sync = run % 2 == 0, .resume = true, .commits = {.bytes = 1}});
    feed(*sink, {}, {.seed = run, .threads = 2, .segment_chunks = 1});
  };
  unsigned run = 1;
  // On a busy machine many a run ends before it is killed, or is killed before its first tile.
  for (; kills < wanted || with_tiles <= wanted / 4; ++run) {
    INFO("run " << run << ", " << kills << " kills, " << with_tiles << " with tiles");
    REQUIRE(run < 100U * static_cast<unsigned>(wanted));
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        run_export(run);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    // Some records later, or, one time in four, before there may be any.
    const size_t more = run % 4 == 0 ? 0 : 1 + random() % (static_cast<unsigned>(tiles) / 2);
    const size_t enough = committed.size() + more;
    CHECK(becomes([&] { return records_of(out).size() >= enough || has_ended(child); }, 0ms));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    kills += WIFSIGNALED(status) ? 1 : 0;
    if (WIFEXITED(status)) REQUIRE(WEXITSTATUS(status) == 0);
    if (std::filesystem::exists(out)) {
      take_whole();
      continue;
    }
    if (std::filesystem::exists(out + ".part")) {
      const VerifyReport report = verify(out + ".part");
      REQUIRE(report.bad == 0);
      const auto now = records_of(out);
      for (const JournalRecord& record : committed) {
        REQUIRE(std::find(now.begin(), now.end(), record) != now.end());
      }
      committed = now;
      with_tiles += report.tiles_good > 0 ? 1 : 0;
    }
  }
  // The part that the last kill left is resumed to the same bytes.
  run_export(run);
  take_whole();
}

TEST_CASE("every flipped byte of an export is found", "[numbers]") {
  const TemporaryFolder folder;
  FixtureFacts facts = joint_facts();
  facts.heads = 1;
  facts.queries = TokenGrid::video(34, {2, 3, 4}, 10, TextPlace::start);
  facts.keys = facts.queries;
  const std::vector calls{make_call(facts)};
  const std::string out = folder / "out.h5";
  {
    const auto sink = make_export(make_spec(calls), out, kFresh);
    feed(*sink, {});
  }
  REQUIRE(verify(out).good());
  const std::string bytes = read_bytes(out);
  std::mt19937 random(7);
  // Each look needs a process of its own: a sample of all, and every byte of the mark.
  std::vector<int64_t> places{read_manifest(out).complete, 0, 8, 40};
  for (int i = 0; i < 250; ++i) {
    places.push_back(static_cast<int64_t>(random() % bytes.size()));
  }
  for (const int64_t place : places) {
    const char flipped = static_cast<char>(bytes[static_cast<size_t>(place)] ^ 0x10);
    const char old = poke(out, place, flipped);
    bool good = true;
    try {
      good = verify(out).good();
    } catch (const Error&) {
      good = false;
    }
    poke(out, place, old);
    INFO("byte " << place << " of " << bytes.size());
    CHECK_FALSE(good);
  }
  REQUIRE(verify(out).good());
  std::ofstream(out, std::ios::app) << "x";
  CHECK_FALSE(verify(out).good());
}
