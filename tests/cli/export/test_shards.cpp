#include <hdf5.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <numeric>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

const std::string kGroup = "/calls/step0010_layer002_cond_joint/";

std::vector<std::string> export_sample(const std::string& out,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"export", sample("moving-shapes"), "-o", out, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The shard of a group.
std::string shard_of(const std::string& out, const std::string& group) {
  for (const auto& item : std::filesystem::directory_iterator(out + ".d")) {
    if (item.path().filename().string().rfind(group + ".", 0) == 0) return item.path().string();
  }
  throw std::runtime_error(out + " has no shard of " + group);
}

/// All bytes of an export's shards, by name.
std::string shard_bytes(const std::string& out) {
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(out + ".d")) {
    files.push_back(item.path());
  }
  std::sort(files.begin(), files.end());
  std::string bytes;
  for (const auto& file : files) bytes += file.filename().string() + read_file(file);
  return bytes;
}

void require_run(const std::vector<std::string>& arguments) {
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

}  // namespace

TEST_CASE("compressed exports hold what plain ones hold", "[numbers]") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& what : {std::vector<std::string>{},
                                               {"--dtype", "u8"},
                                               {"--dtype", "f32", "--cols", "16:500"},
                                               {"--product", "logits"},
                                               {"--index", "3", "--index", "700"},
                                               {"--mask", "causal"}}) {
    const std::string plain = folder / "plain.h5";
    const std::string small = folder / "small.h5";
    auto arguments = what;
    arguments.insert(arguments.end(), {"--layers", "1-2", "--force"});
    require_run(export_sample(plain, arguments));
    arguments.insert(arguments.end(), {"--compress", "gzip"});
    require_run(export_sample(small, arguments));
    const bool logits = !what.empty() && what.back() == "logits";
    for (const std::string name : {logits ? "logits" : "weights", "lse"}) {
      if (logits && name == "lse") continue;
      const auto expected = read_dataset(plain, kGroup + name);
      const auto got = read_dataset(small, kGroup + name);
      CHECK(got.shape == expected.shape);
      CHECK(got.values == expected.values);
    }
    CHECK(run_attnscope({"verify", small, "--quiet"}).exit_code == 0);
  }
}

TEST_CASE("shards have the same bytes however they were computed") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"--compress", "gzip"}, {"--topk", "9"}, {"--threshold", "0.02"}}) {
    std::string first;
    for (const std::vector<std::string>& how : {std::vector<std::string>{"--threads", "1"},
                                                {"--threads", "3", "--memory", "64MiB"},
                                                {"--memory", "7MiB", "--no-sync"}}) {
      auto arguments = what;
      arguments.insert(arguments.end(), how.begin(), how.end());
      arguments.insert(arguments.end(), {"--layers", "1-2", "--heads", "0-1", "--force"});
      require_run(export_sample(folder / "out.h5", arguments));
      const std::string bytes = shard_bytes(folder / "out.h5");
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  }
}

TEST_CASE("links of a master name shards of its own folder and lead nowhere else") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::string name = "step0010_layer002_cond_joint";
  const auto relink = [&](const std::string& new_name) {
    require_run(
        export_sample(out, {"--layers", "2", "--heads", "0", "--compress", "gzip", "--force"}));
    const hid_t file = H5Fopen(out.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t calls = H5Gopen2(file, "calls", H5P_DEFAULT);
    REQUIRE(H5Ldelete(calls, name.c_str(), H5P_DEFAULT) >= 0);
    REQUIRE(H5Lcreate_external("/etc/passwd", "/x", calls, new_name.c_str(), H5P_DEFAULT,
                               H5P_DEFAULT) >= 0);
    H5Gclose(calls);
    REQUIRE(H5Fclose(file) >= 0);
    return run_attnscope({"verify", out});
  };
  // The shard of that name is found where it belongs, and the master is told to be changed.
  const auto elsewhere = relink(name);
  INFO(elsewhere.out << elsewhere.err);
  CHECK(elsewhere.exit_code == 3);
  CHECK(elsewhere.out.find("bad: the structure") != std::string::npos);
  CHECK(elsewhere.out.find("1 of 1 shards good") != std::string::npos);
  const auto unsafe = relink(".x");
  CHECK(unsafe.exit_code != 0);
  CHECK(unsafe.err == "attnscope: " + out + ": calls: has a link whose name is no file's\n");
}

TEST_CASE("top keys and kept weights are those of the map") {
  const TemporaryFolder folder;
  const std::vector<std::string> crop{"--layers", "2", "--rows", "10:90", "--cols", "5:1000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), crop.begin(), crop.end());
    return more;
  };
  require_run(export_sample(folder / "map.h5", with({"--dtype", "f32"})));
  require_run(export_sample(folder / "top.h5", with({"--topk", "7"})));
  require_run(export_sample(folder / "kept.h5", with({"--threshold", "0.015"})));
  const auto map = read_dataset(folder / "map.h5", kGroup + "weights");
  const auto weights = read_dataset(folder / "top.h5", kGroup + "topk_weights");
  const auto keys = read_dataset(folder / "top.h5", kGroup + "topk_keys");
  const auto mass = read_dataset(folder / "top.h5", kGroup + "topk_mass");
  REQUIRE(map.shape == std::vector<int64_t>{1, 4, 80, 995});
  REQUIRE(weights.shape == std::vector<int64_t>{1, 4, 80, 7});
  REQUIRE(mass.shape == std::vector<int64_t>{1, 4, 80});
  for (size_t row = 0; row < 4 * 80; ++row) {
    const double* values = map.values.data() + row * 995;
    std::vector<int64_t> order(995);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
    });
    double sum = 0;
    for (size_t i = 0; i < 7; ++i) {
      const auto key = static_cast<size_t>(order[i]);
      REQUIRE(keys.values[row * 7 + i] == static_cast<double>(key + 5));
      REQUIRE(weights.values[row * 7 + i] == values[key]);
      sum += values[key];
    }
    REQUIRE(mass.values[row] == Approx(sum).epsilon(1e-6));
  }
  for (size_t head = 0; head < 4; ++head) {
    const std::string group = kGroup + "b00_h00" + std::to_string(head) + "/";
    const auto starts = read_dataset(folder / "kept.h5", group + "indptr");
    const auto kept_keys = read_dataset(folder / "kept.h5", group + "indices");
    const auto kept = read_dataset(folder / "kept.h5", group + "data");
    const auto kept_mass = read_dataset(folder / "kept.h5", group + "kept_mass");
    REQUIRE(starts.values.size() == 81);
    size_t at = 0;
    for (size_t row = 0; row < 80; ++row) {
      REQUIRE(starts.values[row] == static_cast<double>(at));
      double sum = 0;
      for (size_t key = 0; key < 995; ++key) {
        const double weight = map.values[(head * 80 + row) * 995 + key];
        if (weight < 0.015) continue;
        REQUIRE(kept_keys.values.at(at) == static_cast<double>(key + 5));
        REQUIRE(kept.values.at(at++) == weight);
        sum += weight;
      }
      REQUIRE(kept_mass.values[row] == Approx(sum).margin(1e-6));
    }
    REQUIRE(starts.values[80] == static_cast<double>(at));
    REQUIRE(kept.values.size() == at);
  }
  // Rows with fewer keys than asked for.
  require_run(export_sample(folder / "few.h5",
                            {"--layers", "2", "--rows", "0:3", "--cols", "0:2", "--topk", "4"}));
  const auto few = read_dataset(folder / "few.h5", kGroup + "topk_keys");
  CHECK(few.values[2] == -1);
  CHECK(few.values[3] == -1);
}

TEST_CASE("sharded exports that are interrupted or killed go on with the first shard missing") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector<std::string> gzip{"--compress", "gzip", "--threads", "2"};
  require_run(export_sample(folder / "whole.h5", gzip));
  auto resume = gzip;
  resume.emplace_back("--resume");
  // Each goes on with what the one before left, which is a shard or more.
  const long writes = calls_of(export_sample(folder / "counted.h5", gzip), "stop-write");
  for (const std::string how : {"kill-write", "stop-write", "kill-write"}) {
    const auto result = run_attnscope(export_sample(out, resume), with_fault(how, writes * 3 / 10));
    INFO(how << ": exit " << result.exit_code << ": " << result.err);
    REQUIRE(result.exit_code == (how == "stop-write" ? 4 : 128 + SIGKILL));
    CHECK_FALSE(std::filesystem::exists(out));
    REQUIRE(std::filesystem::exists(out + ".d.part"));
    REQUIRE(std::filesystem::exists(out + ".journal"));
  }
  const auto refused = run_attnscope(export_sample(out, gzip));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("--resume") != std::string::npos);
  CHECK(run_attnscope(export_sample(out, {"--topk", "3", "--resume"})).exit_code == 1);
  require_run(export_sample(out, resume));
  CHECK(shard_bytes(out) == shard_bytes(folder / "whole.h5"));
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(out + ".d.part"));
  CHECK_FALSE(std::filesystem::exists(out + ".journal"));
  require_run(export_sample(out, resume));
  // A shard that changed, one that is gone, and the master.
  const std::string shard = shard_of(out, "step0010_layer001_cond_joint");
  const auto flip = [](const std::string& path, int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int old = file.get();
    file.seekp(at);
    file.put(static_cast<char>(old ^ 1));
  };
  flip(shard, 100'000);
  const auto bad = run_attnscope({"verify", out, "--quiet"});
  CHECK(bad.exit_code == 3);
  CHECK(bad.out.find("layer001") != std::string::npos);
  flip(shard, 100'000);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  flip(out, 3000);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code != 0);
  flip(out, 3000);
  std::filesystem::remove(shard);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 3);
}

TEST_CASE("a sharded export that is refused takes nothing of an interrupted one") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::string shard = out + ".d.part/step0.0123456789abcdef.h5";
  std::filesystem::create_directory(out + ".d.part");
  std::ofstream(shard) << "a shard";
  std::ofstream(out + ".journal") << "what is in it";
  const auto refused = run_attnscope(export_sample(out, {"--compress", "gzip"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err == "attnscope: " + out +
                           ".d.part: is left from an interrupted run (--resume goes on with it, "
                           "--force gives it up)\n");
  const auto other = run_attnscope(export_sample(out, {"--dtype", "f32"}));
  CHECK(other.exit_code == 1);
  CHECK(other.err.find(".d.part: is left from an interrupted run") != std::string::npos);
  // A journal that cannot be read is of nobody: it is not this run's to remove.
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"--dtype", "f32"}, {"--compress", "gzip"}}) {
    auto arguments = what;
    arguments.emplace_back("--resume");
    const auto resumed = run_attnscope(export_sample(out, arguments));
    CHECK(resumed.exit_code == 1);
    CHECK(resumed.err == "attnscope: " + out +
                             ".journal: has the name of what an interrupted run leaves, and is "
                             "none of this program's (--force removes it)\n");
  }
  CHECK(read_file(shard) == "a shard");
  CHECK(read_file(out + ".journal") == "what is in it");
  require_run(export_sample(out, {"--compress", "gzip", "--force"}));
  CHECK_FALSE(std::filesystem::exists(out + ".d.part"));
  CHECK_FALSE(std::filesystem::exists(out + ".journal"));
}

TEST_CASE("what is no export does not take the name of one in shards") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  require_run(export_sample(out, {"--compress", "gzip"}));
  const std::string master = read_file(out), shards = shard_bytes(out);
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"stats", "--json"}, {"query", "--query", "1,2,3"}}) {
    std::vector<std::string> arguments = what;
    arguments.insert(arguments.begin() + 1, sample("moving-shapes"));
    arguments.insert(arguments.end(), {"-o", out, "--force", "--quiet"});
    const auto refused = run_attnscope(arguments);
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(refused.err == "attnscope: " + out +
                             ".d: holds shards of an export, which no file would name any more: "
                             "remove them with out.h5, or choose another name\n");
    CHECK(read_file(out) == master);
    CHECK(shard_bytes(out) == shards);
  }
  // Its own kind replaces them.
  require_run(export_sample(out, {"--compress", "gzip", "--dtype", "f32", "--force"}));
}

TEST_CASE("an older sharded export stays until the new one is complete") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  require_run(export_sample(out, {"--compress", "gzip", "--layers", "0"}));
  const std::string before = shard_bytes(out);
  CHECK(run_attnscope(export_sample(out, {"--compress", "gzip"})).exit_code == 1);
  ProgramSettings settings;
  settings.signal = SIGKILL;
  settings.signal_from = out + ".d.part";
  REQUIRE(
      run_attnscope(export_sample(out, {"--compress", "gzip", "--force"}), settings).exit_code ==
      128 + SIGKILL);
  CHECK(shard_bytes(out) == before);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  require_run(export_sample(out, {"--topk", "5", "--force"}));
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  CHECK(read_dataset(out, kGroup + "topk_keys").shape == std::vector<int64_t>{1, 4, 1024, 5});
}

TEST_CASE("options of reduced and compressed exports that do not fit are refused") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& what : {std::vector<std::string>{"--product", "topk"},
                                               {"--product", "threshold"},
                                               {"--product", "weights", "--topk", "3"},
                                               {"--product", "lse", "--compress", "gzip"},
                                               {"--topk", "3", "--threshold", "0.5"},
                                               {"--topk", "3", "--compress", "gzip"},
                                               {"--compress", "zip"},
                                               {"--topk", "0"},
                                               {"--threshold", "nan"}}) {
    const auto result = run_attnscope(export_sample(folder / "out.h5", what));
    INFO(what.back() << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}
