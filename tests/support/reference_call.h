#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/call_file.h"

namespace attnscope::test {

/// One attention call of random float32 Q, K and V, and its maps computed here by plain loops in
/// double.
class ReferenceCall {
 public:
  struct Shape {
    int64_t batch = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0, width = 8;
  };
  /// `seed` chooses the values, which lie within ±2; v is left out of the file where `with_v` is
  /// not set.
  ReferenceCall(const Shape& shape, uint64_t seed, bool with_v = true);

  /// A fact for the file, and for causal calls the map's mask.
  ReferenceCall& fact(const std::string& name, const std::string& value);
  /// Which (query, key) may be attended to; everything by default.
  ReferenceCall& allowed(std::function<bool(int64_t, int64_t)> allowed);
  ReferenceCall& tensor(const std::string& name, const std::string& dtype,
                        std::vector<int64_t> shape, const std::string& data);
  /// The file's version of the format.
  ReferenceCall& version(int version) {
    file_.version(version);
    return *this;
  }
  void write(const std::filesystem::path& path) const { file_.write(path); }
  /// q.npy and k.npy of the first batch item, [tokens, heads, width], as flash-attention's
  /// variable-length functions take them.
  void write_packed(const std::filesystem::path& folder) const;

  /// The weights of a row over the keys of `domain` (all keys where it is empty): [keys], others 0;
  /// zeros where the mask leaves none.
  std::vector<double> row(int64_t batch, int64_t head, int64_t query,
                          const std::function<bool(int64_t)>& domain = {}) const;
  /// L2 norm of a row of V.
  double value_norm(int64_t batch, int64_t head, int64_t key) const;
  const Shape& shape() const { return shape_; }

 private:
  int64_t kv_head(int64_t head) const { return head / (shape_.heads / shape_.kv_heads); }
  Shape shape_;
  std::vector<float> q_, k_, v_;
  std::function<bool(int64_t, int64_t)> allowed_;
  CallFile file_;
};

/// The float32 values of a .npy file, and its shape.
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
NpyArray read_npy(const std::filesystem::path& path);

/// The largest |a − b| / (|b| + floor); infinity where the sizes differ or `a` has a NaN.
double worst_error(const std::vector<float>& a, const std::vector<double>& b, double floor);

}  // namespace attnscope::test
