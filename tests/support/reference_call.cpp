#include "tests/support/reference_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "io/files/json_types.h"

namespace attnscope::test {
namespace {

std::vector<float> random_values(int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(static_cast<int64_t>(random() >> 40)) * 0x1p-22f - 2.0f;
  }
  return values;
}

}  // namespace

ReferenceCall::ReferenceCall(const Shape& shape, uint64_t seed, bool with_v) : shape_(shape) {
  std::mt19937_64 random(seed);
  const auto& s = shape_;
  q_ = random_values(s.batch * s.heads * s.queries * s.width, random);
  k_ = random_values(s.batch * s.kv_heads * s.keys * s.width, random);
  v_ = random_values(s.batch * s.kv_heads * s.keys * s.width, random);
  file_.tensor("q", "F32", {s.batch, s.heads, s.queries, s.width}, raw(q_));
  file_.tensor("k", "F32", {s.batch, s.kv_heads, s.keys, s.width}, raw(k_));
  if (with_v) file_.tensor("v", "F32", {s.batch, s.kv_heads, s.keys, s.width}, raw(v_));
}

ReferenceCall& ReferenceCall::fact(const std::string& name, const std::string& value) {
  file_.fact(name, value);
  if (name == "mask" && value == "causal") {
    allowed_ = [](int64_t query, int64_t key) { return key <= query; };
  }
  return *this;
}

ReferenceCall& ReferenceCall::allowed(std::function<bool(int64_t, int64_t)> allowed) {
  allowed_ = std::move(allowed);
  return *this;
}

ReferenceCall& ReferenceCall::tensor(const std::string& name, const std::string& dtype,
                                     std::vector<int64_t> shape, const std::string& data) {
  file_.tensor(name, dtype, std::move(shape), data);
  return *this;
}

void ReferenceCall::write_packed(const std::filesystem::path& folder) const {
  const auto write = [&](const char* name, const std::vector<float>& values, int64_t heads,
                         int64_t tokens) {
    std::vector<float> packed;
    for (int64_t token = 0; token < tokens; ++token) {
      for (int64_t head = 0; head < heads; ++head) {
        const float* row = values.data() + (head * tokens + token) * shape_.width;
        packed.insert(packed.end(), row, row + shape_.width);
      }
    }
    const std::string shape =
        std::to_string(tokens) + ", " + std::to_string(heads) + ", " + std::to_string(shape_.width);
    write_bytes(folder / name,
                npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }\n",
                          raw(packed)));
  };
  write("q.npy", q_, shape_.heads, shape_.queries);
  write("k.npy", k_, shape_.kv_heads, shape_.keys);
}

std::vector<double> ReferenceCall::row(int64_t batch, int64_t head, int64_t query,
                                       const std::function<bool(int64_t)>& domain) const {
  const auto& s = shape_;
  const float* q = q_.data() + ((batch * s.heads + head) * s.queries + query) * s.width;
  const float* k = k_.data() + (batch * s.kv_heads + kv_head(head)) * s.keys * s.width;
  std::vector<double> weights(static_cast<size_t>(s.keys), 0.0);
  double sum = 0;
  for (int64_t j = 0; j < s.keys; ++j) {
    if ((allowed_ && !allowed_(query, j)) || (domain && !domain(j))) continue;
    double dot = 0;
    for (int64_t c = 0; c < s.width; ++c) dot += static_cast<double>(q[c]) * k[j * s.width + c];
    weights[static_cast<size_t>(j)] = std::exp(dot / std::sqrt(static_cast<double>(s.width)));
    sum += weights[static_cast<size_t>(j)];
  }
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 0;
  return weights;
}

std::vector<double> ReferenceCall::output(int64_t batch, int64_t head, int64_t query) const {
  const auto& s = shape_;
  const float* v = v_.data() + (batch * s.kv_heads + kv_head(head)) * s.keys * s.width;
  const std::vector<double> weights = row(batch, head, query);
  std::vector<double> output(static_cast<size_t>(s.width));
  for (int64_t j = 0; j < s.keys; ++j) {
    for (int64_t c = 0; c < s.width; ++c) {
      output[static_cast<size_t>(c)] +=
          weights[static_cast<size_t>(j)] * static_cast<double>(v[j * s.width + c]);
    }
  }
  return output;
}

double ReferenceCall::value_norm(int64_t batch, int64_t head, int64_t key) const {
  const auto& s = shape_;
  const float* v = v_.data() + ((batch * s.kv_heads + kv_head(head)) * s.keys + key) * s.width;
  double sum = 0;
  for (int64_t c = 0; c < s.width; ++c) sum += static_cast<double>(v[c]) * v[c];
  return std::sqrt(sum);
}

NpyArray read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t open = bytes.find("'shape': (");
  const size_t close = bytes.find(')', open);
  const size_t data = bytes.find('\n') + 1;
  if (open == std::string::npos || close == std::string::npos || data == 0) {
    throw std::runtime_error(path.string() + " is no .npy");
  }
  NpyArray array;
  std::string list = bytes.substr(open + 10, close - open - 10);
  list = list.substr(0, list.find_last_not_of(", ") + 1);
  array.shape = Json::parse("[" + list + "]").get<std::vector<int64_t>>();
  array.values.resize((bytes.size() - data) / sizeof(float));
  std::memcpy(array.values.data(), bytes.data() + data, array.values.size() * sizeof(float));
  return array;
}

double worst_error(const std::vector<float>& a, const std::vector<double>& b, double floor) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]) / (std::abs(b[i]) + floor);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace attnscope::test
