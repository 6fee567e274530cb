// attnscope relabel: what is told afterwards of a capture's calls.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "io/files/file_lock.h"
#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program_heads.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/told_late.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

/// The files of a folder and what is in them.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : fs::directory_iterator(folder)) {
    files[item.path().filename().string()] = read_file(item.path());
  }
  return files;
}

Json calls_of_capture(const std::string& path) {
  return Json::parse(run_well({"info", path, "--no-scan", "--json"}).out)["calls"];
}

/// "0 1 cond" a call: step, layer and branches.
std::vector<std::string> labels(const std::string& path) {
  std::vector<std::string> all;
  for (const Json& call : calls_of_capture(path)) {
    std::string text = call["step"].dump() + " " + call["layer"].dump();
    for (const auto& branch : call["branches"]) text += " " + branch.get<std::string>();
    if (call.contains("forward")) text += " f" + call["forward"].dump();
    all.push_back(text);
  }
  return all;
}

Arguments relabel(const std::string& path, const Arguments& options) {
  Arguments arguments{"relabel", path, "--quiet"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

/// Makes room behind the header of a file: `spaces` more.
void add_room(const std::string& file, size_t spaces) {
  const std::string bytes = read_file(file);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  write_bytes(file, safetensors_bytes(bytes.substr(8, length) + std::string(spaces, ' '),
                                      bytes.substr(8 + length)));
}

std::string guided_capture(const TemporaryFolder& folder, size_t room = 300) {
  const std::string path = write_untold(folder, guided_calls(), guided_forwards());
  for (const UntoldCall& call : guided_calls()) add_room(path + "/" + call.name(), room);
  return path;
}

const Arguments kTell{"--branches", "f0=cond,f1=uncond"};
const std::vector<std::string> kTold{"0 1 cond", "0 1 uncond", "0 3 cond", "0 3 uncond",
                                     "1 1 cond", "1 1 uncond", "1 3 cond", "1 3 uncond"};

/// It is refused with a line that has these parts, and nothing is changed.
void expect_refused(const std::string& path, const Arguments& options, int code,
                    const std::vector<std::string>& parts) {
  const auto before = contents(path);
  const ProgramResult r = run_attnscope(relabel(path, options));
  INFO(r.err);
  CHECK(r.exit_code == code);
  CHECK(r.out == "");
  for (const std::string& part : parts) CHECK(contains(r.err, part));
  CHECK(contents(path) == before);
}

}  // namespace

TEST_CASE("relabel names branches in place, and drops what only told forwards apart") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  const auto before = contents(path);
  const auto r = run_attnscope({"relabel", path, "--branches", "f0=cond,f1=uncond"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(r.err == "");
  CHECK(contains(r.out, "4 calls: branch f0 -> cond\n"));
  CHECK(labels(path) == kTold);
  const auto after = contents(path);
  CHECK(after.size() == before.size());
  for (const auto& [name, bytes] : before) {
    if (name == "capture.json") continue;
    // Only the header is another.
    CHECK(after.at(name).size() == bytes.size());
    CHECK(after.at(name).substr(0, 8) == bytes.substr(0, 8));
    CHECK(after.at(name) != bytes);
  }
  const Json root = Json::parse(after.at("capture.json"));
  CHECK(root["forwards"][3]["branch"] == "uncond");
  CHECK((root["calls"][0]["branches"][0] == "cond" && !root["calls"][0].contains("forward")));
  // One file by itself says it, too.
  CHECK(calls_of_capture(path + "/" + guided_calls()[2].name())[0]["branches"][0] == "uncond");
}

TEST_CASE("relabel swaps at once, and renames each batch item") {
  const TemporaryFolder folder;
  const std::string path = folder / "dump";
  fs::create_directory(path);
  for (const char* step : {"0", "1"}) {
    CallFile()
        .pair({2, 1, 6, 4}, {2, 1, 6, 4})
        .fact("step", step)
        .fact("layer", "0")
        .fact("branches", R"(["uncond","cond"])")
        .write(path + "/" + step + ".safetensors");
  }
  run_well(relabel(path, {"--branches", "cond=uncond,uncond=cond", "--steps", "0=1,1=0"}));
  CHECK(labels(path) == std::vector<std::string>{"0 0 cond uncond", "1 0 cond uncond"});
  CHECK(calls_of_capture(path)[0]["file"] == path + "/1.safetensors");
}

TEST_CASE("relabel tells steps of forwards, by their number or so many a step") {
  const TemporaryFolder folder;
  std::vector<UntoldCall> calls;
  for (int64_t forward = 0; forward < 4; ++forward) calls.push_back({forward, -1, -1, 2});
  const std::string forwards =
      R"("forwards":[{"forward":2,"transformer":"T","chosen":true}],
         "refused":[{"forward":3,"slot":"a","why":"no scale"}])";
  const std::vector<std::string> told{"0 2 cond", "0 2 uncond", "1 2 cond", "1 2 uncond"};
  const std::string path = write_untold(folder, calls, forwards);
  run_well(relabel(path, {"--forwards-per-step", "2", "--branches", "f0=cond,f1=uncond"}));
  CHECK(labels(path) == told);
  const Json root = Json::parse(read_file(path + "/capture.json"));
  CHECK((root["forwards"][0]["step"] == 1 && root["forwards"][0]["branch"] == "cond"));
  CHECK((root["refused"][0]["step"] == 1 && root["refused"][0]["branch"] == "uncond"));

  const std::string other = write_untold(folder, calls, "", "other");
  run_well(relabel(other, {"--steps", "f0-f1=0,f2-f3=1", "--branches", "f0=cond,f1=uncond"}));
  CHECK(labels(other) == told);
  const std::string half = write_untold(folder, calls, "", "half");
  run_well(relabel(half, {"--steps", "f0-f3=5-8"}));
  CHECK(labels(half) ==
        std::vector<std::string>{"5 2 f0 f0", "6 2 f0 f1", "7 2 f0 f2", "8 2 f0 f3"});
}

TEST_CASE("relabel numbers layers and blocks, and keeps forwards that calls need") {
  const TemporaryFolder folder;
  const std::string path = write_untold(
      folder,
      {{0, 0, 0, -1, -1, "refiner.0"}, {0, 0, 0, -1, 1, "refiner.0"}, {0, 0, 0, 3}, {1, 0, 1, 4}});
  const auto r = run_attnscope(
      {"relabel", path, "--layers", "3-4=20-21,refiner.0=40", "--branches", "f0=cond"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.out, "layer - -> 40"));
  CHECK(contains(r.out, "forward kept, which alone tells it apart"));
  CHECK(labels(path) ==
        std::vector<std::string>{"0 20 cond", "0 21 f1 f1", "0 40 cond f0", "0 40 cond f0"});
}

TEST_CASE("relabel --dry-run changes nothing, and says all in JSON") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  const auto before = contents(path);
  const Json json = Json::parse(
      run_well({"relabel", path, "--branches", "f1=uncond", "--dry-run", "--json"}).out);
  CHECK((json["format"] == "attnscope-relabel/1" && json["written"] == false));
  CHECK((json["headers_in_place"] == 4 && json["files_written_anew"] == 0));
  REQUIRE(json["calls"].size() == 4);
  CHECK(json["calls"][0]["before"]["forward"] == 1);
  CHECK(json["calls"][0]["after"]["branches"][0] == "uncond");
  CHECK(contents(path) == before);
  CHECK(run_well({"relabel", path, "--steps", "0=0"}).out == "nothing changes\n");
  CHECK(contents(path) == before);
}

TEST_CASE("relabel writes files anew whose headers have no room or that have other names") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder, 0);
  const std::string name = guided_calls().front().name();
  const std::string linked = folder / "linked.safetensors";
  add_room(path + "/" + name, 300);
  fs::create_hard_link(path + "/" + name, linked);
  const std::string old = read_file(linked);
  const std::string longest(60, 'n');
  const auto r = run_attnscope({"relabel", path, "--branches", "f0=" + longest});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.err, "4 files"));
  CHECK(contains(r.err, "written anew"));
  CHECK(read_file(linked) == old);
  CHECK(labels(path)[0] == "0 1 " + longest);
  // Now they have room.
  const Json again =
      Json::parse(run_well({"relabel", path, "--branches", longest + "=cond", "--json"}).out);
  CHECK((again["headers_in_place"] == 4 && again["files_written_anew"] == 0));
  CHECK(labels(path)[0] == "0 1 cond");
}

TEST_CASE("relabel refuses what cannot be meant, and changes nothing") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  expect_refused(path, {}, 2, {"nothing is told", "--branches"});
  expect_refused(path, {"--branches", "f2=cond"}, 2, {"f2=cond", "no such branch", "f0, f1"});
  expect_refused(path, {"--branches", "f0"}, 2, {"f0", "OLD=NEW"});
  expect_refused(path, {"--branches", "f0=a,"}, 2, {"OLD=NEW after each comma"});
  expect_refused(path, {"--branches", "f0=a,f0=b"}, 2, {"f0 is told twice"});
  expect_refused(path, {"--branches", "f0=a b"}, 2, {"is no name of a branch"});
  expect_refused(path, {"--steps", "7=8"}, 2, {"7=8", "no such step", "steps 0-1"});
  expect_refused(path, {"--steps", "f0=8"}, 2, {"no such forward without a step"});
  expect_refused(path, {"--steps", "0-1=4-6"}, 2, {"different lengths"});
  expect_refused(path, {"--steps", "0=1,0-1=4"}, 2, {"told by 0=1 already"});
  expect_refused(path, {"--steps", "x=1"}, 2, {"x=1", "a forward as f3"});
  expect_refused(path, {"--layers", "1=x"}, 2, {"a whole number"});
  expect_refused(path, {"--layers", "b.0=1"}, 2, {"no such block without a layer", "layers 1, 3"});
  expect_refused(path, {"--forwards-per-step", "2"}, 2, {"no forward without a step"});
  expect_refused(path, {"--forwards-per-step", "2", "--steps", "f0=1"}, 2, {"not both"});
  run_well(relabel(path, kTell));
  expect_refused(path, {"--branches", "cond=uncond"}, 2,
                 {"would both be", "branch uncond", "nothing is changed"});
  expect_refused(path, {"--layers", "1=3"}, 2, {"would both be", "layer 3"});
  const auto file = run_attnscope(relabel(path + "/" + guided_calls()[0].name(), kTell));
  CHECK(file.exit_code == 2);
  CHECK(contains(file.err, "is one file"));
  CHECK(run_attnscope(relabel(folder / "none", kTell)).exit_code == 1);
}

TEST_CASE("relabel refuses links, files told by names, and a recorder at work") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  const std::string first = path + "/" + guided_calls()[0].name();
  {
    const FileLock recorder(path + "/capture.json.lock", path);
    const auto r = run_attnscope(relabel(path, kTell));
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "is being written"));
    CHECK(run_attnscope(relabel(path, {"--branches", "f0=a", "--dry-run"})).exit_code == 1);
  }
  fs::rename(first, folder / "elsewhere.safetensors");
  fs::create_symlink(folder / "elsewhere.safetensors", first);
  const auto r = run_attnscope(relabel(path, kTell));
  CHECK(r.exit_code == 1);
  CHECK(contains(r.err, "link"));
  CHECK(labels(folder / "elsewhere.safetensors")[0] == "0 1 f0 f0");
}

TEST_CASE("relabel that is killed at any moment leaves what it finishes") {
  if (sanitized()) {
    skip_test("a sanitizer has its own allocator");
    return;
  }
  const TemporaryFolder folder;
  const auto prepare = [&](size_t room) {
    fs::remove_all(folder / "dump");
    return guided_capture(folder, room);
  };
  for (const size_t room : {size_t{300}, size_t{0}}) {
    const Arguments tell =
        relabel(folder / "dump", {"--branches", "f0=conditioned,f1=unconditional"});
    const std::string counted = prepare(room);
    const std::string whole = folder / "whole";
    fs::remove_all(whole);
    fs::copy(counted, whole);
    const std::string names = "f0=conditioned,f1=unconditional";
    const Json json = Json::parse(run_well({"relabel", whole, "--json", "--branches", names}).out);
    REQUIRE(json[room == 0 ? "files_written_anew" : "headers_in_place"] == 8);
    const auto wanted = contents(whole);
    for (const char* kind : {"kill", "kill-write"}) {
      prepare(room);
      const long count = calls_of(tell, kind);
      REQUIRE(count > 8);
      int journals = 0;
      for (long n = 1; n <= count; ++n) {
        const std::string path = prepare(room);
        const auto before = contents(path);
        const auto killed = run_attnscope(tell, with_fault(kind, n));
        INFO(kind << " " << n << " of " << count << ": " << killed.err);
        REQUIRE(killed.exit_code == 128 + SIGKILL);
        if (fs::exists(path + "/.relabel.journal")) {
          ++journals;
          const auto refused = run_attnscope({"info", path});
          CHECK(refused.exit_code == 1);
          CHECK(contains(refused.err, "attnscope relabel " + path));
          CHECK(run_attnscope(tell).exit_code == 2);
          run_well({"relabel", path});
        } else {
          // Nothing was changed, or all.
          const auto now = contents(path);
          const bool is_old = now.at("capture.json") == before.at("capture.json");
          for (const auto& [name, bytes] : is_old ? before : wanted) CHECK(now.at(name) == bytes);
          if (!is_old) continue;
          run_well(tell);
        }
        auto now = contents(path);
        now.erase("capture.json.lock");
        CHECK(now == wanted);
      }
      CHECK(journals > 4);
    }
  }
}

TEST_CASE("a signal before the journal changes nothing, after it relabel goes on") {
  if (sanitized()) {
    skip_test("a sanitizer has its own allocator");
    return;
  }
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  const Arguments tell = relabel(path, kTell);
  const auto before = contents(path);
  // The journal is synced before it has its name.
  const auto early = run_attnscope(tell, with_fault("stop", 1));
  INFO(early.err);
  CHECK(early.exit_code == 4);
  CHECK(contains(early.err, "nothing was changed"));
  CHECK(contents(path) == before);
  // Its name and its folder's sync follow, then the first header's.
  const auto late = run_attnscope(tell, with_fault("stop", 4));
  INFO(late.err);
  CHECK(late.exit_code == 4);
  CHECK(contains(late.err, "attnscope relabel " + path + " finishes it"));
  CHECK(fs::exists(path + "/.relabel.journal"));
  const Json pending = Json::parse(run_well({"relabel", path, "--dry-run", "--json"}).out);
  CHECK((pending["resumed"] == true && pending["headers_in_place"] == 8));
  CHECK(fs::exists(path + "/.relabel.journal"));
  run_well({"relabel", path});
  CHECK(labels(path) == kTold);
  CHECK(contents(path).size() == before.size());
}

TEST_CASE("commands refuse a folder whose relabelling was interrupted") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  write_bytes(path + "/.relabel.journal", "");
  const std::string out = folder / "out", line = "attnscope relabel " + path + " finishes it";
  for (const Arguments& arguments :
       {Arguments{"info", path}, Arguments{"info", path + "/capture.json"},
        Arguments{"verify", path}, Arguments{"stats", path}, Arguments{"convert", path, "-o", out},
        Arguments{"export", path, "-o", out + ".h5"}, Arguments{"merge", path, "-o", out}}) {
    const auto r = run_attnscope(arguments);
    INFO(arguments.front() << ": " << r.err);
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, line));
    CHECK(r.out == "");
  }
  // Nor is it replaced as a capture that nobody misses.
  fs::remove(path + "/.relabel.journal");
  run_well({"convert", path, "-o", out, "--quiet"});
  write_bytes(out + "/.relabel.journal", "");
  const auto r = run_attnscope({"convert", path, "-o", out, "--force"});
  CHECK(r.exit_code == 1);
  CHECK(contains(r.err, ".relabel.journal"));
}

TEST_CASE("chunks of forwards that nobody told are not joined before relabel tells them") {
  const TemporaryFolder folder;
  const std::string path = folder / "dump", out = folder / "out";
  fs::create_directory(path);
  for (int64_t chunk = 0; chunk < 2; ++chunk) {
    UntoldCall{chunk, 0, 0, 1}
        .file()
        .fact("kind", "self")
        .fact("chunk", std::to_string(chunk))
        .fact("queries",
              R"([{"name":"video","modality":"video","count":6,"grid":[1,2,3],"position":)" +
                  std::to_string(6 * chunk) + "}]")
        .write(path + "/" + std::to_string(chunk) + ".safetensors");
  }
  const auto refused = run_attnscope({"convert", "--stitch", path, "-o", out});
  INFO(refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "nobody told the step or branch of chunk 0 (forward 0)"));
  run_well({"relabel", path, "--branches", "f0=cond"});
  run_well({"convert", "--stitch", path, "-o", out, "--quiet"});
  const Json joined = calls_of_capture(out);
  REQUIRE(joined.size() == 1);
  CHECK((joined[0]["branches"][0] == "cond" && joined[0]["queries"] == 12));
}

TEST_CASE("a journal that is none is told, and names no file elsewhere") {
  const TemporaryFolder folder;
  const std::string path = guided_capture(folder);
  const auto refused_journal = [&](const std::string& text) {
    write_bytes(path + "/.relabel.journal", text);
    const auto r = run_attnscope({"relabel", path});
    CHECK(r.exit_code == 1);
    return r.err;
  };
  const std::string head =
      R"({"format":"attnscope-relabel/1","files":1,"catalogue":false,"bytes":0})"
      "\n\n";
  CHECK(contains(refused_journal("{}\n"), "record 1: is no record of a journal"));
  CHECK(contains(refused_journal("{"), "record 1: is cut off"));
  CHECK(contains(refused_journal(head), "is no complete journal"));
  CHECK(contains(refused_journal(head + "{\"file\":7,\"bytes\":0}\n\n"), "record 2"));
  const auto patch = [&](const std::string& file, const std::string& sizes) {
    return head + R"({"file":")" + file + R"(","is_shared":false,"bytes":2,)" + sizes + "}\n{}\n";
  };
  const std::string sizes = R"("file_bytes":100,"header_bytes":40,"to_bytes":40)";
  CHECK(contains(refused_journal(patch("../x", sizes)), "is no file of this folder"));
  CHECK(contains(refused_journal(patch(guided_calls()[0].name(), sizes)), "was changed since"));
  CHECK(contains(refused_journal(patch("x", R"("file_bytes":9,"header_bytes":8,"to_bytes":4)")),
                 "cannot be"));
}
