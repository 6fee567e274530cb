#include "core/products/pooled_map.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("a pool is read back from its name, and picks its values") {
  // The words of options, scripts and session files.
  CHECK(pool_names() == std::vector<std::string>{"max", "mean"});
  for (const std::string& name : pool_names()) CHECK(pool_name(*parse_pool(name)) == name);
  CHECK(parse_pool("mean") == Pool::mean);
  CHECK_FALSE(parse_pool("Max"));
  CHECK_FALSE(parse_pool(""));
  PooledMap map;
  map.max = {3};
  map.mean = {2};
  CHECK(map.values(Pool::max) == map.max);
  CHECK(map.values(Pool::mean) == map.mean);
}
