#include "tests/support/catch.h"
#include "viewer/app/notices.h"

using namespace attnscope;

TEST_CASE("a notice goes after six seconds, and a newer one has its own time") {
  Notices notices;
  CHECK_FALSE(notices.left(0));
  CHECK_FALSE(notices.forget(100));
  notices.tell("one\ntwo", 100);
  CHECK(notices.notice() == "one\\ntwo");
  CHECK(notices.left(104) == 2.0);
  CHECK_FALSE(notices.forget(105.9));
  notices.tell("three", 105);
  CHECK_FALSE(notices.forget(110.9));
  CHECK(notices.left(120) == 0.0);
  CHECK(notices.forget(111));
  CHECK(notices.notice().empty());
  CHECK_FALSE(notices.failure());
}

TEST_CASE("what was told is kept, the last first, with the time of day, and no more than 20") {
  Notices notices;
  notices.show_kept();
  CHECK(notices.failure()->message == "nothing yet");
  CHECK_FALSE(notices.failure()->problem);
  notices.close();
  CHECK_FALSE(notices.failure());
  for (int i = 0; i < 30; ++i) notices.keep("message " + std::to_string(i));
  notices.fail("Title", "a cause");
  CHECK(notices.failure()->message == "a cause");
  CHECK(notices.failure()->problem);
  notices.show_kept();
  const std::string& kept = notices.failure()->message;
  CHECK(kept.find("  Title: a cause\n") == 8);
  CHECK(kept.find("message 29\n") != std::string::npos);
  CHECK(kept.ends_with("message 11"));
}
