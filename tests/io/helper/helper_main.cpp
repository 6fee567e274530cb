// The helper of all tests: answers what the program's does, and what tests of the helper ask.
#include <vector>

#include "io/helper/helper_server.h"
#include "io/helper/questions/helper_questions.h"
#include "tests/io/helper/test_questions.h"

int main() {
  using namespace attnscope;
  std::vector<const HelperQuestion*> questions;
  for (const auto list : {helper_questions(), test::test_questions()}) {
    questions.insert(questions.end(), list.begin(), list.end());
  }
  return serve_helper(questions);
}
