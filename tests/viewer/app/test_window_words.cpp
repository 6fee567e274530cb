#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

const fs::path kSample = fs::path(project_folder()) / "samples/moving-shapes";
/// Of the status line, which has sizes of caches.
constexpr uint32_t kStatusRows = 28;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// The sample with two words of its prompt in other scripts, which take as many bytes.
void write_foreign_sample(const fs::path& folder) {
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(kSample)) {
    if (!entry.is_regular_file()) continue;
    std::string bytes = read_bytes(entry.path());
    for (const std::string quote : {"\"", "\\\""}) {
      replace_all(bytes, quote + "red" + quote, quote + "\u732b" + quote);
      replace_all(bytes, quote + "circle" + quote, quote + "щит" + quote);
    }
    std::ofstream(folder / entry.path().filename(), std::ios::binary) << bytes;
  }
}

/// HOME of the programs that are started, while this lives.
class Home {
 public:
  explicit Home(const fs::path& path) {
    if (const char* home = std::getenv("HOME")) before_ = home;
    setenv("HOME", path.c_str(), 1);
  }
  ~Home() { setenv("HOME", before_.c_str(), 1); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

 private:
  std::string before_;
};

/// Pixels above the status line that differ.
int differing(const Picture& a, const Picture& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  int differ = 0;
  for (int y = 0; y < static_cast<int>(a.height - kStatusRows); ++y) {
    for (int x = 0; x < static_cast<int>(a.width); ++x) differ += !(a.at(x, y) == b.at(x, y));
  }
  return differ;
}

}  // namespace

TEST_CASE("words in other scripts are drawn in an installed font that has them") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_foreign_sample(folder.path() / "foreign");
  fs::create_directories(folder.path() / "with/.fonts");
  fs::create_directories(folder.path() / "without");
  // The first of the fonts that are asked, whatever else is installed.
  fs::copy_file(fs::path(project_folder()) / "tests/data/fonts/boxes.ttc",
                folder.path() / "with/.fonts/NotoSansCJK-Regular.ttc");
  const auto run = [&](const std::string& home) {
    const Home set(folder.path() / home);
    // Opened in a window that has drawn another capture's letters before.
    const WindowResult r = run_window(
        folder.path().string(), {kSample.string(), "--size", "960x640"},
        "layer 2\nwait exact\nopen foreign\nlayer 2\nquery text 2\nwait exact\n"
        "wait idle\nshot " +
            home + "-cat.png\nquery text 3\nwait exact\nwait idle\nshot " + home + "-shield.png\n");
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
  };
  run("with");
  run("without");
  const int cat =
      differing(read_png(folder / "with-cat.png"), read_png(folder / "without-cat.png"));
  CHECK(cat > 20);
  CHECK(cat < 2000);
  // The other word needs no such font.
  CHECK(differing(read_png(folder / "with-shield.png"), read_png(folder / "without-shield.png")) ==
        0);
}

TEST_CASE("the colours' range and the axes' scales by words, by keys and by clicks") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result =
      run_window(folder.path().string(), {kSample.string(), "--layers", "2", "--heads", "0"},
                 "size 1000 700\nwait exact\nprint share_above\nexpect share_above > 0\n"
                 "expect share_above < 0.01\nexpect share_below > 0\nshot auto.png\n"
                 "click Histogram/Min-max\nwait exact\nexpect share_above == 0\n"
                 "expect share_below == 0\nprint range_low\nprint range_high\n"
                 "key Shift+L\nwait exact\nexpect share_above > 0\nrange minmax\nwait exact\n"
                 "expect share_above == 0\nkey Ctrl+Z\nexpect share_above > 0\n"
                 "aspect equal\nwait exact\nshot equal.png\nkey E\nwait exact\nshot fill.png\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Picture fill = read_png((folder / "fill.png"));
  CHECK(differing(read_png((folder / "auto.png")), fill) < 10);
  CHECK(differing(read_png((folder / "equal.png")), fill) > 1000);
  const WindowResult wrong = run_window(folder.path().string(), {kSample.string()}, "range most\n");
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.err.find("range minmax") != std::string::npos);
  const WindowResult shape =
      run_window(folder.path().string(), {kSample.string()}, "aspect eqal\n");
  CHECK(shape.exit_code != 0);
  CHECK(shape.err.find("equal") != std::string::npos);
}
