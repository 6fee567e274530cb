#include <unistd.h>

#include <filesystem>
#include <limits>

#include "core/tensor/memory_tensor.h"
#include "io/capture/lse_cache.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// 2 batch items, 4 heads of 6 queries over 2 heads of 5 keys, d = 2. Values count up; `change` is
/// added to one of them.
AttentionProblem problem_of(double scale = 0.5, Mask mask = {}, int64_t changed_q = -1,
                            int64_t changed_k = -1, ScoreFunction score = ScoreFunction::softmax) {
  std::vector<float> q(2 * 4 * 6 * 2), k(2 * 2 * 5 * 2);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i);
  for (size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i) * 0.5f;
  if (changed_q >= 0) q[static_cast<size_t>(changed_q)] += 1;
  if (changed_k >= 0) k[static_cast<size_t>(changed_k)] += 1;
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(make_tensor("q", DType::f32, {2, 4, 6, 2}, q), Layout::bhsd);
  parts.k = HeadTensor(make_tensor("k", DType::f32, {2, 2, 5, 2}, k), Layout::bhsd);
  parts.id.kind = CallKind::cross;
  parts.scale = scale;
  parts.mask = std::move(mask);
  parts.score = score;
  return AttentionProblem::make(parts);
}

std::string key_of(const AttentionProblem& problem, int64_t batch = 0, int64_t head = 1,
                   const std::string& backend = "cpu", const TensorSource* mask = nullptr) {
  LseCache cache({"unused"});
  return cache.key({&problem, mask, batch, head}, backend, {});
}

std::vector<RowNorm> some_norms() {
  return {{1.25, 3}, {0, 0}, {1.999999999999, -123456789012}, {1, 1000000}};
}

bool same(const std::vector<RowNorm>& a, const std::vector<RowNorm>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].sum != b[i].sum || a[i].exponent != b[i].exponent) return false;
  }
  return true;
}

const std::string kKey = "0123456789abcdef0123456789abcdef";

}  // namespace

TEST_CASE("a cache key covers what decides the norms of a head, and nothing else") {
  const std::string key = key_of(problem_of());
  CHECK(key.size() == 32);
  CHECK(key_of(problem_of()) == key);
  CHECK(key_of(problem_of(), 0, 0) != key);
  CHECK(key_of(problem_of(), 1, 1) != key);
  CHECK(key_of(problem_of(), 0, 1, "reference") != key);
  CHECK(key_of(problem_of(0.25)) != key);
  CHECK(key_of(problem_of(0.5, Mask::causal())) != key);
  CHECK(key_of(problem_of(0.5, Mask::key_range({1, 3}, 5))) !=
        key_of(problem_of(0.5, Mask::key_range({1, 4}, 5))));
  CHECK(key_of(problem_of(0.5, {}, -1, -1, ScoreFunction::linear_relu)) != key);
  // Head 1 of item 0: q from 12 to 23, k (of head 0) from 0 to 9.
  for (const int64_t at : {12, 17, 23}) CHECK(key_of(problem_of(0.5, {}, at)) != key);
  for (const int64_t at : {0, 9}) CHECK(key_of(problem_of(0.5, {}, -1, at)) != key);
  for (const int64_t at : {11, 24}) CHECK(key_of(problem_of(0.5, {}, at)) == key);
  CHECK(key_of(problem_of(0.5, {}, -1, 10)) == key);
  // Two biases that describe themselves alike.
  const auto bias = [](float value) {
    return make_tensor("mask", DType::f32, {1, 5}, std::vector<float>{0, 0, value, 0, 0});
  };
  const auto one = bias(1), two = bias(2);
  const std::string biased = key_of(problem_of(0.5, Mask::tensor(one)), 0, 1, "cpu", one.get());
  CHECK(key_of(problem_of(0.5, Mask::tensor(two)), 0, 1, "cpu", two.get()) != biased);
  CHECK(key_of(problem_of(0.5, Mask::tensor(bias(1))), 0, 1, "cpu", bias(1).get()) == biased);
}

TEST_CASE("a stop ends the reading of a key") {
  std::stop_source stop;
  stop.request_stop();
  LseCache cache({"unused"});
  const AttentionProblem problem = problem_of();
  CHECK(refused(
            [&] {
              cache.key({&problem, nullptr, 0, 0}, "cpu", stop.get_token());
            },
            ErrorCode::interrupted, {}) == "");
}

TEST_CASE("norms come back with both parts, to the bit") {
  const TemporaryFolder folder;
  LseCache cache({folder.path() / "new" / "place"});
  std::vector<RowNorm> norms(4);
  CHECK_FALSE(cache.load(kKey, norms));
  REQUIRE_FALSE(cache.store(kKey, some_norms()));
  REQUIRE(cache.load(kKey, norms));
  CHECK(same(norms, some_norms()));
  CHECK(fs::exists(folder.path() / "new" / "place" / ("lse-" + kKey + ".bin")));
  // Of another length it is another's.
  norms.resize(5);
  CHECK_FALSE(cache.load(kKey, norms));
  norms.resize(3);
  CHECK_FALSE(cache.load(kKey, norms));
  // Nothing else is left, and it can be written again.
  norms.assign(4, {1.5, 7});
  REQUIRE_FALSE(cache.store(kKey, norms));
  std::vector<RowNorm> again(4);
  REQUIRE(cache.load(kKey, again));
  CHECK(same(again, norms));
  CHECK(std::distance(fs::directory_iterator(folder.path() / "new" / "place"), {}) == 1);
}

TEST_CASE("a file under another key's name is not believed") {
  const TemporaryFolder folder;
  LseCache cache({folder.path()});
  REQUIRE_FALSE(cache.store(kKey, some_norms()));
  const std::string other = "ffffffffffffffffffffffffffffffff";
  fs::rename(folder.path() / ("lse-" + kKey + ".bin"), folder.path() / ("lse-" + other + ".bin"));
  std::vector<RowNorm> norms(4);
  CHECK_FALSE(cache.load(other, norms));
}

TEST_CASE("sums that no row can have are not believed") {
  const TemporaryFolder folder;
  LseCache cache({folder.path()});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const RowNorm impossible[] = {{2, 0},    {2.5, 3},   {0.5, 0},    {-1.5, 0}, {kNan, 0},
                                {kInf, 0}, {1, kMost}, {1, -kMost}, {0, kMost}};
  for (const RowNorm& norm : impossible) {
    INFO(norm.sum << " * 2^" << norm.exponent);
    std::vector<RowNorm> norms = some_norms();
    norms[2] = norm;
    REQUIRE_FALSE(cache.store(kKey, norms));
    CHECK_FALSE(cache.load(kKey, norms));
  }
  REQUIRE_FALSE(cache.store(kKey, some_norms()));
  std::vector<RowNorm> norms(4);
  CHECK(cache.load(kKey, norms));
}

TEST_CASE("what lies behind a link is no cache") {
  const TemporaryFolder folder;
  const fs::path real = folder.path() / "real", link = folder.path() / "link";
  REQUIRE_FALSE(LseCache({real}).store(kKey, some_norms()));
  const std::string name = "lse-" + kKey + ".bin";
  std::vector<RowNorm> norms(4);
  fs::create_directory_symlink(real, link);
  CHECK_FALSE(LseCache({link}).load(kKey, norms));
  const auto problem = LseCache({link}).store(kKey, some_norms());
  REQUIRE(problem);
  CHECK(contains(*problem, link.string() + ": is a link"));
  const fs::path other = folder.path() / "other";
  fs::create_directory(other);
  fs::create_symlink(real / name, other / name);
  CHECK_FALSE(LseCache({other}).load(kKey, norms));
  CHECK(LseCache({real}).load(kKey, norms));
}

TEST_CASE("another user's file is no cache") {
  if (geteuid() != 0) return skip_test("files can be given away by root only");
  const TemporaryFolder folder;
  const fs::path file = folder.path() / ("lse-" + kKey + ".bin");
  LseCache cache({folder.path()});
  REQUIRE_FALSE(cache.store(kKey, some_norms()));
  std::vector<RowNorm> norms(4);
  REQUIRE(cache.load(kKey, norms));
  REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
  CHECK_FALSE(cache.load(kKey, norms));
}

TEST_CASE("norms of a file that was changed meanwhile are not kept") {
  const TemporaryFolder folder;
  const fs::path source = folder.path() / "q.bin";
  write_bytes(source, "as it was");
  fs::last_write_time(source, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto sources = std::make_shared<InputSet>();
  const auto file = sources->open(source);
  sources->begin_use();
  std::vector<std::byte> bytes(4);
  file->read_at(0, bytes);
  LseCache cache({folder.path() / "kept"}, sources);
  std::vector<RowNorm> norms = some_norms();
  REQUIRE_FALSE(cache.store(kKey, norms));
  REQUIRE(cache.load(kKey, norms));
  write_bytes(source, "otherwise");
  const std::string other = "f" + kKey.substr(1);
  CHECK(refused([&] { cache.store(other, norms); }, ErrorCode::file,
                {source.string() + ": was changed while it was read"}) == "");
  CHECK_FALSE(cache.load(other, norms));
}

TEST_CASE("the first folder that can be written takes the norms, all are looked through") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const fs::path bad = folder.path() / "file", good = folder.path() / "good";
  LseCache cache({bad, good});
  REQUIRE_FALSE(cache.store(kKey, some_norms()));
  std::vector<RowNorm> norms(4);
  CHECK(LseCache({good}).load(kKey, norms));
  CHECK(LseCache({folder.path() / "empty", good}).load(kKey, norms));
  LseCache nowhere({bad});
  const auto problem = nowhere.store(kKey, some_norms());
  REQUIRE(problem);
  CHECK(contains(*problem, bad.string()));
  // It is said once.
  CHECK_FALSE(nowhere.store(kKey, some_norms()));
  LseCache none({});
  CHECK_FALSE(none.enabled());
  CHECK_FALSE(none.store(kKey, some_norms()));
  CHECK_FALSE(none.load(kKey, norms));
}
