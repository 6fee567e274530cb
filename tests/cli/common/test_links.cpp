// Captures whose files are not what they seem: links that lead out of the folder, pictures that are
// none, calls that cannot be read among others that can.
#include <filesystem>
#include <fstream>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/tensor_files.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A picture; several numbers, several pictures.
void write_png(const fs::path& path, int number = 0) {
  fs::copy_file(sample("moving-shapes") + "/frame" + std::to_string(number) + ".png", path);
}

void write_call(const fs::path& path, int layer, const std::string& scale = "0.5") {
  CallFile()
      .pair({1, 2, 8, 4}, {1, 2, 8, 4})
      .fact("layer", std::to_string(layer))
      .fact("scale", scale)
      .fact("grid", "2x2x2")
      .write(path);
}

/// capture.json with calls a, b of layers 0, 1 and the given frames.
void write_catalogue(const fs::path& folder, const std::string& frames = "[]") {
  write_bytes(folder / "capture.json",
              R"({"format":"attnscope-capture/1","frames":)" + frames +
                  R"(,"calls":[{"file":"a.safetensors"},{"file":"b.safetensors"}]})");
}

/// A folder with these calls and this catalogue; its path.
fs::path make_capture(const TemporaryFolder& folder, const std::string& frames) {
  const fs::path capture = folder / "capture";
  fs::create_directory(capture);
  write_call(capture / "a.safetensors", 0);
  write_call(capture / "b.safetensors", 1);
  write_catalogue(capture, frames);
  return capture;
}

}  // namespace

TEST_CASE("a picture that is a link to another file is not copied and not drawn") {
  const TemporaryFolder folder;
  const fs::path capture =
      make_capture(folder, R"([{"file":"frame0.png","t":0},{"file":"pictures/secret.png","t":0},)"
                           R"({"file":"frame1.png","t":1}])");
  write_png(capture / "frame1.png", 1);
  fs::create_directory(folder / "private");
  write_png(folder / "private/secret.png");
  fs::create_symlink("../private/secret.png", capture / "frame0.png");
  fs::create_directory_symlink("../private", capture / "pictures");
  for (const char* links : {"refuse", "follow"}) {
    INFO(links);
    const std::string out = folder / (std::string("copy-") + links);
    const auto copied = run_attnscope({"convert", capture, "-o", out, "--links", links, "--quiet"});
    INFO(copied.err);
    REQUIRE(copied.exit_code == 0);
    CHECK(
        contains(copied.err, "warning: " + (capture / "capture.json").string() +
                                 ": frames[0] is left out: " + (capture / "frame0.png").string()));
    CHECK(contains(copied.err, ": frames[1] is left out: "));
    CHECK(read_file(fs::path(out) / "frame0000.png") == read_file(capture / "frame1.png"));
    CHECK_FALSE(fs::exists(fs::path(out) / "frame0001.png"));
  }
  const auto drawn = run_attnscope({"render", capture, "--picture=filmstrip", "--query=0,0,0",
                                    "--layers=0", "--overlay=capture", "-o", folder / "film.png"});
  CHECK(drawn.exit_code == 2);
  CHECK(contains(drawn.err, "no picture is recorded for latent frame 0"));
}

TEST_CASE("what is listed as a picture and is none is not copied") {
  const TemporaryFolder folder;
  const fs::path capture = make_capture(folder, R"([{"file":"frame0.png","t":0}])");
  for (const std::string content : {"", "secret", "\x89PNG\r\n\x1a\n", "RIFF1234WAVE"}) {
    write_bytes(capture / "frame0.png", content);
    const auto copied = run_attnscope({"convert", capture, "-o", folder / "copy"});
    INFO(copied.err);
    CHECK(copied.exit_code == 1);
    CHECK(contains(copied.err, (capture / "frame0.png").string() +
                                   ": is no picture: expected a PNG, JPEG, GIF or WebP file"));
    CHECK_FALSE(fs::exists(folder / "copy"));
    CHECK_FALSE(fs::exists(folder / "copy.part"));
  }
}

TEST_CASE("tensors behind links are read where that is allowed") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "hub/blobs");
  fs::create_directories(folder / "hub/snapshots/main");
  const fs::path capture = folder / "hub/snapshots/main";
  write_call(folder / "hub/blobs/0", 0);
  write_call(folder / "hub/blobs/1", 1);
  write_catalogue(folder / "hub/blobs");
  for (const char* kind : {"a list", "their format"}) {
    INFO("told by " << kind);
    for (const auto& [name, blob] :
         {std::pair("a.safetensors", "0"), std::pair("b.safetensors", "1")}) {
      fs::remove(capture / name);
      fs::create_symlink(fs::path("../../blobs") / blob, capture / name);
    }
    fs::remove(capture / "capture.json");
    if (std::string(kind) == "a list") {
      fs::create_symlink("../../blobs/capture.json", capture / "capture.json");
    }
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"info", capture}, {"stats", capture}}) {
      const auto refused = run_attnscope(arguments);
      INFO(refused.err);
      CHECK(refused.exit_code == 1);
      CHECK(refused.out.empty());
      CHECK(contains(refused.err, "is a symbolic link or stands behind one"));
      CHECK(contains(refused.err, "--links follow"));
      auto more = arguments;
      more.insert(more.end(), {"--links", "follow"});
      const auto followed = run_attnscope(more);
      INFO(followed.err);
      CHECK(followed.exit_code == 0);
      more.back() = "maybe";
      CHECK(run_attnscope(more).exit_code == 2);
    }
  }
}

TEST_CASE("the folder that a user names may be a link itself") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "capture");
  write_call(folder / "capture/a.safetensors", 0);
  fs::create_directory_symlink("capture", folder / "named");
  CHECK(run_attnscope({"info", folder / "named"}).exit_code == 0);
  CHECK(run_attnscope({"stats", folder / "named/"}).exit_code == 0);
  fs::create_symlink("a.safetensors", folder / "capture/b.safetensors");
  CHECK(run_attnscope({"info", folder / "capture/b.safetensors"}).exit_code == 0);
}

TEST_CASE("a call that cannot be read is named and left out") {
  const TemporaryFolder folder;
  const fs::path capture = folder / "capture";
  fs::create_directory(capture);
  write_catalogue(capture);
  write_call(capture / "a.safetensors", 0);
  const std::string bad = (capture / "b.safetensors").string();
  const auto check = [&](const std::string& what) {
    INFO(what);
    const auto info = run_attnscope({"info", capture, "--json", "--quiet"});
    INFO(info.err);
    CHECK(info.exit_code == 0);
    CHECK(contains(info.err, "warning: a call is left out: " + bad + ": " + what));
    CHECK(contains(info.out, "a call is left out: "));
    const auto stats = run_attnscope({"stats", capture, "--quiet"});
    CHECK(stats.exit_code == 0);
    CHECK(contains(stats.err, "a call is left out: " + bad));
    CHECK(run_attnscope({"verify", capture}).exit_code == 3);
    const auto wanted = run_attnscope({"stats", capture, "--layers", "1"});
    CHECK(wanted.exit_code == 2);
  };
  check("cannot be opened: No such file or directory");
  write_call(capture / "b.safetensors", 1, "-1");
  check("scale: ");
  write_call(capture / "b.safetensors", 1, "NaN");
  check(
      "scale: expected a number, or a list of one a head (got nan): --scale states it, --ignore "
      "scale leaves it out");
  CallFile().pair({1, 2, 0, 4}, {1, 2, 0, 4}).fact("layer", "1").write(bad);
  check("");
  write_bytes(bad, "no tensors");
  check("");
  write_call(bad, 1);
  CHECK(run_attnscope({"verify", capture}).exit_code == 0);
  // Nothing is left where all are bad.
  write_bytes(bad, "no tensors");
  write_bytes(capture / "a.safetensors", "no tensors");
  const auto none = run_attnscope({"info", capture});
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, (capture / "a.safetensors").string()));
}
