// Exports in parts: the whole is the file of one process, byte for byte, for any number of parts.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "io/export/format/export_marks.h"
#include "io/hdf5/hdf5_reader.h"
#include "tests/cli/merge/parts.h"
#include "tests/support/answers.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// Two calls of two heads: a third and a seventh part cut calls, and some of seven are empty.
const Arguments kSmall{"--layers", "0-1", "--heads", "0-1", "--rows", "0:150"};

Arguments export_of(const Arguments& product) {
  Arguments arguments{"export", sample("moving-shapes"), "--quiet"};
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  arguments.insert(arguments.end(), product.begin(), product.end());
  return arguments;
}

std::string whole_of(const TemporaryFolder& folder, const Arguments& product) {
  Arguments arguments = export_of(product);
  const std::string out = folder / "one.h5";
  arguments.insert(arguments.end(), {"-o", out, "--force"});
  require_run(arguments);
  return read_file(out);
}

/// Makes the master of an export in shards what older versions wrote: /calls/NAME are links.
void make_older(const std::string& out) {
  using namespace attnscope;
  const std::vector<std::string> names = group_members(out, "/calls");
  ExportManifest stored;
  {
    const Hdf5Session session;
    {
      const Hdf5File file(H5Fopen(out.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), out, "");
      REQUIRE(H5Ldelete(file.id(), "call_index", H5P_DEFAULT) >= 0);
      for (const std::string& name : names) {
        const std::string object = "/calls/" + name;
        REQUIRE(H5Ldelete(file.id(), object.c_str(), H5P_DEFAULT) >= 0);
        for (const auto& shard : fs::directory_iterator(out + ".d")) {
          const std::string source = shard.path().filename().string();
          if (source.rfind(name + ".", 0) != 0) continue;
          REQUIRE(H5Lcreate_external((fs::path(out).filename().string() + ".d/" + source).c_str(),
                                     object.c_str(), file.id(), object.c_str(), H5P_DEFAULT,
                                     H5P_DEFAULT) >= 0);
        }
      }
    }
    const Hdf5Reader reader(out);
    stored.complete = reader.address(reader.dataset(reader.root(), "complete"), "complete");
    stored.structure = reader.address(reader.dataset(reader.root(), "structure_checksum"), "sum");
  }
  seal_export(stored, PosixFile(out, PosixFile::Mode::existing));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("one, two, three and seven parts make the file of one process") {
  for (const Arguments& product :
       {Arguments{}, Arguments{"--dtype", "u8"}, Arguments{"--product", "logits"},
        Arguments{"--product", "lse"}}) {
    const TemporaryFolder folder;
    const std::string whole = whole_of(folder, product);
    for (const int count : {1, 2, 3, 7}) {
      INFO((product.empty() ? "weights" : product.back()) << " in " << count);
      const std::string name = folder / ("part" + std::to_string(count) + "-{shard}.h5");
      const auto parts = run_parts(export_of(product), name, count);
      const std::string out = folder / ("whole" + std::to_string(count) + ".h5");
      const auto merged = merge(parts, out, {"--copy"});
      INFO(merged.err);
      REQUIRE(merged.exit_code == 0);
      CHECK(read_file(out) == whole);
    }
  }
}

TEST_CASE("parts in shards and of blocks make the whole of one process") {
  for (const Arguments& product :
       {Arguments{"--compress", "gzip"}, Arguments{"--topk", "8"}, Arguments{"--threshold", "0.01"},
        Arguments{"--block", "16", "--pyramid"}, Arguments{"--block", "32"}}) {
    const TemporaryFolder folder;
    const std::string whole = whole_of(folder, product);
    for (const int count : {1, 2, 3}) {
      INFO(product.front() << " in " << count);
      const std::string name = folder / ("part" + std::to_string(count) + "-{shard}.h5");
      const auto parts = run_parts(export_of(product), name, count);
      for (const bool copy : {false, true}) {
        // The master names its folder of shards.
        fs::create_directory(folder / "out");
        const std::string out = folder / "out/one.h5";
        const auto merged = merge(parts, out, copy ? Arguments{"--copy"} : Arguments{});
        INFO(merged.err);
        REQUIRE(merged.exit_code == 0);
        CHECK(read_file(out) == whole);
        require_run({"verify", out});
        fs::remove_all(folder / "out");
      }
    }
  }
}

TEST_CASE("masters of older versions, whose groups are links, are read and merged") {
  for (const Arguments& product : {Arguments{"--compress", "gzip"}, Arguments{"--topk", "8"},
                                   Arguments{"--threshold", "0.01"}}) {
    INFO(product.front());
    const TemporaryFolder folder;
    whole_of(folder, product);
    const std::string one = folder / "one.h5";
    const auto facts = [&] { return require_run({"info", one, "--json"}).out; };
    const auto calls = [&](const std::string& json) { return json.substr(json.find("\"calls\"")); };
    const std::string before = facts();
    const auto maps = product.front() == "--compress";
    const Arguments query{"query", one,  "--index",          "40",      "--layers",
                          "0",     "-o", folder / "row.npy", "--force", "--quiet"};
    if (maps) require_run(query);
    const std::string row = maps ? read_file(folder / "row.npy") : "";
    make_older(one);
    CHECK(calls(facts()) == calls(before));
    require_run({"verify", one});
    if (maps) {
      require_run(query);
      CHECK(read_file(folder / "row.npy") == row);
    }
    Arguments again = export_of(product);
    again.insert(again.end(), {"-o", one, "--resume"});
    require_run(again);
    const auto parts = run_parts(export_of(product), folder / "part-{shard}.h5", 2);
    // One of them, and both.
    for (const std::string& part : parts) {
      make_older(part);
      const std::string out = folder / ("of-" + fs::path(part).filename().string());
      const auto merged = merge(parts, out);
      INFO(merged.err);
      REQUIRE(merged.exit_code == 0);
      require_run({"verify", out});
      const std::string json = require_run({"info", out, "--json"}).out;
      CHECK(contains(json, "step0010_layer001_cond_joint"));
      CHECK(contains(json, "\"layer\": 1"));
    }
  }
}

TEST_CASE("a part knows which part it is, and is looked at as far as its content goes") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 3);
  const auto info = require_run({"info", parts[1]});
  CHECK(contains(info.out, "part 1/3 of plan "));
  CHECK(contains(info.out, "of its 4 units"));
  CHECK(contains(require_run({"verify", parts[1]}).out, "part 1/3 of a plan"));
  const auto json = require_run({"info", parts[1], "--json"});
  CHECK(contains(json.out, "\"shard\": \"1/3\""));
  CHECK(contains(json.out, "\"plan_hash\": "));
  require_run({"render", parts[1], "--picture", "mosaic", "-o", folder / "part.png"});
  require_run({"query", parts[1], "--index", "100"});
  // Seven parts of four heads: some are outputs without any.
  const auto many = run_parts(export_of({}), folder / "many-{shard}.h5", 7);
  int empty = 0;
  for (const std::string& part : many) {
    require_run({"verify", part});
    empty += contains(require_run({"info", part}).out, ": 0 of its 4 units") ? 1 : 0;
  }
  CHECK(empty == 3);
}

TEST_CASE("a master links the parts beside it, and every command reads through it") {
  const TemporaryFolder folder;
  whole_of(folder, {});
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 3);
  const std::string out = folder / "maps.h5";
  const auto merged = merge(parts, out);
  INFO(merged.err);
  REQUIRE(merged.exit_code == 0);
  const auto info = require_run({"info", out});
  CHECK(contains(info.out, "in part-1-of-3.h5"));
  CHECK(contains(info.out, "complete: 3 parts"));
  CHECK(contains(require_run({"verify", out}).out, "good: 3 of 3 parts good"));
  const Arguments query{"query", out, "--index", "100", "--json"};
  Arguments same = query;
  same[1] = folder / "one.h5";
  CHECK(answer_alone(require_run(query).out) == answer_alone(require_run(same).out));
  // Titles name the file.
  fs::create_directory(folder / "one");
  fs::rename(folder / "one.h5", folder / "one/maps.h5");
  for (const std::string& file : {out, folder / "one/maps.h5"}) {
    require_run({"render", file, "--picture", "mosaic", "-o", file + ".png"});
  }
  CHECK(read_file(out + ".png") == read_file(folder / "one/maps.h5.png"));
}

TEST_CASE("a master tells what became of its parts") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 2);
  const std::string out = folder / "maps.h5";
  REQUIRE(merge(parts, out).exit_code == 0);
  damage(parts[0], static_cast<int64_t>(fs::file_size(parts[0])) - 100);
  auto verify = run_attnscope({"verify", out});
  CHECK(verify.exit_code == 3);
  CHECK(contains(verify.out, "part-0-of-2.h5"));
  fs::remove(parts[0]);
  verify = run_attnscope({"verify", out});
  CHECK(verify.exit_code == 3);
  CHECK(contains(verify.out, "missing: 1 of 2 parts"));
  // Another part under the same name is not what was linked.
  fs::copy_file(parts[1], parts[0]);
  CHECK(run_attnscope({"verify", out}).exit_code == 3);
  const auto query = run_attnscope({"query", out, "--index", "100"});
  CHECK(query.exit_code == 1);
  CHECK(contains(query.err, "is another file than the one that"));
}

TEST_CASE("a master whose part is gone reads as NaN, and info names the part") {
  for (const Arguments& product :
       {Arguments{"--dtype", "f16"}, Arguments{"--dtype", "f32"}, Arguments{"--product", "lse"}}) {
    INFO(product.back());
    const TemporaryFolder folder;
    const auto parts = run_parts(export_of(product), folder / "part-{shard}.h5", 3);
    const std::string out = folder / "maps.h5";
    REQUIRE(merge(parts, out).exit_code == 0);
    const bool lse = product.back() == "lse";
    const auto values = [&](const std::string& call, const std::string& dataset) {
      return read_dataset(out, "/calls/" + call + "/" + dataset).values;
    };
    const auto is_none = [](double value) { return std::isnan(value); };
    const auto nones = [&] {
      int64_t count = 0;
      for (const std::string& call : group_members(out, "/calls")) {
        for (const std::string dataset : {"lse", "weights"}) {
          if (lse && dataset == "weights") continue;
          const auto all = values(call, dataset);
          count += std::count_if(all.begin(), all.end(), is_none);
        }
      }
      return count;
    };
    CHECK(nones() == 0);
    fs::remove(parts[1]);
    // Two of the four heads stand in it: 150 rows each, with their LSEs.
    CHECK(nones() == (lse ? 300 : 300 * 1025));
    const auto info = run_attnscope({"info", out});
    CHECK(info.exit_code == 3);
    CHECK(contains(info.out, "incomplete: 1 of 3 parts is missing: part-1-of-3.h5\n"));
    const auto json = run_attnscope({"info", out, "--json"});
    CHECK(json.exit_code == 3);
    CHECK(contains(json.out, "\"complete\": false"));
    CHECK(contains(json.out, "\"missing\": "));
    std::ofstream(parts[1]) << "another";
    CHECK(contains(run_attnscope({"info", out}).out,
                   "part-1-of-3.h5 (another one has its name: 7 bytes, expected "));
  }
}

TEST_CASE("shards that are gone are named by info") {
  const TemporaryFolder folder;
  Arguments words = export_of({"--compress", "gzip"});
  words.insert(words.end(), {"-o", folder / "maps.h5"});
  require_run(words);
  const auto shard = *fs::directory_iterator(folder / "maps.h5.d");
  const std::string name = "maps.h5.d/" + shard.path().filename().string();
  fs::remove(shard);
  const auto info = run_attnscope({"info", folder / "maps.h5"});
  CHECK(info.exit_code == 3);
  CHECK(contains(info.out, "incomplete: 1 of 2 shards is missing: " + name + "\n"));
}

TEST_CASE("no output takes the place of a part that a master links") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 2);
  const std::string out = folder / "maps.h5";
  REQUIRE(merge(parts, out).exit_code == 0);
  const std::string before = read_file(parts[1]);
  for (const Arguments& words :
       {Arguments{"query", out, "--index", "100"}, Arguments{"diff", out, out, "--index", "100"}}) {
    Arguments arguments = words;
    arguments.insert(arguments.end(), {"-o", parts[1], "--force", "--quiet"});
    const auto refused = run_attnscope(arguments);
    INFO(words.front() << ": " << refused.err);
    CHECK(refused.exit_code != 0);
    CHECK(read_file(parts[1]) == before);
  }
}

TEST_CASE("a merge that is refused has not said that it links") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 2);
  fs::create_directory(folder / "d");
  for (const Arguments& more : {Arguments{}, Arguments{"--dry-run"}}) {
    const auto refused = merge(parts, folder / "d/maps.h5", more);
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "links parts that stand beside it"));
    CHECK_FALSE(contains(refused.err + refused.out, "linked"));
  }
  std::ofstream(folder / "maps.h5") << "older";
  const auto refused = merge(parts, folder / "maps.h5");
  CHECK(refused.exit_code == 1);
  CHECK_FALSE(contains(refused.err, "linked"));
}

TEST_CASE("a master that links masters, or itself, is told of") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 2);
  // A name as long as the part's, which is put in its place.
  const std::string out = folder / "part-9-of-9.h5";
  REQUIRE(merge(parts, out).exit_code == 0);
  for (const char* name : {"part-9-of-9.h5", "part-8-of-8.h5"}) {
    std::string bytes = read_file(out);
    const std::string linked = "part-1-of-2.h5";
    for (size_t at = bytes.find(linked); at != std::string::npos; at = bytes.find(linked, at)) {
      bytes.replace(at, linked.size(), name);
    }
    std::ofstream(folder / "part-8-of-8.h5", std::ios::binary) << bytes;
    const auto verify = run_attnscope({"verify", folder / "part-8-of-8.h5"});
    CHECK(verify.exit_code == 3);
    CHECK(contains(verify.out, std::string(name) + ": links other files"));
    const auto query = run_attnscope({"query", folder / "part-8-of-8.h5", "--index", "100"});
    CHECK(query.exit_code == 1);
  }
}

TEST_CASE("parts that are missing, double, foreign or incomplete are named") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 3);
  const auto refused = [&](const std::vector<std::string>& given) {
    const auto result = merge(given, folder / "maps.h5", {"--copy"});
    CHECK(result.exit_code == 1);
    CHECK_FALSE(fs::exists(folder / "maps.h5"));
    CHECK_FALSE(fs::exists(folder / "maps.h5.part"));
    return result.err;
  };
  CHECK(contains(refused({parts[0], parts[2]}), "part 1/3 is missing"));
  CHECK(contains(refused({parts[2]}), "parts 0-1 of 3 are missing"));
  fs::copy_file(parts[1], folder / "copy.h5");
  CHECK(contains(refused({parts[0], parts[1], parts[2], folder / "copy.h5"}),
                 "part 1/3 is there 2 times"));
  const auto others = run_parts(export_of({"--dtype", "f32"}), folder / "other-{shard}.h5", 3);
  CHECK(contains(refused({parts[0], others[1], parts[2]}),
                 "other-1-of-3.h5 is part 1/3 of another "
                 "plan"));
  const auto halves = run_parts(export_of({}), folder / "half-{shard}.h5", 2);
  CHECK(contains(refused({parts[0], parts[1], parts[2], halves[0]}),
                 "half-0-of-2.h5 is part 0/2, and the others are of 3"));
  // A whole export is no part, and neither is anything else.
  whole_of(folder, {});
  CHECK(contains(refused({parts[0], folder / "one.h5"}), "is no part of an export"));
}

TEST_CASE("parts that are cut short or damaged are named, and nothing is left") {
  const TemporaryFolder folder;
  const auto parts = run_parts(export_of({}), folder / "part-{shard}.h5", 2);
  const std::string sound = read_file(parts[1]);
  const auto refused = [&] {
    const auto result = merge(parts, folder / "maps.h5", {"--copy"});
    CHECK(result.exit_code == 1);
    CHECK_FALSE(fs::exists(folder / "maps.h5"));
    return result.err;
  };
  fs::resize_file(parts[1], fs::file_size(parts[1]) / 2);
  CHECK(contains(refused(), "part-1-of-2.h5"));
  std::ofstream(parts[1], std::ios::binary) << sound;
  // An entry, which is found when it is copied; the file's end is entries or LSEs.
  damage(parts[1], static_cast<int64_t>(sound.size()) / 2);
  const std::string text = refused();
  CHECK(contains(text, "part-1-of-2.h5"));
  CHECK(contains(text, "checksum differs"));
  const std::string left = folder / "maps.h5.part";
  CHECK(contains(text, " tiles are kept in " + left + ", and in maps.h5.journal which they are: "));
  CHECK(contains(text, "--resume goes on once this is mended, --force gives them up"));
  CHECK((fs::exists(left) && fs::exists(folder / "maps.h5.journal")));
  // With the part as it was, the merge goes on with what it had.
  std::ofstream(parts[1], std::ios::binary) << sound;
  const auto merged = merge(parts, folder / "maps.h5", {"--copy", "--resume"});
  INFO(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(read_file(folder / "maps.h5") == whole_of(folder, {}));
}

TEST_CASE("a part that is asked for again is there, or gone on with") {
  const TemporaryFolder folder;
  Arguments first = export_of({});
  first.insert(first.end(), {"-o", folder / "part-{shard}.h5", "--shard", "1/3", "--resume"});
  require_run(first);
  const std::string part = folder / "part-1-of-3.h5", bytes = read_file(part);
  first.erase(first.begin() + 2);  // --quiet
  CHECK(contains(require_run(first).err, "is complete already"));
  CHECK(read_file(part) == bytes);
  // Another share, or the whole, is another output.
  first[first.size() - 2] = "2/3";
  fs::rename(part, folder / "part-2-of-3.h5");
  const auto other = run_attnscope(first);
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "shard is \"1/3\" there, \"2/3\" here"));
  CHECK(read_file(folder / "part-2-of-3.h5") == bytes);
}

TEST_CASE("parts of several backends are joined only when asked") {
  const TemporaryFolder folder;
  const std::string name = folder / "part-{shard}.h5";
  std::vector<std::string> parts;
  for (const int i : {0, 1}) {
    Arguments arguments = export_of({"--backend", i == 0 ? "reference" : "cpu"});
    arguments.insert(arguments.end(), {"-o", name, "--shard", std::to_string(i) + "/2"});
    require_run(arguments);
    parts.push_back(folder / ("part-" + std::to_string(i) + "-of-2.h5"));
  }
  const auto refused = merge(parts, folder / "maps.h5", {"--copy"});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "several backends, whose bits differ"));
  CHECK(contains(refused.err, "part-0-of-2.h5 by reference"));
  REQUIRE(merge(parts, folder / "maps.h5", {"--copy", "--mixed-backends"}).exit_code == 0);
  CHECK(contains(require_run({"info", folder / "maps.h5", "--json"}).out, " + reference\""));
  require_run({"verify", folder / "maps.h5"});
}
