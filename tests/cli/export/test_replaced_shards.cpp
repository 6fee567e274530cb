// Shards that are left of an export when one without shards takes its name, and exports that
// --resume takes for complete.
#include <hdf5.h>

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

ProgramResult run(const std::string& out, const Arguments& more) {
  Arguments arguments{
      "export", sample("moving-shapes"), "--layers", "0-1", "--heads", "0", "--rows", "0:200", "-o",
      out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments);
}

void require_run(const std::string& out, const Arguments& more) {
  const auto result = run(out, more);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Takes back the mark of completeness, which is where the dataset "complete" says.
void unmark(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  const hid_t mark = H5Dopen2(file, "complete", H5P_DEFAULT);
  REQUIRE(mark >= 0);
  const haddr_t at = H5Dget_offset(mark);
  H5Dclose(mark);
  H5Fclose(file);
  REQUIRE(at != HADDR_UNDEF);
  std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(at));
  bytes.put(0);
}

}  // namespace

TEST_CASE("an export without shards takes those of the one that it replaces with it") {
  for (const Arguments& plain : {Arguments{"--dtype", "f32"}, Arguments{"--block", "16"}}) {
    INFO(plain.front());
    const TemporaryFolder folder;
    const std::string out = folder / "maps.h5";
    require_run(out, {"--compress", "gzip"});
    REQUIRE(fs::exists(out + ".d"));
    Arguments force = plain;
    force.emplace_back("--force");
    require_run(out, force);
    CHECK_FALSE(fs::exists(out + ".d"));
    CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  }
}

TEST_CASE("files that are none of the replaced export's stay, and are named") {
  const TemporaryFolder folder;
  const std::string out = folder / "maps.h5";
  require_run(out, {"--compress", "gzip"});
  const std::string shards = out + ".d/";
  const Arguments foreign{"notes.txt", "step0010_layer000_cond_joint.0123456789abcdef.h5",
                          "step_by_step.h5", "x.h5"};
  for (const std::string& name : foreign) std::ofstream(shards + name) << name;
  const auto replaced = run(out, {"--force"});
  CHECK(replaced.exit_code == 0);
  CHECK(contains(replaced.err, "note: " + out +
                                   ".d stays: it holds what is none of the replaced export's: "
                                   "notes.txt, step0010_layer000_cond_joint.0123456789abcdef.h5, "
                                   "step_by_step.h5 and 1 more\n"));
  for (const std::string& name : foreign) CHECK(read_file(shards + name) == name);
  CHECK(std::distance(fs::directory_iterator(shards), {}) == 4);
  // Of a folder that nothing belonged to, nothing is said.
  const auto again = run(out, {"--force"});
  CHECK(again.exit_code == 0);
  CHECK_FALSE(contains(again.err, "note: " + out));
  CHECK(std::distance(fs::directory_iterator(shards), {}) == 4);
}

TEST_CASE("shards that no OUT names stay beside new ones, and are told") {
  const TemporaryFolder folder;
  const std::string out = folder / "maps.h5";
  require_run(out, {"--compress", "gzip"});
  fs::remove(out);
  const auto refused = run(out, {"--compress", "gzip", "--dtype", "f32"});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err,
                 ".d: already exists (--force writes into it; what no OUT names stays)"));
  const auto forced = run(out, {"--compress", "gzip", "--dtype", "f32", "--force"});
  CHECK(forced.exit_code == 0);
  CHECK(contains(forced.err, "note: " + out +
                                 ".d holds more than the shards of this export: "
                                 "step0010_layer000_cond_joint."));
  const auto again = run(out, {"--compress", "gzip", "--dtype", "f32", "--force"});
  CHECK(contains(again.err, " holds more than the shards of this export: "));
}

TEST_CASE("an export that replaces one in shards and fails leaves it whole") {
  const TemporaryFolder folder;
  const std::string out = folder / "maps.h5";
  require_run(out, {"--compress", "gzip"});
  const auto before = std::distance(fs::directory_iterator(out + ".d"), {});
  CHECK(run(out, {"--force", "--mask", "no-such-mask"}).exit_code != 0);
  ProgramSettings settings;
  settings.max_file_bytes = 4096;
  CHECK(
      run_attnscope({"export", sample("moving-shapes"), "-o", out, "--force", "--quiet"}, settings)
          .exit_code != 0);
  CHECK(std::distance(fs::directory_iterator(out + ".d"), {}) == before);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
}

TEST_CASE("what has the name of a complete export and lacks something is not taken for one") {
  const TemporaryFolder folder;
  for (const Arguments& product :
       {Arguments{"--dtype", "f32"}, Arguments{"--compress", "gzip"}, Arguments{"--block", "16"}}) {
    INFO(product.front());
    const std::string out = folder / "maps.h5";
    Arguments resume = product;
    resume.emplace_back("--resume");
    require_run(out, product);
    const auto complete = run(out, resume);
    CHECK(contains(complete.err, "is complete already"));
    const std::string bytes = read_file(out);
    unmark(out);
    const auto unmarked = run(out, resume);
    INFO(unmarked.err);
    CHECK(unmarked.exit_code == 1);
    CHECK(contains(unmarked.err, "maps.h5: has the name of a complete "));
    CHECK(read_file(out) != bytes);
    resume.emplace_back("--force");
    require_run(out, resume);
    CHECK(read_file(out) == bytes);
    fs::remove(out);
    fs::remove_all(out + ".d");
  }
}

TEST_CASE("an export whose shards were moved away or cut is not complete") {
  const TemporaryFolder folder;
  const std::string out = folder / "maps.h5";
  const Arguments gzip{"--compress", "gzip"}, resume{"--compress", "gzip", "--resume"};
  require_run(out, gzip);
  const fs::path shard = fs::directory_iterator(out + ".d")->path();
  const std::string bytes = read_file(shard);
  fs::resize_file(shard, bytes.size() - 1);
  const auto cut = run(out, resume);
  CHECK(cut.exit_code == 1);
  CHECK(contains(cut.err, "its shard " + shard.filename().string() + " has "));
  fs::remove(shard);
  const auto gone = run(out, resume);
  CHECK(gone.exit_code == 1);
  CHECK(contains(gone.err, "its shard " + shard.filename().string() + " cannot be found"));
  require_run(out, {"--compress", "gzip", "--resume", "--force"});
  CHECK(read_file(shard) == bytes);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
}
