// Files that are read for long: whether they are what they were, whether links are followed, how
// many of them are open.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/files/beneath.h"
#include "io/files/input_set.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// As it was written long ago: what is written now has another time.
void write_old(const fs::path& path, const std::string& text) {
  write_bytes(path, text);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

std::string text_of(const InputFile& file) {
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

int64_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

struct Change {
  const char* what;
  std::function<void(const fs::path&)> make;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> list{
      {"it was written to (modified ", [](const fs::path& path) { write_bytes(path, "other"); }},
      {"it has 6 bytes now, and had 5", [](const fs::path& path) { write_bytes(path, "longer"); }},
      {"it has 2 bytes now, and had 5", [](const fs::path& path) { fs::resize_file(path, 2); }},
      {"another file has its name now",
       [](const fs::path& path) {
         const fs::path other = path.string() + ".new";
         write_bytes(other, "first");
         fs::last_write_time(other, fs::last_write_time(path));
         fs::rename(other, path);
       }},
      {"cannot be found any more, while it is read: No such file or directory",
       [](const fs::path& path) { fs::remove(path); }}};
  return list;
}

}  // namespace

TEST_CASE("a file that is not what it was when it was opened is told") {
  for (const Change& change : changes()) {
    INFO(change.what);
    const TemporaryFolder folder;
    const fs::path path = folder / "x";
    write_old(path, "first");
    InputSet files(folder.path());
    const auto file = files.open(path);
    REQUIRE(text_of(*file) == "first");
    REQUIRE_NOTHROW(files.require_unchanged());
    change.make(path);
    const std::string text = thrown_text(ErrorCode::file, [&] { files.require_unchanged(); });
    CHECK(text.starts_with(path.string() + ": "));
    CHECK(text.find(change.what) != std::string::npos);
    // Once is not enough to make it good.
    CHECK(thrown_text(ErrorCode::file, [&] { files.require_unchanged(); }) == text);
  }
}

TEST_CASE("files that nothing was read of may change, and those checked since their last read") {
  const TemporaryFolder folder;
  write_old(folder / "a", "first");
  write_old(folder / "b", "first");
  InputSet files(folder.path());
  const auto a = files.open(folder / "a");
  const auto b = files.open(folder / "b");
  CHECK(files.open(folder / "a") == a);
  CHECK(text_of(*b) == "first");
  files.begin_use();
  CHECK(text_of(*a) == "first");
  write_bytes(folder / "b", "other");
  REQUIRE_NOTHROW(files.require_unchanged());
  REQUIRE_NOTHROW(files.require_reads_unchanged());
  write_bytes(folder / "a", "other");
  REQUIRE_NOTHROW(files.require_reads_unchanged());
  CHECK_THROWS_AS(files.require_unchanged(), Error);
  CHECK(text_of(*a) == "other");
  CHECK_THROWS_AS(files.require_reads_unchanged(), Error);
  CHECK_THROWS_AS(files.require_reads_unchanged(), Error);
}

TEST_CASE("all files have to be as they were when their use begins") {
  const TemporaryFolder folder;
  write_old(folder / "a", "first");
  InputSet files(folder.path());
  const auto file = files.open(folder / "a");
  write_bytes(folder / "a", "other");
  CHECK_THROWS_AS(files.begin_use(), Error);
}

TEST_CASE("few of many files are open, and each is known again when it is opened again") {
  constexpr int kFiles = 400;
  const TemporaryFolder folder;
  InputSet files(folder.path());
  const int64_t before = open_descriptors();
  std::vector<std::shared_ptr<const InputFile>> opened;
  for (int i = 0; i < kFiles; ++i) {
    const fs::path path = folder / std::to_string(i);
    write_old(path, std::to_string(i));
    opened.push_back(files.open(path));
  }
  CHECK(open_descriptors() - before <= 130);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 4; ++reader) {
      readers.emplace_back([&, reader] {
        for (int i = 0; i < kFiles; ++i) {
          const int number = (i * (reader + 1) + reader) % kFiles;
          if (text_of(*opened[static_cast<size_t>(number)]) != std::to_string(number)) ++wrong;
        }
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(open_descriptors() - before <= 140);
  REQUIRE_NOTHROW(files.require_unchanged());
  // The readers end in any order: reading all others closes the first one.
  for (size_t i = 1; i < opened.size(); ++i) (void)text_of(*opened[i]);
  write_bytes(folder / "0", "x");
  CHECK(thrown_text(ErrorCode::file, [&] {
          text_of(*opened[0]);
        }).find("was changed while it was read: it was written to") != std::string::npos);
}

TEST_CASE("links in a folder are followed where that is allowed, and out of it never by pictures") {
  const TemporaryFolder folder;
  const fs::path inside = folder / "capture";
  fs::create_directory(inside);
  fs::create_directory(folder / "elsewhere");
  write_bytes(folder / "elsewhere/secret", "secret");
  write_bytes(inside / "plain", "plain");
  fs::create_symlink("plain", inside / "sibling");
  fs::create_symlink("../elsewhere/secret", inside / "link");
  fs::create_directory_symlink("../elsewhere", inside / "folder");
  fs::create_directory_symlink(inside, folder / "named");
  const std::string word =
      "is a symbolic link or stands behind one, and links in a capture are "
      "not followed (--links follow: to tensors)";
  for (const fs::path& root : {inside, fs::path(folder / "named"), inside / ""}) {
    InputSet strict(root, Links::refuse);
    InputSet loose(root, Links::follow);
    CHECK(text_of(*strict.open(root / "plain")) == "plain");
    for (const char* name : {"link", "sibling", "folder/secret"}) {
      INFO(root << " " << name);
      CHECK(thrown_text(ErrorCode::file, [&] { strict.open(root / name); }) ==
            (root / name).string() + ": " + word);
      CHECK(thrown_text(ErrorCode::file, [&] { loose.open_unlinked(root / name); }) ==
            (root / name).string() + ": " + word);
      CHECK_NOTHROW(loose.open(root / name));
    }
    CHECK(text_of(*loose.open(root / "link")) == "secret");
    // A file that the user names is opened, wherever it lies.
    CHECK(text_of(*strict.open(folder / "elsewhere/secret")) == "secret");
  }
}

TEST_CASE("the kernel's way and ours open the same beneath a folder") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "a/b");
  write_bytes(folder / "a/b/file", "x");
  fs::create_symlink("file", folder / "a/b/link");
  fs::create_symlink("nothing", folder / "a/b/broken");
  fs::create_directory_symlink("b", folder / "a/c");
  const Descriptor root(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct Case {
    const char* name;
    int flags;
    int error;  ///< 0: it opens
  };
  const std::vector<Case> cases{{"a/b/file", O_RDONLY, 0},
                                {"a/b/file", O_PATH, 0},
                                {"a/./b/file", O_RDONLY, 0},
                                {"a/b", O_PATH | O_DIRECTORY, 0},
                                {"a/b/", O_PATH | O_DIRECTORY, 0},
                                {"a/b/link", O_RDONLY, ELOOP},
                                {"a/b/link", O_PATH, ELOOP},
                                {"a/b/broken", O_RDONLY, ELOOP},
                                {"a/b/broken", O_WRONLY | O_CREAT, ELOOP},
                                {"a/c", O_PATH | O_DIRECTORY, ELOOP},
                                {"a/c/file", O_RDONLY, ELOOP},
                                {"a/b/file/x", O_RDONLY, ENOTDIR},
                                {"a/none/file", O_RDONLY, ENOENT},
                                {"../x", O_RDONLY, EXDEV},
                                {"/etc/passwd", O_RDONLY, EXDEV}};
  for (const auto open : {open_beneath, open_beneath_by_parts}) {
    for (const Case& c : cases) {
      INFO(c.name << (open == open_beneath ? "" : " by parts"));
      errno = 0;
      const Descriptor file = open(root, c.name, c.flags, 0600);
      CHECK(file.is_open() == (c.error == 0));
      if (c.error != 0) CHECK(errno == c.error);
    }
    const Descriptor made = open(root, "a/b/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(made.is_open());
    CHECK(::unlinkat(root.number(), "a/b/new", 0) == 0);
  }
}
