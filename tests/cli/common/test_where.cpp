// Heads that are chosen by their names and numbers.
#include <nlohmann/json.hpp>
#include <set>

#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// (layer, head)
using Places = std::set<std::pair<int64_t, int64_t>>;

Json run_json(const std::vector<std::string>& words, std::string* said = nullptr) {
  const auto result = run_attnscope(words);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  if (said != nullptr) *said = result.err;
  return Json::parse(result.out);
}

Places places_of(const Json& rows) {
  Places places;
  for (const Json& row : rows) {
    places.emplace(row.at("layer").get<int64_t>(), row.at("head").get<int64_t>());
  }
  return places;
}

/// The heads that a condition should leave, by the numbers of a table of all heads.
template <typename Holds>
Places expected(const Json& table, const Holds& holds) {
  Places places;
  for (const Json& row : table.at("heads")) {
    if (holds(row)) places.emplace(row.at("layer").get<int64_t>(), row.at("head").get<int64_t>());
  }
  return places;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A small capture whose heads have a known character, in a folder of its own.
std::string write_capture(const TemporaryFolder& folder) {
  const auto made =
      run_attnscope({"synth", "-o", folder / "d", "--layers", "3", "--heads", "6", "--grid",
                     "3x6x6", "--text", "12@start", "--head-dim", "32", "--dtype", "f32"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  return folder / "d";
}

}  // namespace

TEST_CASE("conditions take the heads whose numbers hold, in every command") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder), cache = folder / "cache";
  const Json all = run_json({"stats", capture, "--json"});
  REQUIRE(all.at("heads").size() == 18);
  const auto chosen = [&](const std::string& where) {
    const Json table = run_json({"stats", capture, "--json", "--cache", cache, "--where", where});
    for (const Json& row : table.at("heads")) {
      // The numbers are those of a run over all heads.
      CHECK(std::find(all.at("heads").begin(), all.at("heads").end(), row) !=
            all.at("heads").end());
    }
    return places_of(table.at("heads"));
  };
  const Places temporal =
      expected(all, [](const Json& row) { return row.at("class") == "temporal"; });
  REQUIRE(temporal.size() >= 3);
  REQUIRE(temporal.size() < 18);
  CHECK(chosen("class=temporal") == temporal);
  CHECK(chosen("temporal") == temporal);
  CHECK(chosen("class=temporal,sink layer>=1 entropy<3") == expected(all, [](const Json& row) {
          return (row.at("class") == "temporal" || row.at("class") == "sink") &&
                 row.at("layer") >= 1 && row.at("entropy") < 3;
        }));
  CHECK(chosen("not (text_mass>0.2 or head=0)") == expected(all, [](const Json& row) {
          return !(row.at("text_mass") > 0.2 || row.at("head") == 0);
        }));
  const std::vector<std::string> where{"--where", "class=temporal layer<2", "--cache", cache};
  Places wanted = temporal;
  std::erase_if(wanted, [](const auto& place) { return place.first >= 2; });
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), where.begin(), where.end());
    return run_json(words);
  };
  CHECK(places_of(run({"query", capture, "--index", "30", "--json"}).at("heads")) == wanted);
  CHECK(places_of(run({"mask", capture, "--mask", "window:64", "--json"}).at("heads")) == wanted);
  CHECK(run({"export", capture, "-o", folder / "m.h5", "--json"}).at("heads") == wanted.size());
  const Json stored = run_json({"query", folder / "m.h5", "--index", "30", "--json"});
  CHECK(places_of(stored.at("heads")) == wanted);
  CHECK(run({"render", capture, "--picture", "mosaic", "-o", folder / "m.png", "--json"})
            .at("heads") == wanted.size());
  CHECK(run({"convert", capture, "-o", folder / "less", "--json"}).at("heads") == wanted.size());
  CHECK(run({"diff", capture, "--b-head", "0", "--json"}).at("pairs").size() == wanted.size());
  CHECK(run({"info", capture, "--json"}).at("calls").size() == 2);
}

TEST_CASE("numbers of --where are kept, and a damaged file of them is none") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder);
  const fs::path cache = folder / "cache";
  const auto chosen = [&](const std::string& where, std::string& said) {
    return places_of(
        run_json({"stats", capture, "--json", "--cache", cache, "--where", where}, &said)
            .at("heads"));
  };
  std::string said;
  const Places sinks = chosen("sink layer=0-1", said);
  REQUIRE(!sinks.empty());
  CHECK(has(said, "numbers of 12 heads"));
  CHECK(files_of(cache).size() == 2);
  CHECK(chosen("sink layer=0-1", said) == sinks);
  CHECK(has(said, "numbers of 12 heads are kept"));
  // Names alone decide about layer 0, and layer 2 is new.
  chosen("sink layer>=1 or layer=0", said);
  CHECK(has(said, "numbers of 6 heads (6 are kept)"));
  REQUIRE(files_of(cache).size() == 3);
  const std::string whole = read_file_text(files_of(cache).front());
  CHECK(Json::parse(whole).at("format") == "attnscope-stats/1");
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string("[]"), std::string("{\"heads\":[1,{}]}")}) {
    for (const fs::path& file : files_of(cache)) write_bytes(file, damaged);
    CHECK(chosen("sink layer=0-1", said) == sinks);
    CHECK(has(said, "numbers of 12 heads:"));
  }
  // One digit that is another one, and a file under another's name.
  const auto rewritten = [&](const std::function<std::string(size_t)>& bytes) {
    const auto files = files_of(cache);
    std::vector<std::string> now;
    for (size_t i = 0; i < files.size(); ++i) now.push_back(bytes(i));
    for (size_t i = 0; i < files.size(); ++i) write_bytes(files[i], now[i]);
    CHECK(chosen("sink layer=0-1", said) == sinks);
    return has(said, "numbers of 12 heads are kept");
  };
  const auto text = [&](size_t file) { return read_file_text(files_of(cache)[file]); };
  CHECK(rewritten(text));
  CHECK_FALSE(rewritten([&](size_t file) {
    std::string bytes = text(file);
    const size_t digit = bytes.find("\"entropy\": ");
    if (digit != std::string::npos) bytes[digit + 11] = bytes[digit + 11] == '1' ? '2' : '1';
    return bytes;
  }));
  CHECK(rewritten(text));
  CHECK_FALSE(rewritten([&](size_t file) { return text((file + 1) % 3); }));
  // Other numbers are others' files.
  const auto sampled = run_json(
      {"stats", capture, "--json", "--sample", "8", "--cache", cache, "--where", "sink"}, &said);
  CHECK(has(said, "numbers of 18 heads:"));
  CHECK(sampled.at("heads").front().at("rows") == 8);
  run_json({"stats", capture, "--json", "--cache", "none", "--where", "sink"}, &said);
  CHECK(!fs::exists(capture + "/.attnscope"));
  run_json({"stats", capture, "--json", "--where", "sink"}, &said);
  CHECK(files_of(capture + "/.attnscope").size() == 3);
}

TEST_CASE("a capture's own fault is told before the numbers of --where are found") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"stats", capture},
        {"query", capture, "--query", "1,2,3"},
        {"render", capture, "--picture", "mosaic", "-o", folder / "m.png"},
        {"diff", capture, "--heads", "1", "--b-head", "0"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--scale", "1", "--layers", "0", "--where", "entropy>0", "--cache",
                               "none", "--dry-run"});
    const ProgramResult result = run_attnscope(words);
    INFO(command.front() << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    const size_t fault = result.err.find("warning: "), search = result.err.find("--where: ");
    REQUIRE(fault != std::string::npos);
    REQUIRE(search != std::string::npos);
    CHECK(fault < search);
    CHECK(result.err.find("warning: ", search) == std::string::npos);
  }
}

TEST_CASE("heads that their name keeps from being taken are not measured for --where") {
  const TemporaryFolder folder;
  const std::string call = folder / "call.safetensors", cache = folder / "cache";
  CallFile().pair({1, 2, 24, 8}, {1, 2, 24, 8}, "F32").write(call);
  const auto said = [&](const std::string& where) {
    return run_attnscope({"stats", call, "--where", where, "--cache", cache}).err;
  };
  // Nobody recorded the layer.
  CHECK(has(said("layer=0 and entropy>0"), "holds for no head"));
  CHECK_FALSE(std::filesystem::exists(cache));
  CHECK(has(said("layer=0 or entropy>0"), "--where: numbers of 2 heads"));
}

TEST_CASE("parts and resumed runs choose alike by --where") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder), where = "temporal or entropy>4";
  const auto stats = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"stats", capture, "--cache", "none", "--where", where});
    const auto result = run_attnscope(more);
    INFO(result.err);
    CHECK(result.exit_code == 0);
  };
  stats({"-o", folder / "one.json"});
  stats({"-o", folder / "p-{shard}.json", "--shard", "0/2"});
  stats({"-o", folder / "p-{shard}.json", "--shard", "1/2"});
  std::vector<std::string> merge{"merge", "-o", folder / "whole.json"};
  for (const fs::path& file : files_of(folder.path())) {
    if (file.filename().string().starts_with("p-")) merge.push_back(file);
  }
  REQUIRE(merge.size() == 5);
  REQUIRE(run_attnscope(merge).exit_code == 0);
  CHECK(read_file_text(folder / "whole.json") == read_file_text(folder / "one.json"));
  stats({"-o", folder / "one.json", "--resume"});
  const auto other = run_attnscope({"stats", capture, "--cache", "none", "--where", "sink", "-o",
                                    folder / "one.json", "--resume"});
  CHECK(other.exit_code == 1);
  CHECK(has(other.err, "is of another run"));
}

TEST_CASE("a dry run tells what finding the numbers of --where would take") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder), cache = folder / "cache";
  const std::vector<std::string> words{"export", capture,     "-o",     folder / "m.h5", "--where",
                                       "sink",   "--dry-run", "--json", "--cache",       cache};
  const Json plan = run_json(words);
  CHECK(plan.at("heads") == 18);
  CHECK(plan.at("where").at("heads") == 18);
  CHECK(plan.at("where").at("flops") > 0);
  CHECK(plan.at("where").at("seconds") >= 0);
  CHECK(!fs::exists(cache));
  // Of stats, the rest are the heads whose numbers --where need not find.
  const auto rest = [&](const std::string& where) {
    return run_json({"stats", capture, "--where", where, "--dry-run", "--json", "--cache", "none"});
  };
  CHECK(rest("sink").at("heads") == 18);
  CHECK(rest("sink").at("flops") == 0);
  CHECK(rest("sink").at("expected_seconds") == 0);
  const Json some = rest("layer=0 or sink");
  CHECK(some.at("heads") == 18);
  CHECK(some.at("where").at("heads") == 12);
  CHECK(some.at("flops") ==
        run_json({"stats", capture, "--layers", "0", "--dry-run", "--json"}).at("flops"));
  run_json({"stats", capture, "--json", "--cache", cache, "--where", "sink"});
  const Json known = run_json(words);
  CHECK(!known.contains("where"));
  CHECK(known.at("heads") < 18);
}

TEST_CASE("tables have the numbers of --where, exports have names") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder);
  for (const char* name : {"all.h5", "all.json", "all.csv"}) {
    REQUIRE(run_attnscope({"stats", capture, "-o", folder / name}).exit_code == 0);
  }
  const Json all = run_json({"stats", capture, "--json"});
  const Places sinks = expected(all, [](const Json& row) { return row.at("class") == "sink"; });
  const Json drawn = run_json({"render", folder / "all.h5", "--picture", "heatmap", "--metric",
                               "entropy", "--where", "sink", "-o", folder / "h.png", "--json"});
  CHECK(drawn.at("values").size() == sinks.size());
  for (const char* name : {"all.h5", "all.json", "all.csv"}) {
    INFO(name);
    const Json table = run_json({"diff", folder / name, "--where", "sink", "--json"});
    CHECK(table.at("heads").size() == sinks.size());
  }
  REQUIRE(run_attnscope({"export", capture, "-o", folder / "m.h5", "--layers", "0-1"}).exit_code ==
          0);
  const Json named =
      run_json({"query", folder / "m.h5", "--index", "30", "--json", "--where", "layer=1 head<2"});
  CHECK(places_of(named.at("heads")) == Places{{1, 0}, {1, 1}});
  const auto counts = run_attnscope({"diff", folder / "all.h5", "--where", "rows>1"});
  CHECK(counts.exit_code == 2);
  CHECK(has(counts.err, "rows is none of the numbers"));
  const auto numbers =
      run_attnscope({"query", folder / "m.h5", "--index", "30", "--where", "entropy<3"});
  CHECK(numbers.exit_code == 2);
  CHECK(has(numbers.err, "here heads have names alone"));
}

TEST_CASE("a condition that cannot be meant is told before anything is read") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder);
  const std::vector<std::pair<std::string, std::string>> faults{
      {"entropyy<3", "did you mean entropy?"},        {"entropy", "expected NAME=VALUE"},
      {"(entropy<3", "the bracket is not closed"},    {"class<3", "is a name, which is = or !="},
      {std::string(50000, '('), "nested too deeply"}, {"", "expected a value"}};
  for (const auto& [where, complaint] : faults) {
    const auto result = run_attnscope({"stats", "no such capture", "--where", where});
    INFO(where << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(has(result.err, complaint));
  }
  const auto none = run_attnscope({"stats", capture, "--cache", "none", "--where", "entropy<0"});
  CHECK(none.exit_code == 2);
  CHECK(has(none.err, "--where entropy<0: holds for no head"));
}

TEST_CASE("stats --top keeps the first of the sorted heads") {
  const TemporaryFolder folder;
  const std::string capture = write_capture(folder);
  std::vector<double> entropies;
  const Json all = run_json({"stats", capture, "--json"});
  for (const Json& row : all.at("heads")) entropies.push_back(row.at("entropy"));
  std::sort(entropies.begin(), entropies.end());
  const auto top = [&](const std::string& sort) {
    std::vector<double> found;
    const Json table = run_json({"stats", capture, "--json", "--top", "4", "--sort", sort});
    for (const Json& row : table.at("heads")) found.push_back(row.at("entropy"));
    return found;
  };
  CHECK(top("entropy:asc") == std::vector<double>(entropies.begin(), entropies.begin() + 4));
  CHECK(top("entropy") == std::vector<double>(entropies.rbegin(), entropies.rbegin() + 4));
  const std::string picked = folder / "picked.json";
  REQUIRE(run_attnscope({"stats", capture, "--top", "4", "--sort", "entropy:asc", "-o", picked})
              .exit_code == 0);
  const Json read = run_json({"stats", capture, "--from", picked, "--json"});
  CHECK(read.at("heads").size() == 4);
  const auto refused = [&](std::vector<std::string> more, const std::string& complaint) {
    more.insert(more.begin(), {"stats", capture, "--top", "4"});
    const auto result = run_attnscope(more);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(has(result.err, complaint));
  };
  refused({}, "--top: of which number?");
  refused({"--sort", "entropy:up"}, "there is no such number");
  refused({"--sort", "entropy", "--json", "-o", folder / "x.h5"}, "--top: an .h5");
  refused({"--sort", "entropy", "-o", folder / "x-{shard}.json", "--shard", "0/2"}, "--shard");
}
