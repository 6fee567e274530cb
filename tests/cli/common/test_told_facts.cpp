// Facts of a call that nobody recorded are stated nowhere; those that --as tells, as if recorded.
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::vector<std::string> kTold{"--as", "layer=17",    "--as", "step=25",
                                     "--as", "branch=cond", "--as", "model=m"};

/// A call of which no file says where in the model it was made.
std::string write_bare(const TemporaryFolder& folder) {
  std::string path = folder / "u.safetensors";
  ReferenceCall call({1, 2, 2, 12, 12, 8}, 3);
  call.fact("grid", "1x3x4").write(path);
  return path;
}

std::vector<std::string> told(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kTold.begin(), kTold.end());
  return arguments;
}

void check_unknown(const Json& name) {
  CHECK(name.at("step").is_null());
  CHECK(name.at("layer").is_null());
  CHECK(name.at("branch").is_null());
}

void check_told(const Json& name) {
  CHECK(name.at("step") == 25);
  CHECK(name.at("layer") == 17);
  CHECK(name.at("branch") == "cond");
}

/// The first fields of the second line of a .csv.
std::string first_fields(const std::string& path, size_t count) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) end = line.find(',', end) + 1;
  return line.substr(0, end);
}

double number(const std::string& file, const std::string& name) {
  return read_dataset(file, name).values.front();
}

}  // namespace

TEST_CASE("what nobody recorded is null in the JSON of every command, and told facts are not") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  const std::vector<std::vector<std::string>> commands{
      {"query", path, "--query", "0,1,2"}, {"stats", path}, {"mask", path, "--mask", "spatial"}};
  for (const auto& command : commands) {
    INFO(command.front());
    check_unknown(heads_of(command).front());
    check_told(heads_of(told(command)).front());
  }
  const auto run = [](std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return Json::parse(run_well(arguments).out);
  };
  const Json info = run({"info", path});
  CHECK(info.at("model").is_null());
  const Json& call = info.at("calls").front();
  CHECK(call.at("step").is_null());
  CHECK(call.at("layer").is_null());
  CHECK(call.at("branches").is_null());
  CHECK(call.at("model").is_null());
  const Json told_info = run(told({"info", path}));
  CHECK(told_info.at("model") == "m");
  CHECK(told_info.at("calls").front().at("branches") == Json({"cond"}));
  CHECK(told_info.at("calls").front().at("facts").at("layer").at("origin") == "option --as");
  check_unknown(run({"verify", path}).at("calls").front());
  check_told(run(told({"verify", path})).at("calls").front());
  const Json pair = run({"diff", path, "--heads", "0", "--b-head", "1"}).at("pairs").front();
  check_unknown(pair.at("a"));
  check_unknown(pair.at("b"));
  const std::vector<std::string> rollout{"rollout", path, "--query", "0,1,2"};
  CHECK(run(rollout).at("step").is_null());
  CHECK(run(rollout).at("branch").is_null());
  CHECK(run(rollout).at("layers").front().is_null());
  CHECK(run(told(rollout)).at("layers").front() == 17);
  CHECK(run(told(rollout)).at("step") == 25);
}

TEST_CASE("lines and tables leave out what nobody recorded") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  const std::vector<std::string> query{"query", path, "--query", "0,1,2", "--heads", "1"};
  CHECK(contains(run_well(query).out, "self batch 0 head 1\n"));
  CHECK_FALSE(contains(run_well(query).out, "step"));
  CHECK(contains(run_well(told(query)).out, "step 25 layer 17 cond self batch 0 head 1\n"));
  const std::string stats = run_well({"stats", path}).out;
  CHECK(contains(stats, "\n    -     - -      self   0    0 "));
  const std::string info = run_well({"info", path}).out;
  for (const char* name : {"steps     ", "layers    ", "branches  "}) {
    CHECK(contains(info, std::string("  ") + name + " not recorded\n"));
  }
}

TEST_CASE("tables as .csv have nothing where nobody recorded something") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  const std::string stats = folder / "s.csv", query = folder / "q.csv", diff = folder / "d.csv";
  run_well({"stats", path, "-o", stats});
  CHECK(first_fields(stats, 6) == ",,,self,0,0,");
  run_well(told({"stats", path, "-o", stats, "--force"}));
  CHECK(first_fields(stats, 6) == "25,17,cond,self,0,0,");
  run_well({"query", path, "--query", "0,1,2", "-o", query});
  CHECK(first_fields(query, 6) == ",,,self,0,0,");
  run_well({"diff", path, "--heads", "0", "--b-head", "1", "-o", diff});
  CHECK(first_fields(diff, 6) == ",,,self,0,0,");
  // Tables are read back: what is empty in both is the same head.
  const std::string other = folder / "t.csv";
  run_well({"stats", path, "-o", other});
  const Json found = Json::parse(run_well({"diff", other, other, "--json"}).out);
  check_unknown(found.at("pairs").front().at("a"));
  // A step or layer that only one side tells counts as 0 on the other.
  CHECK(run_attnscope({"diff", other, stats}).exit_code != 0);
}

TEST_CASE("HDF5 files have -1 and the names of what nobody recorded, and open again so") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  const std::string maps = folder / "m.h5", stats = folder / "s.h5", query = folder / "q.h5",
                    diff = folder / "d.h5";
  const std::string group = "/calls/step0000_layer000_all_self";
  run_well({"export", path, "-o", maps, "--dtype", "f32"});
  run_well({"stats", path, "-o", stats});
  for (const std::string& file : {maps, stats}) {
    CHECK(read_text_attribute(file, "not_recorded", group) == "step layer branch model");
    CHECK(read_text_attribute(file, "branch", group).empty());
  }
  run_well({"query", path, "--query", "0,1,2", "-o", query});
  CHECK(read_text_attribute(query, "not_recorded") == "step layer branch model");
  CHECK(number(query, "step") == -1);
  CHECK(number(query, "layer") == -1);
  run_well({"diff", path, "--heads", "0", "--b-head", "1", "-o", diff});
  CHECK(read_text_attribute(diff, "not_recorded") ==
        "a_step a_layer a_branch b_step b_layer b_branch");
  CHECK(number(diff, "a_layer") == -1);
  CHECK(number(diff, "a_head") == 0);

  // In the capture's place: the same row, by the same selection, of a call that is not known.
  const std::vector<std::string> row{"--index", "5", "--steps", "0", "--layers", "0"};
  std::vector<std::string> stored{"query", maps}, computed{"query", path};
  stored.insert(stored.end(), row.begin(), row.end());
  computed.insert(computed.end(), row.begin(), row.end());
  const Json opened = heads_of(stored);
  check_unknown(opened.front());
  CHECK(opened.front()["text_mass"] == heads_of(computed).front()["text_mass"]);
  check_unknown(Json::parse(run_well({"diff", stats, "--json"}).out).at("heads").front());
  check_unknown(Json::parse(run_well({"diff", maps, path, "--json"}).out).at("pairs")[0].at("a"));

  // Facts that are told are stated, and then nothing is said to be missing.
  run_well(told({"export", path, "-o", folder / "t.h5", "--dtype", "f32"}));
  const std::string known = "/calls/step0025_layer017_cond_self";
  CHECK(read_text_attribute(folder / "t.h5", "model", known) == "m");
  CHECK_THROWS(read_text_attribute(folder / "t.h5", "not_recorded", known));
  check_told(heads_of({"query", folder / "t.h5", "--index", "5"}).front());
}

TEST_CASE("parts of what nobody recorded become the file of one run") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  for (const std::string kind : {".h5", ".json", ".csv"}) {
    INFO(kind);
    const std::string whole = folder / ("whole" + kind), merged = folder / ("merged" + kind);
    const std::vector<std::string> stats{"stats", path, "--quiet", "-o"};
    const auto run = [&](std::vector<std::string> more) {
      std::vector<std::string> arguments = stats;
      arguments.insert(arguments.end(), more.begin(), more.end());
      run_well(arguments);
    };
    run({whole});
    const std::string part = kind == ".csv" ? ".json" : kind;
    run({folder / ("p{shard}" + part), "--shard", "0/2", "--force"});
    run({folder / ("p{shard}" + part), "--shard", "1/2", "--force"});
    run_well({"merge", folder / ("p0-of-2" + part), folder / ("p1-of-2" + part), "-o", merged,
              "--quiet"});
    CHECK(read_file(merged) == read_file(whole));
  }
  const std::string whole = folder / "q.h5", merged = folder / "m.h5";
  const std::vector<std::string> query{"query", path, "--query", "0,1,2", "--quiet", "-o"};
  run_well({"query", path, "--query", "0,1,2", "--quiet", "-o", whole});
  for (const char* shard : {"0/2", "1/2"}) {
    run_well({"query", path, "--query", "0,1,2", "--quiet", "-o", folder / "v{shard}.h5", "--shard",
              shard});
  }
  run_well({"merge", folder / "v0-of-2.h5", folder / "v1-of-2.h5", "-o", merged, "--quiet"});
  CHECK(read_file(merged) == read_file(whole));
}

TEST_CASE("a copy of a capture states what was told, and nothing that was not") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  run_well({"convert", path, "-o", folder / "plain"});
  const Json plain = Json::parse(read_file(folder / "plain/capture.json"));
  CHECK_FALSE(plain.at("calls").front().contains("step"));
  CHECK_FALSE(plain.at("calls").front().contains("layer"));
  check_unknown(heads_of({"stats", folder / "plain"}).front());
  run_well(told({"convert", path, "-o", folder / "known"}));
  check_told(heads_of({"stats", folder / "known"}).front());
  CHECK(Json::parse(read_file(folder / "known/capture.json")).at("model") == "m");
}

TEST_CASE("a told fact (--as) overrides what was recorded, and says so") {
  const TemporaryFolder folder;
  const std::string path = folder / "r.safetensors";
  ReferenceCall call({1, 1, 1, 12, 12, 8}, 3);
  call.fact("layer", "3").write(path);
  const ProgramResult result = run_well({"info", path, "--as", "layer=17", "--as", "step=2"});
  CHECK(contains(result.err, "--as layer=17 overrides the recorded 3"));
  CHECK_FALSE(contains(result.err, "--as step"));
  CHECK(contains(result.out, "  layers     17\n"));
}

TEST_CASE("bad --as ends in one line that names what is wrong") {
  const TemporaryFolder folder;
  const std::string path = write_bare(folder);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    std::vector<std::string> arguments{"info", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_attnscope(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, words));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  refused({"--as", "layr=17"}, "--as layr=17: no such fact, did you mean layer? (branch, model,");
  refused({"--as", "layer"}, "--as layer: expected NAME=VALUE");
  refused({"--as", "layer="}, "--as layer=: a value is missing");
  refused({"--as", "layer=-1"}, "--as layer=-1: expected a whole number from 0 to 2^63-1");
  refused({"--as", "layer=x"}, "--as layer=x: expected a whole number from 0 to 2^63-1");
  refused({"--as", "timestep=soon"}, "--as timestep=soon: expected a number");
  refused({"--as", "extra={\"a\":1,\"a\":2}"}, ": expected JSON");
  refused({"--as", "model=\xff"}, "expected a string");
  refused({"--as", "grid=1x3x4"}, "--as grid=1x3x4: is told by --grid");
  refused({"--as", "layer=1", "--as", "layer=2"}, "--as layer=2: is told twice");
  refused({"--as", "branch=a", "--as", "branches=[\"b\"]"}, "is told twice");
  refused({"--as", "branch=a b"}, "--as branch: \"a b\" is no name");
  refused({"--as", "branch=a,b"}, "--as branch: expected one name a batch item (got 2 for 1");
  refused({"--as", "kind=other"}, "--as kind: expected self, cross or joint (got other)");

  run_well({"export", path, "-o", folder / "m.h5"});
  const ProgramResult stored =
      run_attnscope({"query", folder / "m.h5", "--index", "0", "--as", "layer=1"});
  CHECK(stored.exit_code == 2);
  CHECK(contains(stored.err, "--as: "));
}

TEST_CASE("a told fact (--as) of several calls that would become one is refused with both files") {
  const TemporaryFolder folder;
  const std::string path = folder / "dump";
  std::filesystem::create_directory(path);
  for (const char* layer : {"0", "1"}) {
    ReferenceCall call({1, 1, 1, 12, 12, 8}, 3);
    call.fact("layer", layer).write(path + "/" + layer + ".safetensors");
  }
  const ProgramResult result = run_attnscope({"info", path, "--as", "layer=17"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "--as layer is told of every call"));
  CHECK(contains(result.err, "0.safetensors"));
  CHECK(contains(result.err, "1.safetensors"));
  CHECK(contains(run_attnscope({"info", path, "--as", "layer=17", "--as", "branch=a"}).err,
                 "would both be layer 17, branch a, kind self"));
  // A fact that tells no calls apart is told of both.
  const Json info = Json::parse(run_well({"info", path, "--as", "model=m", "--json"}).out);
  for (const Json& call : info.at("calls")) CHECK(call.at("model") == "m");
}

TEST_CASE("bare tensors' full command has what --as told") {
  const TemporaryFolder folder;
  ReferenceCall call({1, 2, 2, 12, 12, 8}, 3);
  call.write_packed(folder.path());
  const ProgramResult result =
      run_well({"info", "--q", folder / "q.npy", "--k", folder / "k.npy", "--layout", "shd", "--as",
                "layer=17", "--as", "model=my model"});
  CHECK(contains(result.out, " --as layer=17 --as 'model=my model'\n"));
}
