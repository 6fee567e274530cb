#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/write/make_export.h"
#include "io/files/output_file.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const ExportWriteOptions kRefuse{.force = false, .sync = false};
const ExportWriteOptions kForce{.force = true, .sync = false};

/// The Error that a call threw, if any.
struct Thrown {
  bool any = false;
  ErrorCode code = ErrorCode::interrupted;
  std::string text;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};
template <typename F>
Thrown thrown_by(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  }
  return {};
}

Thrown construct(const ExportSpec& spec, const std::string& out, ExportWriteOptions options) {
  return thrown_by([&] { make_export(spec, out, options); });
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Root may write everywhere: while this lives, the process has the rights of a user who owns
/// nothing.
class WithoutRootsRights {
 public:
  WithoutRootsRights() : root_(geteuid() == 0) {
    if (root_) REQUIRE(seteuid(65534) == 0);
  }
  ~WithoutRootsRights() {
    if (root_) (void)!seteuid(0);
  }
  WithoutRootsRights(const WithoutRootsRights&) = delete;
  WithoutRootsRights& operator=(const WithoutRootsRights&) = delete;

 private:
  bool root_;
};

}  // namespace

TEST_CASE("a finished export leaves one file, one without a tile none") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  make_export(spec, out, kRefuse);
  CHECK(std::filesystem::is_empty(folder.path()));
  {
    const auto sink = make_export(spec, out, kRefuse);
    CHECK(std::filesystem::exists(out + ".part"));
    CHECK_FALSE(std::filesystem::exists(out));
    feed(*sink, {}, {.stop_after = 3});
  }
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(names_in(folder.path()).size() == 2);  // the part and its journal
  {
    const auto sink = make_export(spec, out, {.force = true, .sync = true});
    feed(*sink, {});
    CHECK(names_in(folder.path()).size() == 2);  // the file and its lock
  }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out.h5"});
}

TEST_CASE("a stream with a tile missing is not called complete") {
  for (const bool gzip : {false, true}) {
    INFO("gzip " << gzip);
    const TemporaryFolder folder;
    const std::vector calls{make_call(joint_facts())};
    ExportSpec spec = make_spec(calls);
    spec.gzip = gzip;
    {
      const auto sink = make_export(spec, folder / "out.h5", kRefuse);
      feed(*sink, {}, {.segment_chunks = 1, .stop_after = 3});
      const Thrown thrown = thrown_by([&] { sink->end(); });
      CHECK(thrown.code == ErrorCode::file);
      CHECK(thrown.says((folder / "out.h5") + ": 3 of "));
      CHECK(thrown.says("it stays incomplete"));
    }
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5.d"));
  }
}

TEST_CASE("an existing file is an error, or replaced at the very end") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  write_text(out, "precious");
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  const Thrown refused = construct(spec, out, kRefuse);
  CHECK(refused.code == ErrorCode::file);
  CHECK(refused.says(out + ": already exists"));
  CHECK(refused.says("--force"));
  CHECK(thrown_by([&] { check_export_target(out, kRefuse); }).text == refused.text);
  CHECK(names_in(folder.path()).size() == 1);
  {
    const auto sink = make_export(spec, out, kForce);
    feed(*sink, {}, {.stop_after = 2});
    CHECK(read_bytes(out) == "precious");
  }
  CHECK(read_bytes(out) == "precious");
  const auto sink = make_export(spec, out, kForce);
  feed(*sink, {});
  CHECK(read_bytes(out).substr(1, 3) == "HDF");
}

TEST_CASE("what a killed run left is an error, or replaced on request") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto sink = make_export(spec, out, kRefuse);
    feed(*sink, {}, {.stop_after = 2});
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(std::filesystem::exists(out + ".part"));
  const Thrown refused = construct(spec, out, kRefuse);
  CHECK(refused.code == ErrorCode::file);
  CHECK(refused.says(out + ".part: is left from an interrupted run"));
  CHECK(refused.says("--force"));
  {
    const auto sink = make_export(spec, out, kForce);
    feed(*sink, {});
  }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out.h5"});
}

TEST_CASE("two writers never meet") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  {
    const auto first = make_export(spec, out, kRefuse);
    for (const ExportWriteOptions& options : {kRefuse, kForce}) {
      const Thrown second = construct(spec, out, options);
      CHECK(second.code == ErrorCode::file);
      CHECK(second.says(out + ": is being written by another run"));
    }
    feed(*first, {});
  }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out.h5"});
  // A lock file that nobody holds means nothing.
  write_text(folder / "next.h5.lock", "");
  const auto next = make_export(spec, folder / "next.h5", kRefuse);
  feed(*next, {});
}

TEST_CASE("a lock goes from hand to hand") {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(FileLock::is_held(path));
    const FileLock lock(path, "file");
    CHECK(FileLock::is_held(path));
    CHECK(thrown_by([&] { FileLock again(path, "file"); }).says("file: is being written"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

namespace {

/// A process that holds a lock, and some memory, until it is killed.
pid_t start_holder(const std::string& path, size_t memory) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t holder = fork();
  REQUIRE(holder >= 0);
  if (holder == 0) {
    const FileLock lock(path, "file");
    const std::string held(memory, 'x');
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (held.size() == memory) pause();
    _exit(0);
  }
  close(ready[1]);
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  return holder;
}

void reap(pid_t process) {
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
}

}  // namespace

TEST_CASE("a lock keeps processes apart, and ends with its holder") {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  const pid_t holder = start_holder(path, 1);
  CHECK(FileLock::is_held(path));
  CHECK(thrown_by([&] { FileLock again(path, "file"); }).says("file: is being written"));
  REQUIRE(kill(holder, SIGKILL) == 0);
  reap(holder);
  CHECK_FALSE(FileLock::is_held(path));
  const FileLock lock(path, "file");
}

TEST_CASE("a lock is had at once after its holder was killed, ended or not") {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  for (int i = 0; i < 20; ++i) {
    // With memory to give back, which comes before the locks.
    const pid_t holder = start_holder(path, size_t{64} << 20);
    REQUIRE(kill(holder, SIGKILL) == 0);
    if (i % 2 == 0) CHECK_FALSE(FileLock::is_held(path));
    const Thrown thrown = thrown_by([&] { FileLock lock(path, "file"); });
    INFO(thrown.text);
    CHECK_FALSE(thrown.any);
    // Nobody has taken notice of its end until now.
    reap(holder);
  }
}

TEST_CASE("a child has no part in its parent's locks") {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  std::optional<FileLock> lock(std::in_place, path, "file");
  int lifeline[2];
  REQUIRE(pipe(lifeline) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(lifeline[1]);
    char byte = 0;
    _exit(read(lifeline[0], &byte, 1) == 0 ? 0 : 1);
  }
  lock.reset();
  // Another file under the same name, or the same one: neither is held by the child.
  const pid_t holder = start_holder(path, 1);
  CHECK(FileLock::is_held(path));
  REQUIRE(kill(holder, SIGKILL) == 0);
  reap(holder);
  const Thrown thrown = thrown_by([&] { FileLock again(path, "file"); });
  CHECK_FALSE(thrown.any);
  close(lifeline[0]);
  close(lifeline[1]);
  reap(child);
}

TEST_CASE("a folder that cannot be written is named") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  write_text(folder / "file", "");
  struct Case {
    std::string out, reason;
  };
  for (const Case& c :
       {Case{folder / "missing/out.h5", "No such file"},
        Case{folder / "file/out.h5", "Not a directory"},
        Case{folder.path().string(), "is a folder"}, Case{folder / "", "is not a file name"}}) {
    const Thrown thrown = construct(spec, c.out, kForce);
    INFO(thrown.text);
    CHECK(thrown.code == ErrorCode::file);
    CHECK(thrown.says(c.out + ": "));
    CHECK(thrown.says(c.reason));
  }
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("a folder without the right to write in it is named") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  using std::filesystem::perms;
  std::filesystem::permissions(folder.path(), perms(0555));
  {
    const WithoutRootsRights user;
    CHECK(construct(spec, folder / "out.h5", kRefuse).says("Permission denied"));
  }
  std::filesystem::permissions(folder.path(), perms::owner_all);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a limit on file sizes is met before anything is created") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls);
  Thrown thrown;
  {
    const FileSizeLimit limit(1 << 20);
    thrown = construct(spec, out, kRefuse);
  }
  CHECK(thrown.code == ErrorCode::resource);
  CHECK(thrown.says(out));
  CHECK(thrown.says("1.00 MiB"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a write that fails is reported with its place and spoils nothing") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  write_text(out, "precious");
  const std::vector calls{make_call(joint_facts())};
  Thrown thrown;
  {
    const auto sink = make_export(make_spec(calls), out, kForce);
    const FileSizeLimit limit(1 << 20);
    thrown = thrown_by([&] { feed(*sink, {}); });
  }
  CHECK(thrown.code == ErrorCode::resource);
  CHECK(thrown.says(out + ".part: write at offset "));
  CHECK(thrown.says("File too large"));
  CHECK(read_bytes(out) == "precious");
}

TEST_CASE("a full disk is refused before the work and leaves nothing") {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=3m") != 0) {
    skip_test("no right to mount a small tmpfs");
    return;
  }
  const std::vector calls{make_call(joint_facts())};
  std::vector<Thrown> thrown;
  size_t left = 0;
  {
    // The chunks take 3 MiB in f16, which is refused at a quick_check, and 1.5 MiB in u8, which
    // that quick_check lets pass: with 16 KiB more there is no room for the rest of the file.
    thrown.push_back(construct(make_spec(calls), disk + "/out.h5", kRefuse));
    left = names_in(disk).size();
    const PosixFile filler(disk + "/filler", PosixFile::Mode::create);
    filler.allocate(1520 * 1024);
    const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::u8_log2);
    thrown.push_back(construct(spec, disk + "/out.h5", kRefuse));
    left += names_in(disk).size();
  }
  umount(disk.c_str());
  for (const Thrown& t : thrown) {
    INFO(t.text);
    CHECK(t.code == ErrorCode::resource);
    CHECK(t.says(disk + "/out.h5"));
    CHECK(t.says("not enough disk space (needed "));
    CHECK(t.says("free "));
  }
  CHECK(left == 1);
}
