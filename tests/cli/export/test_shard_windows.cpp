// A sharded export, or one over it, that is killed between any two of its steps: OUT and its shards
// are the older export or the new one, whole, and --resume computes no shard again that was
// complete and leaves nothing of the older one.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>

#include "io/export/format/export_journal.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

using namespace attnscope::test;

namespace {

using Arguments = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

/// Two calls, so two shards.
Arguments command(const std::string& out, const Arguments& product, const Arguments& more = {}) {
  Arguments arguments{"export",    sample("moving-shapes"),
                      "--layers",  "0-1",
                      "--heads",   "0",
                      "--rows",    "0:130",
                      "--cols",    "0:300",
                      "--threads", "1",
                      "-o",        out};
  arguments.insert(arguments.end(), product.begin(), product.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Every file below a folder, by its name there. Locks mean nothing.
Files files_in(const std::filesystem::path& folder) {
  Files files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (!item.is_regular_file() || item.path().extension() == ".lock") continue;
    files[item.path().lexically_relative(folder).string()] = read_file(item.path());
  }
  return files;
}

void require_run(const Arguments& arguments) {
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

/// A reader that follows the links, and the checksums of all shards.
void require_readable(const std::string& out) {
  for (const std::string call : {"step0010_layer000_cond_joint", "step0010_layer001_cond_joint"}) {
    REQUIRE(read_dataset(out, "/calls/" + call + "/query").values.size() == 130);
  }
  require_run({"verify", out, "--quiet"});
}

/// True where the folder has these files, perhaps beside others.
bool holds(const std::filesystem::path& folder, const Files& files) {
  const Files there = files_in(folder);
  return std::includes(there.begin(), there.end(), files.begin(), files.end());
}

struct Case {
  std::string name;
  Arguments product;
  std::optional<Arguments> older;  ///< what stands at OUT, to be replaced
  bool in_shards = true;
};

/// Copies the files of the export that is to be replaced to an empty folder.
void put_older(const std::filesystem::path& older, const std::filesystem::path& folder) {
  std::filesystem::copy(older, folder, std::filesystem::copy_options::recursive);
}

/// Kills a run before its step `n`; what is there then, and after the next run. `expected` are the
/// files of the undisturbed one.
void kill_and_resume(const Case& c, const std::filesystem::path& older, const Files& expected,
                     long n) {
  const TemporaryFolder folder;
  put_older(older, folder.path());
  const std::string out = folder / "out.h5";
  const Arguments force = c.older ? Arguments{"--force"} : Arguments{};
  const auto killed = run_attnscope(command(out, c.product, force), with_fault("kill", n));
  INFO(killed.err);
  REQUIRE(killed.exit_code == 128 + SIGKILL);
  const bool is_new = std::filesystem::exists(out) && read_file(out) == expected.at("out.h5");
  if (is_new) {
    REQUIRE(holds(folder.path(), expected));
  } else if (c.older) {
    REQUIRE(holds(folder.path(), files_in(older)));
  } else {
    REQUIRE_FALSE(std::filesystem::exists(out));
  }
  const bool is_left =
      std::filesystem::exists(out + ".part") || std::filesystem::exists(out + ".d.part");
  const auto journal = attnscope::read_journal(out + ".journal");
  const size_t shards = journal ? journal->records.size() : 0;
  Arguments resume = force;
  resume.emplace_back("--resume");
  const auto resumed = run_attnscope(command(out, c.product, resume));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  if (is_new && !is_left) {
    CHECK(resumed.err.find("is complete already") != std::string::npos);
  } else if (c.in_shards && shards > 0) {
    const size_t at = resumed.err.find(".d.part: ");
    REQUIRE(at != std::string::npos);
    char* rest = nullptr;
    const long kept = std::strtol(resumed.err.c_str() + at + 9, &rest, 10);
    CHECK(kept * 2 == static_cast<long>(shards) * std::atol(rest + 4));  // " of "
  }
  CHECK(files_in(folder.path()) == expected);
}

}  // namespace

TEST_CASE("a sharded export, or one over it, that is killed anywhere is the older or the new one") {
  if (sanitized()) {
    skip_test("hundreds of runs, each a second long under a sanitizer");
    return;
  }
  const Arguments gzip{"--compress", "gzip"}, topk{"--topk", "3"}, threshold{"--threshold", "0.02"};
  for (const Case& c : {Case{"gzip", gzip, {}}, Case{"topk over gzip", topk, gzip},
                        Case{"threshold over topk", threshold, topk},
                        // Replaced by equal bytes under equal names.
                        Case{"gzip over the same", gzip, gzip},
                        Case{"plain over gzip", {"--dtype", "f32"}, gzip, false}}) {
    const TemporaryFolder whole, older;
    require_run(command(whole / "out.h5", c.product));
    require_readable(whole / "out.h5");
    if (c.older) require_run(command(older / "out.h5", *c.older));
    const Files expected = files_in(whole.path());
    const TemporaryFolder counted;
    put_older(older.path(), counted.path());
    const long steps = calls_of(command(counted / "out.h5", c.product, {"--force"}), "kill");
    REQUIRE(steps > 20);
    for (long n = 1; n <= steps; ++n) {
      INFO(c.name << ": killed before step " << n << " of " << steps);
      kill_and_resume(c, older.path(), expected, n);
    }
  }
}
