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
  told({"render", capture, "--picture", "text", "--layers", "0"}, "--text-token");
  told({"render", capture, "--picture", "offsets", "--layers", "2", "--columns", "1"}, "heads");
  told({"render", capture, "--picture", "filmstrip", "--query", "3,8,7", "--columns", "1"},
       "heads");
  told({"query", capture, "--query", "3,8,7", "--columns", "1"}, "heads");
  told({"diff", capture, capture, "--product", "volume", "--query", "3,8,7", "--columns", "1"},
       "heads");
}

TEST_CASE("a dry run tells the size of a film before it is computed") {
  const TemporaryFolder folder;
  const std::vector<std::string> look{"--style", "paper", "--width", "85mm", "--dry-run", "--json"};
  const auto result = run_attnscope(film_of_query(folder / "q.png", look));
  REQUIRE(result.exit_code == 0);
  const auto plan = nlohmann::json::parse(result.out);
  CHECK(plan.at("picture").at("width") == 1004);
  REQUIRE(run_attnscope(film_of_query(folder / "q.png", {"--style", "paper", "--width", "85mm"}))
              .exit_code == 0);
  CHECK(read_png(folder / "q.png").height == plan.at("picture").at("height"));
}
