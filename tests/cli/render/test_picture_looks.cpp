#include <array>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

namespace {

std::vector<std::string> film_of_query(const std::string& out,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> words{"query",    sample("moving-shapes"),
                                 "--query",  "3,8,7",
                                 "--layers", "2",
                                 "--heads",  "0",
                                 "--quiet",  "--force",
                                 "-o",       out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("query and render make one and the same page of one look") {
  const TemporaryFolder folder;
  const std::vector<std::string> look{"--style",  "paper", "--width", "85mm",
                                      "--frames", "0,2-4", "--title", "A title"};
  REQUIRE(run_attnscope(film_of_query(folder / "q.pdf", look)).exit_code == 0);
  auto words = film_of_query(folder / "r.pdf", look);
  words[0] = "render";
  words.insert(words.end(), {"--picture", "filmstrip"});
  REQUIRE(run_attnscope(words).exit_code == 0);
  CHECK(read_bytes(folder / "q.pdf") == read_bytes(folder / "r.pdf"));
  CHECK(read_bytes(folder / "q.pdf").starts_with("%PDF-"));
  REQUIRE(run_attnscope(film_of_query(folder / "q.png", look)).exit_code == 0);
  CHECK(read_png(folder / "q.png").width == 1004);
}

TEST_CASE("every picture comes as .png, .svg and .pdf in every style") {
  const TemporaryFolder folder;
  for (const std::string style : {"dark", "paper", "slide"}) {
    for (const std::string picture : {"matrix", "mosaic", "frames", "heatmap", "text"}) {
      for (const std::string ending : {".png", ".svg", ".pdf"}) {
        std::vector<std::string> words{"render",    sample("moving-shapes"),
                                       "--picture", picture,
                                       "--layers",  "0",
                                       "--style",   style,
                                       "-o",        folder / (picture + ending),
                                       "--force",   "--quiet"};
        if (picture == "heatmap") words.insert(words.end(), {"--metric", "entropy"});
        if (picture != "heatmap") words.insert(words.end(), {"--heads", "3"});
        const auto result = run_attnscope(words);
        INFO(result.err);
        CHECK(result.exit_code == 0);
      }
    }
  }
}

TEST_CASE("a page that cannot be says the least width, and looks belong to pictures") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& out, const std::vector<std::string>& more,
                           const std::string& what) {
    const auto result = run_attnscope(film_of_query(folder / out, more));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(what) != std::string::npos);
  };
  refused("x.png", {"--width", "40px"}, "needs at least");
  refused("x.png", {"--width", "40px"}, "--width: ");
  refused("x.png", {"--size", "40x900px"}, "--size: this picture needs at least");
  refused("x.png", {"--width", "85"}, "--width 85: give a unit, 85mm or 85px");
  refused("x.png", {"--size", "170x80"}, "--size 170x80: give a unit, 170x80mm or 170x80px");
  refused("x.png", {"--size", "170mmx80"}, "expected a box");
  refused("x.png", {"--width", "infmm"}, "expected a length");
  refused("x.png", {"--width", "wide"}, "expected a length");
  refused("x.png", {"--width", "9mm", "--size", "10x10mm"}, "take one of them");
  refused("x.png", {"--size", "170x2mm"}, "valid 16 to");
  refused("x.png", {"--frames", "7"}, "7 does not exist");
  refused("x.png", {"--style", "papr"}, "did you mean paper?");
  refused("x.npy", {"--style", "paper"},
          "--style: belongs to a picture (-o FILE.png, .svg, .pdf, .gif, .mp4)");
  refused("x.png", {"--dpi", "0"}, "expected a number");
}

TEST_CASE("heads that no picture has room for are told with what makes them fit") {
  const TemporaryFolder folder;
  const auto result = run_attnscope(film_of_query(folder / "x.png", {"--cell", "1024"}));
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("1 head does not fit") != std::string::npos);
  CHECK(result.err.find("smaller --cell, --font-size or --dpi") != std::string::npos);
}

TEST_CASE("high pictures are told with what makes them smaller") {
  const TemporaryFolder folder;
  const auto told = [&](std::vector<std::string> words, const std::string& what) {
    words.insert(words.end(), {"-o", folder / "x.png", "--force"});
    const auto result = run_attnscope(words);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    const size_t at = result.err.find("note: ");
    REQUIRE(at != std::string::npos);
    CHECK(result.err.find(what) != std::string::npos);
    CHECK(result.err.find("--columns") != std::string::npos);
    CHECK(result.err.find("note: ", at + 1) == std::string::npos);
  };
  const std::string capture = sample("moving-shapes");
  told({"render", capture, "--picture", "text", "--layers", "0", "--columns", "1"}, "--text-token");
  told({"render", capture, "--picture", "offsets", "--layers", "2", "--columns", "1"}, "heads");
  told({"render", capture, "--picture", "filmstrip", "--query", "3,8,7", "--columns", "1"},
       "heads");
  told({"query", capture, "--query", "3,8,7", "--columns", "1"}, "heads");
  told({"diff", capture, capture, "--product", "volume", "--query", "3,8,7", "--columns", "1"},
       "heads");
}

TEST_CASE("films of more heads than one looks at in strips are small, and keep to their size") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const auto size_of = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"-o", folder / "x.png", "--force"});
    const auto result = run_attnscope(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.err.find("note: ") == std::string::npos);
    const auto picture = read_png(folder / "x.png");
    return std::array{picture.width, picture.height};
  };
  const auto query = size_of({"query", capture, "--query", "3,8,7"});
  CHECK(query[1] <= query[0]);
  CHECK(size_of({"render", capture, "--picture", "filmstrip", "--query", "3,8,7"}) == query);
  const auto words = size_of({"render", capture, "--picture", "text", "--layers", "0"});
  CHECK(words[1] <= words[0]);
  const auto page =
      size_of({"query", capture, "--query", "3,8,7", "--style", "paper", "--width", "85mm"});
  CHECK(page[0] == 1004);
  CHECK(page[1] <= page[0]);
  const auto slide =
      size_of({"query", capture, "--query", "3,8,7", "--style", "slide", "--size", "1920x1080px"});
  CHECK(slide[0] == 1920);
  CHECK(slide[1] <= 1080);
}

TEST_CASE("a dry run tells the size of a picture, and the memory that drawing takes") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  struct Case {
    std::string command;
    std::vector<std::string> options;
  };
  const std::vector<Case> cases{
      {"query", {"--query", "3,8,7", "--layers", "2"}},
      {"query", {"--query", "3,8,7"}},
      {"query", {"--query", "3,8,7", "--mean", "layers"}},
      {"render", {"--picture", "filmstrip", "--query", "3,8,7"}},
      {"render", {"--picture", "filmstrip", "--query", "3,8,7", "--mean", "layers"}},
      {"render",
       {"--picture", "filmstrip", "--query", "3,8,7", "--overlay", "capture", "--over", "contour"}},
      {"render",
       {"--picture", "filmstrip", "--query", "3,8,7", "--overlay", "capture", "--time", "linear"}},
      {"render", {"--picture", "matrix", "--layers", "1", "--heads", "3"}},
      {"render", {"--picture", "mosaic"}},
      {"render", {"--picture", "frames", "--layers", "1", "--heads", "3"}},
      {"render", {"--picture", "frames"}},
      {"render", {"--picture", "heatmap", "--metric", "entropy"}},
      {"render", {"--picture", "heatmap", "--metric", "max_weight"}},
      {"render", {"--picture", "text", "--layers", "0", "--heads", "3"}},
      {"render", {"--picture", "text", "--layers", "0"}},
      {"render", {"--picture", "offsets", "--layers", "2"}},
      {"diff",
       {capture, "--product", "pooled:8", "--layers", "1", "--heads", "3", "--b-head", "2"}},
      {"diff", {capture, "--product", "pooled:32"}},
      {"diff", {capture, "--product", "frames", "--layers", "1", "--heads", "3", "--b-head", "2"}},
      {"diff", {capture, "--product", "frames"}},
      {"diff", {capture, "--product", "volume", "--query", "3,8,7"}}};
  for (const Case& c : cases) {
    for (const std::vector<std::string>& look :
         {std::vector<std::string>{}, {"--style", "paper", "--width", "170mm"}}) {
      std::vector<std::string> words{c.command, capture, "-o", folder / "x.png", "--force"};
      words.insert(words.end(), c.options.begin(), c.options.end());
      words.insert(words.end(), look.begin(), look.end());
      const auto drawn = run_attnscope(words);
      INFO(c.command << " " << c.options[1] << " " << drawn.err);
      REQUIRE(drawn.exit_code == 0);
      words.insert(words.end(), {"--dry-run", "--json"});
      const auto planned = run_attnscope(words);
      INFO(planned.err);
      REQUIRE(planned.exit_code == 0);
      const auto plan = nlohmann::json::parse(planned.out);
      const auto picture = read_png(folder / "x.png");
      CHECK(plan.at("picture").at("width") == picture.width);
      CHECK(plan.at("picture").at("height") == picture.height);
      const int64_t bytes = plan.at("picture").at("memory_bytes");
      CHECK(bytes > 0);
      CHECK(bytes <= int64_t{3} * picture.width * picture.height);
      CHECK(plan.at("memory_bytes") >= bytes);
    }
  }
  auto words =
      film_of_query(folder / "q.pdf", {"--style", "paper", "--width", "85mm", "--dry-run"});
  const std::string text = run_attnscope(words).out;
  INFO(text);
  CHECK(text.find(" mm at 300 dpi, ") != std::string::npos);
  CHECK(text.find(" of memory\n") != std::string::npos);
}

TEST_CASE("a picture that --memory has no room for is refused with what makes it smaller") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const auto refused = [&](const std::vector<std::string>& words) {
    const auto result = run_attnscope(words);
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("the picture of ") != std::string::npos);
    CHECK(result.err.find("smaller (--cell, --width, fewer heads)") != std::string::npos);
  };
  for (const std::string ending : {".png", ".svg", ".pdf"}) {
    auto film = film_of_query(folder / ("x" + ending), {"--cell", "400", "--memory", "64MiB"});
    refused(film);
  }
  refused({"render", capture, "--picture", "heatmap", "--metric", "entropy", "--cell", "1024",
           "--memory", "32MiB", "-o", folder / "x.png"});
}
