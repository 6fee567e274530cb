#include <fstream>

#include "io/capture/lse_cache.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> caches_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

/// A capture of one file with two heads, and a home of its own.
struct Fixture {
  Fixture() {
    fs::create_directory(folder.path() / "data");
    write(1);
  }
  void write(uint64_t seed) const {
    ReferenceCall({1, 2, 1, 60, 60, 8}, seed).fact("grid", "3x4x5").write(capture());
  }
  std::string capture() const { return folder / "data/call.safetensors"; }
  fs::path beside() const { return folder.path() / "data" / ".attnscope"; }
  fs::path user() const { return folder.path() / "user" / "attnscope"; }

  ProgramResult run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"query", capture(), "--reverse",      "--query",
                                       "1,2,3", "-o",      folder / "r.npy", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramSettings settings;
    settings.environment = {"XDG_CACHE_HOME=" + (folder / "user")};
    return run_attnscope(arguments, settings);
  }
  std::vector<float> values() const { return read_npy(folder / "r.npy").values; }

  TemporaryFolder folder;
};

bool used(const ProgramResult& result, const std::string& counts) {
  UNSCOPED_INFO(result.err);
  return result.exit_code == 0 && contains(result.err, "row sums: " + counts);
}

std::string key_of(const fs::path& cache) { return cache.stem().string().substr(4); }

}  // namespace

TEST_CASE("row sums are kept beside the capture and used by the next run") {
  const Fixture f;
  CHECK(used(f.run(), "0 from the cache, 2 computed"));
  const auto first = f.values();
  CHECK(caches_in(f.beside()).size() == 2);
  CHECK(used(f.run(), "2 from the cache, 0 computed"));
  CHECK(f.values() == first);
  // Twice the sums would be half of the weights: they are found out, said, and replaced.
  LseCache cache({f.beside()});
  for (const fs::path& file : caches_in(f.beside())) {
    std::vector<RowNorm> norms(60);
    REQUIRE(cache.load(key_of(file), norms));
    for (RowNorm& norm : norms) ++norm.exponent;
    REQUIRE_FALSE(cache.store(key_of(file), norms));
  }
  const ProgramResult warned = f.run();
  CHECK(used(warned, "0 from the cache, 2 computed"));
  CHECK(warned.err.find("not of this map") != std::string::npos);
  CHECK(f.values() == first);
  CHECK(used(f.run(), "2 from the cache, 0 computed"));
  CHECK(f.values() == first);
  CHECK(caches_in(f.user()).empty());
}

TEST_CASE("damaged and strange row sums are computed again") {
  const Fixture f;
  REQUIRE(f.run().exit_code == 0);
  const auto first = f.values();
  const auto files = caches_in(f.beside());
  REQUIRE(files.size() == 2);
  const std::string good = read_file(files[0]);
  std::vector<std::string> broken{"", "x", good + "x", good.substr(0, good.size() - 1),
                                  read_file(files[1])};
  for (size_t at = 0; at < good.size(); at += 41) {
    broken.push_back(good);
    broken.back()[at] = static_cast<char>(broken.back()[at] ^ 4);
  }
  for (const std::string& bytes : broken) {
    std::ofstream(files[0], std::ios::binary) << bytes;
    CHECK(used(f.run(), "1 from the cache, 1 computed"));
    CHECK(f.values() == first);
    CHECK(read_file(files[0]) == good);
  }
}

TEST_CASE("other data, facts and backends have row sums of their own") {
  const Fixture f;
  REQUIRE(f.run().exit_code == 0);
  const std::string fresh = "0 from the cache, 2 computed";
  CHECK(used(f.run({"--scale", "0.5"}), fresh));
  CHECK(used(f.run({"--mask", "causal"}), fresh));
  CHECK(used(f.run({"--score", "linear:elu1"}), fresh));
  CHECK(used(f.run({"--backend", "reference"}), fresh));
  CHECK(used(f.run({"--domain", "frame"}), fresh));
  // All keys are video: the domain changes nothing.
  CHECK(used(f.run({"--domain", "video"}), "2 from the cache, 0 computed"));
  f.write(2);
  CHECK(used(f.run(), fresh));
  const ReferenceCall other({1, 2, 1, 60, 60, 8}, 2);
  CHECK(f.values()[5] == Approx(other.row(0, 0, 5)[33]).epsilon(1e-4));
  // The file's time and name mean nothing.
  fs::last_write_time(f.capture(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(used(f.run(), "2 from the cache, 0 computed"));
  // Without norms there is nothing to keep.
  const size_t before = caches_in(f.beside()).size();
  CHECK(f.run({"--score", "sigmoid"}).exit_code == 0);
  CHECK(caches_in(f.beside()).size() == before);
}

TEST_CASE("where the capture's folder cannot be written the user's cache serves") {
  const Fixture f;
  // A file of that name stops root as well.
  std::ofstream(f.beside()) << "in the way";
  CHECK(used(f.run(), "0 from the cache, 2 computed"));
  CHECK(caches_in(f.user()).size() == 2);
  CHECK(used(f.run(), "2 from the cache, 0 computed"));
  CHECK(read_file(f.beside()) == "in the way");
  fs::remove_all(f.folder.path() / "user");
  std::ofstream(f.folder.path() / "user") << "in the way";
  const auto nowhere = f.run({"--quiet"});
  CHECK(nowhere.exit_code == 0);
  CHECK(contains(nowhere.err, "warning: row sums could not be kept"));
}

TEST_CASE("a cache is written where it was asked for, or not at all") {
  const Fixture f;
  CHECK(f.run({"--cache", "none"}).exit_code == 0);
  CHECK(f.run({"--dry-run"}).exit_code == 0);
  CHECK_FALSE(fs::exists(f.beside()));
  CHECK_FALSE(fs::exists(f.user()));
  const auto forwards =
      run_attnscope({"query", f.capture(), "--query", "1,2,3", "--cache", f.folder.path() / "c"});
  CHECK(contains(forwards.err, "--cache changes nothing"));
  CHECK_FALSE(fs::exists(f.folder.path() / "c"));
  const fs::path chosen = f.folder.path() / "a" / "b";
  CHECK(used(f.run({"--cache", chosen.string()}), "0 from the cache, 2 computed"));
  CHECK(caches_in(chosen).size() == 2);
  CHECK(used(f.run({"--cache", chosen.string()}), "2 from the cache, 0 computed"));
  CHECK_FALSE(fs::exists(f.beside()));
}
