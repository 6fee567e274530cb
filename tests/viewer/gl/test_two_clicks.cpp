// The way from the first layout to what the window is for: at most two visible clicks of a real
// mouse. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/number_words.h"
#include "core/tensor/row_source.h"
#include "tests/viewer/gl/seen_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int kMostClicks = 2;

/// The sample as a person's first window has it. The display has room for no larger one.
struct FirstSight : SeenApp {
  FirstSight() : SeenApp({1280, 800}, first_settings()) {
    REQUIRE(wait_for(WaitFor::atlas));
    settle();
  }

  int clicks = 0;

  /// Clicks what is seen: within the window.
  void click_seen(const std::string& label) {
    const ScreenRect rect = place(label);
    CHECK(rect.x0 >= 0);
    CHECK(rect.y0 >= 0);
    CHECK(rect.x1 <= 1280);
    CHECK(rect.y1 <= 800);
    ++clicks;
    click(label);
  }
  bool written(const std::string& part) const {
    const auto& texts = app.labels().texts();
    return std::any_of(texts.begin(), texts.end(), [&](const WrittenText& text) {
      return text.whole.find(part) != std::string::npos;
    });
  }
};

/// The weight of an entry in double, from the tensors of the head that is seen; the sample has no
/// mask.
double reference_weight(const Document& document, const MapPoint& at) {
  const HeadId head = document.history.now().head;
  const AttentionProblem& problem =
      *document.capture->calls()[static_cast<size_t>(head.call)].problem;
  const RowSourcePtr queries = stored_rows(problem.q(), head.batch, head.head);
  const RowSourcePtr keys = stored_rows(problem.k(), head.batch, problem.kv_head(head.head));
  std::vector<float> q(static_cast<size_t>(queries->width()));
  std::vector<float> k(static_cast<size_t>(keys->tokens() * keys->width()));
  queries->read({at.query, at.query + 1}, q.data());
  keys->read({0, keys->tokens()}, k.data());
  std::vector<double> logits;
  for (auto row = k.begin(); row != k.end(); row += keys->width()) {
    double sum = 0;
    for (size_t c = 0; c < q.size(); ++c) {
      sum += static_cast<double>(q[c]) * static_cast<double>(row[static_cast<std::ptrdiff_t>(c)]);
    }
    logits.push_back(problem.scale(head.head) * sum);
  }
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return std::exp(logits[static_cast<size_t>(at.key)] - most) / sum;
}

}  // namespace

TEST_CASE("two clicks at most: a token's film over the video") {
  FirstSight seen;
  seen.click_seen("Matrix/Map");
  REQUIRE(seen.state().query);
  REQUIRE(seen.wait_for(WaitFor::exact));
  REQUIRE(seen.wait_for(WaitFor::idle));
  seen.settle();
  CHECK(seen.written("contours at 20, 40, 60 and 80 %"));
  // The picture below the lines is grey, of many levels; the map's colours are not.
  const ScreenRect frame = seen.place("Query/t3");
  const gl::ReadPixels picture = seen.app.picture();
  int grey = 0, all = 0;
  std::set<int> levels;
  for (int y = static_cast<int>(frame.y0) + 1; y < static_cast<int>(frame.y1) - 1; ++y) {
    for (int x = static_cast<int>(frame.x0) + 1; x < static_cast<int>(frame.x1) - 1; ++x) {
      const Rgb c = picture.at(x, y);
      ++all;
      if (c.r != c.g || c.g != c.b) continue;
      ++grey;
      levels.insert(c.r);
    }
  }
  CHECK(grey > all / 2);
  CHECK(levels.size() > 8);
  CHECK(seen.clicks <= kMostClicks);
}

TEST_CASE("two clicks at most: the words of the prompt, and who looks for one") {
  FirstSight seen;
  CHECK(seen.written("circle"));
  seen.click_seen("Words/1");
  CHECK(seen.state().words.chosen == std::vector<int64_t>{1});
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  CHECK(seen.written("which tokens look for it"));
  CHECK(seen.there("Query/t3"));
  CHECK(seen.clicks <= kMostClicks);
}

TEST_CASE("two clicks at most: the volume of a token's row") {
  FirstSight seen;
  seen.click_seen("Matrix/Map");
  seen.click_seen("Query/Volume");
  REQUIRE(seen.state().volume.shown);
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  CHECK(seen.there("Volume/Cells"));
  CHECK(seen.there("Volume/Threshold"));
  CHECK(seen.clicks <= kMostClicks);
}

TEST_CASE("two clicks at most: what a mask keeps") {
  FirstSight seen;
  seen.click_seen("Tabs/Mask");
  CHECK(seen.written("what is lost with them"));
  seen.click_seen("Mask/Try topk");
  CHECK(seen.state().mask.text == "topk");
  REQUIRE(seen.wait_for(WaitFor::mask));
  seen.settle();
  CHECK(seen.written("density"));
  CHECK(seen.written("recall"));
  CHECK(seen.there("Mask/keep"));
  CHECK(seen.clicks <= kMostClicks);
}

TEST_CASE("two clicks at most: another head") {
  FirstSight seen;
  const HeadId before = seen.state().head;
  seen.click_seen("Atlas/L2/H1");
  const HeadValues now = seen.app.document()->picker.values(seen.state().head);
  CHECK_FALSE(seen.state().head == before);
  CHECK(now.layer == 2);
  CHECK(now.head == 1);
  CHECK(seen.clicks <= kMostClicks);
}

TEST_CASE("two clicks at most: an exact number, which is that of float64") {
  FirstSight seen;
  // The mouse alone: no click at all.
  seen.point("Matrix/Map", 0.37, 0.61);
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  REQUIRE(seen.app.frame());
  const std::optional<PointReadout> readout = seen.app.frame()->readout();
  REQUIRE(readout);
  REQUIRE(readout->entry);
  const double expected = reference_weight(*seen.app.document(), readout->point);
  CHECK(readout->entry->weight == Approx(expected).epsilon(1e-5));
  CHECK(seen.written("weight "));
  CHECK(seen.written(number_words(readout->entry->weight, 4)));
  CHECK(seen.clicks == 0);
}
