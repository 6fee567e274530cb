// The window over maps on another machine. A program that runs the words here stands for ssh.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"
#include "viewer/remote/messages.h"

using attnscope::Rgb;
using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// Stands in for ssh: greets as logins do, keeps the words that it got, and runs the line.
class FakeSsh {
 public:
  explicit FakeSsh(const fs::path& folder, const std::string& line = "exec sh -c \"$last\"")
      : program_(folder / "ssh.sh"), words_(folder / "words.txt") {
    std::ofstream(program_) << "#!/bin/sh\nfor w; do last=$w; echo \"$w\" >> " << words_.string()
                            << "; done\necho 'Last login: today'\n"
                            << line << "\n";
    fs::permissions(program_, fs::perms::owner_all);
    // Commands of the tests are run by shells, which hand it on.
    ::setenv("ATTNSCOPE_SSH", program_.c_str(), 1);
  }
  ~FakeSsh() { ::unsetenv("ATTNSCOPE_SSH"); }
  FakeSsh(const FakeSsh&) = delete;
  FakeSsh& operator=(const FakeSsh&) = delete;
  std::vector<std::string> words() const {
    std::vector<std::string> all;
    std::istringstream text(read_bytes(words_));
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }

 private:
  fs::path program_, words_;
};

std::vector<std::string> with_program(std::vector<std::string> words) {
  words.insert(words.end(), {"--remote-program", program_path()});
  return words;
}

std::string first_json(const std::string& out) {
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("{")) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("maps on another machine are shown as they are from a file, to the pixel and the digit") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const FakeSsh ssh(folder.path());
  const std::string capture = sample("moving-shapes");
  // Of the pictures the status line, which tells where bytes come from, is left out.
  const std::string script =
      "head 3\nwait exact\nprobe 700 801\nquery 3 5 6\nwait idle\nshot NAME.png\n"
      "order tiles:7x4x4\nwait exact\nzoom 100 300 100 300\nwait idle\nshot NAME2.png\n"
      "save-session NAME.session\n";
  const auto run = [&](const std::string& name, const std::vector<std::string>& words) {
    std::string text = script;
    for (size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
    const WindowResult result = run_window(folder.path().string(), words, text);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  const std::string here = run("here", {capture});
  const std::string there = run("there", with_program({"ssh://me@server:2222" + capture}));
  CHECK(first_json(here) == first_json(there));
  CHECK(Json::parse(first_json(there))["weight"].get<double>() > 0);
  for (const std::string which : {".png", "2.png"}) {
    const Picture a = read_png((folder.path() / ("here" + which)).string());
    const Picture b = read_png((folder.path() / ("there" + which)).string());
    REQUIRE(a.width == b.width);
    REQUIRE(a.height == b.height);
    int64_t others = 0;
    for (int y = 0; y < static_cast<int>(a.height) - 30; ++y) {
      for (int x = 0; x < static_cast<int>(a.width); ++x) {
        const Rgb of_a = a.at(x, y), of_b = b.at(x, y);
        others += of_a.r == of_b.r && of_a.g == of_b.g && of_a.b == of_b.b ? 0 : 1;
      }
    }
    CHECK(others == 0);
  }
  // The words that ssh got: behind -- no name of a host is taken for an option.
  const std::vector<std::string> words = ssh.words();
  REQUIRE(words.size() == 6);
  CHECK(words[0] == "-T");
  CHECK(words[1] == "-p");
  CHECK(words[2] == "2222");
  CHECK(words[3] == "--");
  CHECK(words[4] == "me@server");
  CHECK(words[5].find(" serve --stdio ") != std::string::npos);
  // The session brings it back from there.
  CHECK(contains(read_bytes(folder.path() / "there.session"),
                 "\nopen ssh://me@server:2222" + capture + "\n"));
  const WindowResult again =
      run_window(folder.path().string(), with_program({"--session", "there.session"}),
                 "wait exact\nexpect head == 3\n");
  INFO(again.err);
  CHECK(again.exit_code == 0);
}

TEST_CASE("two captures on one machine are compared, exports are read, facts are handed on") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const FakeSsh ssh(folder.path());
  const std::string capture = sample("moving-shapes");
  const std::string there = "ssh://server" + capture;
  WindowResult result = run_window(folder.path().string(), with_program({there, there}),
                                   "b head 2\ndifference signed\nwait exact\n");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const ProgramResult made = run_attnscope(
      {"export", capture, "--heads", "1", "-o", (folder.path() / "maps.h5").string(), "--quiet"});
  REQUIRE(made.exit_code == 0);
  result = run_window(folder.path().string(),
                      with_program({"ssh://server" + (folder.path() / "maps.h5").string()}),
                      "wait exact\nprobe 5 7\n");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(Json::parse(first_json(result.out))["weight"].get<double>() > 0);
  result = run_window(folder.path().string(), with_program({there, "--mask", "causal"}),
                      "wait exact\nprobe 5 700\n");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(Json::parse(first_json(result.out))["weight"].get<double>() == 0);
  CHECK(ssh.words().back().find("--mask causal") != std::string::npos);
}

TEST_CASE("a path is one word for the shell there, whatever it holds") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const FakeSsh ssh(folder.path());
  const fs::path strange = folder.path() / "it's; touch $(echo hurt) \"x\"";
  fs::copy(sample("moving-shapes"), strange, fs::copy_options::recursive);
  const WindowResult result =
      run_window(folder.path().string(), with_program({"ssh://server" + strange.string()}),
                 "wait exact\nprint calls\n");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_FALSE(fs::exists(folder.path() / "hurt"));
}

TEST_CASE("a line that is lost is taken up again, and what was shown goes on") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  // The first line ends amid the first tile, as if the network had gone.
  const FakeSsh ssh(folder.path(),
                    "if mkdir first 2>/dev/null; then\n"
                    "  sh -c \"$last\" | dd bs=1 count=50000 status=none\n"
                    "  echo 'Connection reset by peer' >&2\n  exit 255\nfi\nexec sh -c \"$last\"");
  const WindowResult result =
      run_window(folder.path().string(), with_program({"ssh://server" + sample("moving-shapes")}),
                 "wait exact\nprobe 5 7\nhead 2\nwait exact\nexpect connection == open\n");
  INFO(result.err << result.out);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("Connection reset by peer") != std::string::npos);
  CHECK(Json::parse(first_json(result.out))["weight"].get<double>() > 0);
  // Behind the window nobody is asked for a password.
  const std::vector<std::string> words = ssh.words();
  CHECK(std::count(words.begin(), words.end(), "BatchMode=yes") == 1);
}

TEST_CASE("a picture is not waited for behind a line that breaks again and again") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const auto picture = [&] {
    return run_window(folder.path().string(),
                      with_program({"ssh://server" + sample("moving-shapes"), "--screenshot",
                                    folder / "picture.png"}));
  };
  {
    // It is never there again.
    const FakeSsh ssh(folder.path(),
                      "if mkdir first 2>/dev/null; then\n"
                      "  sh -c \"$last\" | dd bs=1 count=50000 status=none\nfi\n"
                      "printf '\\033]0;title\\007Host is down\\r\\n' >&2\nexit 255");
    const WindowResult result = picture();
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("ssh did not come to server (\\x1b]0;title\\x07Host is down)") !=
          std::string::npos);
    // The other machine's words go on to the terminal, and do not steer it.
    CHECK(result.err.find("\n\\x1b]0;title\\x07Host is down\n") != std::string::npos);
    CHECK(result.err.find('\x1b') == std::string::npos);
    CHECK(result.err.find("moving-shapes: ssh://") == std::string::npos);
  }
  {
    // It greets, and what follows is none of its words.
    const FakeSsh ssh(folder.path(), "sh -c \"$last\" | dd bs=1 count=20000 status=none\nyes");
    const WindowResult result = picture();
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("ssh://server") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(folder.path() / "picture.png"));
}

TEST_CASE("calls that are added there come to the window here") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const FakeSsh ssh(folder.path());
  const fs::path dump = folder.path() / "dump";
  Json listed = Json::array();
  const auto record = [&](int64_t step) {
    const std::string name = "step" + std::to_string(step) + ".safetensors";
    fs::create_directory(dump);
    ReferenceCall({1, 2, 2, 40, 40, 8}, static_cast<uint64_t>(step))
        .fact("kind", "self")
        .fact("step", std::to_string(step))
        .fact("layer", "0")
        .write(dump / name);
    listed.push_back({{"file", name}});
    write_bytes(dump / "catalogue.part",
                Json{{"format", "attnscope-capture/1"}, {"calls", listed}}.dump());
    fs::rename(dump / "catalogue.part", dump / "capture.json");
  };
  record(0);
  auto window = std::async(std::launch::async, [&] {
    return run_window(folder.path().string(),
                      with_program({"ssh://server" + dump.string(), "--follow"}),
                      "wait exact\nsave-session first.session\nwait calls 2\nstep 1\nwait exact\n"
                      "probe 7 9\nprint calls\n");
  });
  REQUIRE(becomes([&] { return fs::exists(folder.path() / "first.session"); }));
  record(1);
  const WindowResult result = window.get();
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const ReferenceCall call({1, 2, 2, 40, 40, 8}, 1);
  const double exact = call.row(0, 0, 7)[9];
  CHECK(std::abs(Json::parse(first_json(result.out))["weight"].get<double>() - exact) <
        1e-5 * exact + 1e-9);
}

TEST_CASE("what keeps maps on another machine from being shown is told in one line") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  const auto refused = [&](const std::vector<std::string>& words, int code) {
    const WindowResult result = run_window(where, words, "quit\n");
    INFO(result.err);
    CHECK(result.exit_code == code);
    return result.err;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  {
    const FakeSsh ssh(folder.path());
    has(refused({"ssh://server/dump", "--remote-program", "/no/attnscope"}, 1),
        "server has no program /no/attnscope: `ssh server pip install attnscope==");
    has(refused(with_program({"ssh://server/no/dump"}), 1), "/no/dump: there is no such file");
    has(refused(with_program({"ssh://server" + sample("moving-shapes"), "--heads", "90"}), 2),
        "90");
    has(refused(with_program({"ssh://a/x", "ssh://b/x"}), 2), "lies on one machine");
    has(refused(with_program({"ssh://a/x", sample("moving-shapes")}), 2), "lies on one machine");
    has(refused({"ssh://-oProxyCommand=x/dump"}, 2), "no host is called -oProxyCommand=x");
    has(refused({"ssh://-l@host/dump"}, 2), "no user is called -l");
    has(refused({"ssh://host;reboot/dump"}, 2), "no host is called host;reboot");
    has(refused({"ssh://host:99999/dump"}, 2), "no port :99999");
    has(refused({"ssh://host"}, 2), "names no path there");
  }
  {
    const FakeSsh ssh(folder.path(), "echo 'Permission denied (publickey).' >&2; exit 255");
    has(refused({"ssh://server/dump"}, 1),
        "ssh did not come to server (Permission denied (publickey).)");
  }
  {
    const FakeSsh ssh(folder.path(), "printf '\\nattnscope tiles 99 7.1\\n'; sleep 5");
    has(refused({"ssh://server/dump"}, 1), "attnscope 7.1 there speaks another protocol");
  }
  {
    // A program that says everything but a greeting.
    const FakeSsh ssh(folder.path(), "yes | head -c 1000000");
    has(refused({"ssh://server/dump"}, 1), "more than a login prints");
  }
  {
    const FakeSsh ssh(folder.path(), "printf '\\nattnscope tiles " + std::to_string(kProtocol) +
                                         " 0.1.0\\nfoolish bytes'; sleep 5");
    has(refused({"ssh://server/dump"}, 1), "the other side sent what is no message");
  }
}

TEST_CASE("serve --stdio without anybody at the other end ends by itself, having greeted") {
  const ProgramResult alone = run_attnscope({"serve", "--stdio", sample("moving-shapes")});
  CHECK(alone.exit_code == 0);
  CHECK(alone.out.starts_with("\nattnscope tiles " + std::to_string(kProtocol) + " "));
}
