#include <fstream>

#include "io/tensors/token_order_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  return npy_bytes("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n",
                   data, 1);
}

std::string problem_of(const std::filesystem::path& file) {
  const auto error = error_of([&] { read_token_order(file); });
  return error && error->code() == ErrorCode::file ? error->what() : "no file error";
}

}  // namespace

TEST_CASE("an order of tokens is read from text and from arrays of integers") {
  const TemporaryFolder folder;
  const std::vector<int64_t> expected{3, 0, 2, 1};
  write_bytes(folder / "a.txt", "3 0\n2,\t1\r\n");
  write_bytes(folder / "a32.npy", npy("<i4", "(4,)", raw(std::vector<int32_t>{3, 0, 2, 1})));
  write_bytes(folder / "a64.npy", npy("<i8", "(4,)", raw(expected)));
  for (const char* const name : {"a.txt", "a32.npy", "a64.npy"}) {
    const TokenOrder order = read_token_order(folder / name);
    CHECK(order.kind == TokenOrder::Kind::listed);
    CHECK(*order.list == expected);
    CHECK(order.text() == (folder / name));
  }
  CHECK(open_token_order("yxt").kind == TokenOrder::Kind::axes);
  CHECK(*open_token_order(folder / "a.txt").list == expected);
  CHECK(refused([&] { open_token_order(folder / "b.txt"); }, ErrorCode::usage, {"or a file"}) ==
        "");
}

TEST_CASE("files that hold no order are told by their place") {
  const TemporaryFolder folder;
  write_bytes(folder / "words.txt", "1 2 three 4");
  CHECK(contains(problem_of(folder / "words.txt"), "number 2: expected a whole number, got three"));
  write_bytes(folder / "half.txt", "1 2.5");
  CHECK(contains(problem_of(folder / "half.txt"), "number 1: expected a whole number, got 2.5"));
  write_bytes(folder / "empty.txt", " \n");
  CHECK(contains(problem_of(folder / "empty.txt"), "holds no numbers"));
  write_bytes(folder / "f.npy", npy("<f4", "(1,)", raw(std::vector<float>{1})));
  CHECK(contains(problem_of(folder / "f.npy"), "expected an array of one axis of int32 or int64"));
  write_bytes(folder / "two.npy", npy("<i4", "(1, 1)", raw(std::vector<int32_t>{0})));
  CHECK(contains(problem_of(folder / "two.npy"), "with 2 axes"));
  CHECK(contains(problem_of(folder / "none.txt"), "none.txt"));
}
