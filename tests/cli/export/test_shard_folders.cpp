// OUT.d and OUT.d.part, the folders of an export in shards: nothing in them goes that is not the
// export's own, whatever stands there.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/cli/merge/parts.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

const Arguments kForms[] = {{"--compress", "gzip"}, {"--topk", "3"}, {"--threshold", "0.02"}};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProgramResult run(const std::string& capture, const std::string& out, const Arguments& form,
                  const Arguments& more = {}) {
  Arguments arguments{"export", capture, "--layers", "0-1", "--heads", "0",
                      "--rows", "0:100", "--quiet",  "-o",  out};
  arguments.insert(arguments.end(), form.begin(), form.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments);
}

/// Everything below a folder but locks, by its name there.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (!item.is_regular_file() || item.path().extension() == ".lock") continue;
    files[item.path().lexically_relative(folder).string()] = read_file(item.path());
  }
  return files;
}

std::vector<std::string> shards_of(const std::string& out) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(out + ".d")) {
    names.push_back(item.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("an export whose folder of shards is the capture's is refused") {
  const TemporaryFolder folder;
  require_run({"convert", sample("moving-shapes"), "-o", folder / "cap.d", "--quiet"});
  fs::create_directory_symlink(folder / "cap.d", folder / "linked.d");
  fs::create_directory(folder / "deep.d");
  fs::rename(folder / "cap.d", folder / "deep.d/cap");
  fs::create_directory_symlink(folder / "deep.d/cap", folder / "cap.d");
  const auto before = files_in(folder.path());
  for (const Arguments& form : kForms) {
    for (const std::string name : {"cap", "linked", "deep"}) {
      for (const Arguments& more : {Arguments{}, Arguments{"--force"}, Arguments{"--resume"}}) {
        INFO(form.front() << " to " << name << (more.empty() ? "" : " " + more.front()));
        const auto refused = run(folder / "deep.d/cap", folder / name, form, more);
        INFO(refused.err);
        CHECK(refused.exit_code == 1);
        CHECK(contains(refused.err, "is an input of this run, and would be destroyed"));
        CHECK(files_in(folder.path()) == before);
      }
    }
  }
}

TEST_CASE("parts that stand in the folder of the whole's shards are not merged into it") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "whole.d");
  const auto parts = run_parts({"export", sample("moving-shapes"), "--layers", "0-1", "--heads",
                                "0", "--rows", "0:100", "--compress", "gzip", "--quiet"},
                               folder / "whole.d/step-{shard}.h5", 2);
  const auto before = files_in(folder.path());
  for (const Arguments& more :
       {Arguments{}, Arguments{"--force"}, Arguments{"--copy", "--force"}}) {
    const auto refused = merge(parts, folder / "whole", more);
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, "is an input of this run, and would be destroyed"));
    CHECK(files_in(folder.path()) == before);
  }
}

TEST_CASE("no shard is written or removed through a link") {
  for (const Arguments& form : kForms) {
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    fs::create_directory(folder / "elsewhere");
    std::ofstream(folder / "elsewhere/step_results.h5") << "mine";
    fs::create_directory_symlink(folder / "elsewhere", out + ".d");
    std::ofstream(out) << "an older one";
    const auto before = files_in(folder.path());
    const auto refused = run(sample("moving-shapes"), out, form, {"--force"});
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, out + ".d: is no folder of this export's own: a link"));
    CHECK(files_in(folder.path()) == before);
    fs::remove(out + ".d");
    std::ofstream(out + ".d") << "a file";
    CHECK(run(sample("moving-shapes"), out, form, {"--force"}).exit_code == 1);
    CHECK(read_file(out + ".d") == "a file");
  }
}

TEST_CASE("an export without shards over a master leaves a folder that a link leads to") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  REQUIRE(run(sample("moving-shapes"), out, kForms[0]).exit_code == 0);
  fs::rename(out + ".d", folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", out + ".d");
  const auto before = files_in(folder.path());
  for (const Arguments& form : {Arguments{}, Arguments{"--block", "16"}}) {
    const auto refused = run(sample("moving-shapes"), out, form, {"--force"});
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(files_in(folder.path()) == before);
  }
}

TEST_CASE("a master that was renamed with its folder is told of: others read nothing there") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5", other = folder / "other.h5";
  REQUIRE(run(sample("moving-shapes"), out, kForms[0]).exit_code == 0);
  CHECK(run_attnscope({"verify", out}).exit_code == 0);
  fs::rename(out, other);
  fs::rename(out + ".d", other + ".d");
  for (const char* command : {"verify", "info"}) {
    const auto told = run_attnscope({command, other});
    INFO(command << told.out << told.err);
    CHECK(told.exit_code == 3);
    CHECK(contains(told.out, "look for its shards in out.h5.d"));
  }
}

TEST_CASE("of OUT.d only the shards go that the older OUT names") {
  const Arguments foreign{"notes.txt",
                          "step_results.h5",
                          "replaced",
                          "x.tmp",
                          "step0010_layer000_cond_joint.h5",
                          "step0010_layer000_cond_joint.0123456789abcdef.h5"};
  for (const Arguments& older : kForms) {
    for (const Arguments& newer : kForms) {
      INFO(newer.front() << " over " << older.front());
      const TemporaryFolder folder;
      const std::string out = folder / "out.h5";
      REQUIRE(run(sample("moving-shapes"), folder / "fresh.h5", newer).exit_code == 0);
      REQUIRE(run(sample("moving-shapes"), out, older).exit_code == 0);
      for (const std::string& name : foreign) std::ofstream(out + ".d/" + name) << name;
      const auto replaced = run(sample("moving-shapes"), out, newer, {"--force"});
      INFO(replaced.err);
      REQUIRE(replaced.exit_code == 0);
      for (const std::string& name : foreign) CHECK(read_file(out + ".d/" + name) == name);
      std::vector<std::string> expected = shards_of(folder / "fresh.h5");
      expected.insert(expected.end(), foreign.begin(), foreign.end());
      std::sort(expected.begin(), expected.end());
      CHECK(shards_of(out) == expected);
      require_run({"verify", out, "--quiet"});
    }
  }
}

TEST_CASE("a list of replaced shards counts for its own export alone") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5", digest = "0123456789abcdef";
  const std::string shard = "step0_mine." + digest + ".h5";
  fs::create_directory(out + ".d");
  std::ofstream(out + ".d/" + shard) << "mine";
  std::ofstream(out + ".d/mine.h5") << "mine";
  const std::string names = "mine.h5\n" + shard + "\n";
  std::ofstream(out + ".d/replaced") << names;
  std::ofstream(out + ".d/replaced." + digest)
      << "attnscope shards replaced by " + digest + "\n" + names;
  // Neither without --force, nor over an older one, nor by --resume.
  for (const Arguments& more :
       {Arguments{}, Arguments{"--force"}, Arguments{"--resume"},
        Arguments{"--block", "16", "--force"}, Arguments{"--compress", "gzip", "--force"}}) {
    const auto result = run(sample("moving-shapes"), out, {}, more);
    INFO((more.empty() ? "" : more.front()) << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(read_file(out + ".d/mine.h5") == "mine");
    CHECK(read_file(out + ".d/" + shard) == "mine");
    CHECK(read_file(out + ".d/replaced") == names);
  }
}

TEST_CASE("OUT.d.part that holds somebody else's file is not given up, nor gone on with") {
  for (const std::string name : {"notes.h5", "step_results.h5", "x.tmp"}) {
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    fs::create_directory(out + ".d.part");
    std::ofstream(out + ".d.part/" + name) << "mine";
    std::ofstream(out + ".d.part/step0_mine.0123456789abcdef.h5") << "a shard";
    const auto before = files_in(folder.path());
    for (const Arguments& form : {Arguments{"--compress", "gzip"}, Arguments{}}) {
      for (const std::string more : {"--force", "--resume"}) {
        const auto refused = run(sample("moving-shapes"), out, form, {more});
        INFO(name << " " << more << ": " << refused.err);
        CHECK(refused.exit_code == 1);
        CHECK(contains(refused.err, out + ".d.part: "));
        CHECK(files_in(folder.path()) == before);
      }
    }
  }
}
