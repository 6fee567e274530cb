#include "core/products/tokens/token_box.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("boxes of cells are read and told alike") {
  for (const char* const text : {"5,10,22", "0:3,4,5:7", "0:13,0:30,0:45"}) {
    CHECK(box_text(parse_token_box(text, "--query", {13, 30, 45})) == text);
  }
  CHECK(refused(
            [] {
              parse_token_box("5,10", "--query", {13, 30, 45});
            },
            ErrorCode::usage, {"--query 5,10: expected T,Y,X"}) == "");
  CHECK(refused(
            [] {
              parse_token_box("5,10,45", "--query", {13, 30, 45});
            },
            ErrorCode::usage,
            {"--query 5,10,45 (X): outside the grid (got 45, valid 0 to 44)"}) == "");
  CHECK(refused(
            [] {
              parse_token_box("5,10,a", "--query", {13, 30, 45});
            },
            ErrorCode::usage, {"\"a\" is no number or range A:B"}) == "");
}

TEST_CASE("tokens that are a box, and those that are none") {
  const TokenGrid grid = TokenGrid::video(26, {2, 3, 4}, 2, TextPlace::start);
  const auto text = [&](std::vector<int64_t> tokens) {
    const auto box = box_of(tokens, grid);
    return box ? box_text(*box) : "none";
  };
  CHECK(text({2}) == "0,0,0");
  CHECK(text({3, 4, 7, 8}) == "0,0:2,1:3");
  CHECK(text({3, 15}) == "0:2,0,1");
  CHECK(text({3, 4, 7}) == "none");
  CHECK(text({4, 7}) == "none");
  CHECK(text({0, 1}) == "none");
  CHECK(text({}) == "none");
}
