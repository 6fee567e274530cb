#include "core/products/softmax_domain.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

std::string text(const std::string& score, const std::string& domain,
                 const std::vector<std::string>& masks) {
  return domain_text(score, domain, masks);
}

}  // namespace

TEST_CASE("a label tells the domain, and the mask where there is one") {
  CHECK(text("softmax", "all", {"none"}) == "softmax domain all");
  CHECK(text("softmax", "frame", {"none", "none"}) == "softmax domain frame");
  CHECK(text("softmax", "all", {"causal"}) ==
        "softmax domain all, of the keys that the mask leaves (causal)");
  CHECK(text("softmax", "text", {"causal & window:4", "causal & window:4"}) ==
        "softmax domain text, of the keys that the mask leaves (causal & window:4)");
  CHECK(text("sigmoid", "all", {"none"}) == "sigmoid scores");
  CHECK(text("sigmoid", "video", {"none"}) == "sigmoid scores, domain video");
  CHECK(text("linear:elu1", "all", {"keys"}) ==
        "linear:elu1 scores, of the keys that the mask leaves (keys)");
}

TEST_CASE("calls with different masks are told to have them") {
  CHECK(text("softmax", "all", {"causal", "none", "causal"}) ==
        "softmax domain all, of the keys that their masks leave (causal; none)");
  CHECK(text("softmax", "all", {"window:1", "window:2", "window:3", "window:4", "window:5"}) ==
        "softmax domain all, of the keys that their masks leave (window:1; window:2; window:3; and "
        "2 more)");
}
