#include "io/capture/synthetic_capture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/exact_math.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"

namespace attnscope {
namespace {

using Tensor = SyntheticHead::Tensor;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr int64_t kBlockRows = 256;

std::vector<Tensor> tensors_of(const SyntheticCapture& c) {
  std::vector<Tensor> tensors{Tensor::q, Tensor::k};
  if (c.values) tensors.push_back(Tensor::v);
  return tensors;
}

std::string call_name(int64_t step, int64_t layer) {
  const auto padded = [](int64_t number, size_t digits) {
    const std::string text = std::to_string(number);
    return std::string(digits - std::min(digits, text.size()), '0') + text;
  };
  return "step" + padded(step, 4) + "_layer" + padded(layer, 3) + ".safetensors";
}

/// The tensor's bytes in one call; nothing where they do not fit int64_t.
std::optional<int64_t> tensor_bytes(const SyntheticCapture& c) {
  const int64_t extents[] = {static_cast<int64_t>(c.kinds.size()), c.tokens.tokens(), c.head_dim,
                             dtype_bytes(c.dtype)};
  return checked_count(extents);
}

OrderedJson extra_of(const SyntheticCapture& c) {
  OrderedJson kinds = OrderedJson::array();
  for (const HeadKind kind : c.kinds) kinds.push_back(head_kind_name(kind));
  return {{"synthetic", {{"generator", 1}, {"seed", c.seed}, {"head_kinds", kinds}}}};
}

std::vector<std::string> token_strings(const TokenGrid& tokens) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < tokens.text_range().size(); ++i) {
    words.push_back("word" + std::to_string(i));
  }
  return words;
}

OrderedJson metadata_of(const SyntheticCapture& c, int64_t step, int64_t layer) {
  OrderedJson facts{{"format", kCaptureFormat},
                    {"model", c.model},
                    {"step", std::to_string(step)},
                    {"layer", std::to_string(layer)},
                    {"branches", OrderedJson(std::vector<std::string>{"synthetic"}).dump()},
                    {"kind", c.tokens.text_range().empty() ? "self" : "joint"},
                    {"layout", "bhsd"},
                    {"q_state", "final"},
                    {"grid", c.tokens.grid_text()},
                    {"text", c.tokens.text_text()}};
  if (!c.tokens.text_range().empty()) facts["tokens"] = OrderedJson(token_strings(c.tokens)).dump();
  facts["extra"] = extra_of(c).dump();
  return facts;
}

/// Length, JSON and padding to 8 bytes: everything before the tensors.
std::string safetensors_header(const SyntheticCapture& c, int64_t step, int64_t layer) {
  constexpr std::string_view kNames[] = {"q", "k", "v"};
  OrderedJson header{{"__metadata__", metadata_of(c, step, layer)}};
  const int64_t bytes = *tensor_bytes(c);
  int64_t begin = 0;
  for (const Tensor tensor : tensors_of(c)) {
    header[std::string(kNames[static_cast<size_t>(tensor)])] = {
        {"dtype", c.dtype == DType::bf16  ? "BF16"
                  : c.dtype == DType::f16 ? "F16"
                                          : "F32"},
        {"shape", {1, c.kinds.size(), c.tokens.tokens(), c.head_dim}},
        {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const auto length = std::bit_cast<std::array<char, 8>>(static_cast<uint64_t>(json.size()));
  return std::string(length.data(), length.size()) + json;
}

void store(DType dtype, const float* values, int64_t count, std::byte* out) {
  if (dtype == DType::f32) {
    std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = dtype == DType::bf16 ? to_bf16(values[i]).bits : to_f16(values[i]).bits;
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

/// The key of the random values of one head's tensor: they depend on nothing else.
uint64_t stream_of(uint64_t seed, int64_t step, int64_t layer, size_t head, Tensor tensor) {
  uint64_t key = random_bits(seed, 0);
  for (const auto part : {static_cast<uint64_t>(step), static_cast<uint64_t>(layer),
                          static_cast<uint64_t>(head), static_cast<uint64_t>(tensor)}) {
    key = random_bits(key, part);
  }
  return key;
}

/// Writes calls one after another with one pair of buffers.
class CallWriter {
 public:
  CallWriter(const SyntheticCapture& capture, const SyntheticWriteControl& control)
      : capture_(capture),
        control_(control),
        values_(static_cast<size_t>(kBlockRows * capture.head_dim)),
        bytes_(values_.size() * static_cast<size_t>(dtype_bytes(capture.dtype))) {}

  void write(const fs::path& path, bool force, int64_t step, int64_t layer) {
    StagedFile file(path, force);
    const std::string header = safetensors_header(capture_, step, layer);
    file.append(std::as_bytes(std::span(header)));
    for (const Tensor tensor : tensors_of(capture_)) {
      for (size_t head = 0; head < capture_.kinds.size(); ++head) {
        write_head(file, tensor, capture_.kinds[head],
                   stream_of(capture_.seed, step, layer, head, tensor));
      }
    }
    file.commit();
  }

 private:
  void write_head(StagedFile& file, Tensor tensor, HeadKind kind, uint64_t stream) {
    const SyntheticHead head(kind, capture_.tokens, capture_.head_dim);
    const int64_t d = capture_.head_dim;
    const int64_t tokens = capture_.tokens.tokens();
    for (int64_t row = 0; row < tokens; row += kBlockRows) {
      if (control_.stop.stop_requested()) {
        throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
      }
      const int64_t rows = std::min(kBlockRows, tokens - row);
      for (int64_t i = 0; i < rows; ++i) {
        head.write_row(tensor, stream, row + i, values_.data() + i * d);
      }
      store(capture_.dtype, values_.data(), rows * d, bytes_.data());
      const auto size = static_cast<size_t>(rows * d * dtype_bytes(capture_.dtype));
      file.append(std::span(bytes_).first(size));
      written_ += static_cast<int64_t>(size);
      if (control_.progress) control_.progress(written_);
    }
  }

  const SyntheticCapture& capture_;
  const SyntheticWriteControl& control_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
  int64_t written_ = 0;
};

void write_list(const SyntheticCapture& c, const OrderedJson& calls, const fs::path& path) {
  const OrderedJson json{
      {"format", kCaptureFormat}, {"model", c.model}, {"extra", extra_of(c)}, {"calls", calls}};
  const std::string text = json.dump(2) + "\n";
  StagedFile file(path, false);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

void write_folder(const SyntheticCapture& c, const fs::path& out,
                  const SyntheticWriteControl& control) {
  CaptureFolder folder(out, control.force);
  CallWriter writer(c, control);
  OrderedJson calls = OrderedJson::array();
  for (int64_t step = 0; step < c.steps; ++step) {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      const std::string name = call_name(step, layer);
      writer.write(folder.part_path() / name, false, step, layer);
      calls.push_back({{"file", name}, {"step", step}, {"layer", layer}});
    }
  }
  write_list(c, calls, folder.part_path() / "capture.json");
  folder.commit();
}

}  // namespace

int64_t check_synthetic_capture(const SyntheticCapture& c, const fs::path& out) {
  if (is_single_capture_file(out) && c.calls() != 1) {
    throw usage_error("-o " + out.string() + ": a .safetensors file holds one call, and " +
                      std::to_string(c.calls()) +
                      " are asked for (--steps, --layers): give the name of a folder");
  }
  std::vector<HeadKind> checked;
  for (const HeadKind kind : c.kinds) {
    if (std::find(checked.begin(), checked.end(), kind) != checked.end()) continue;
    static_cast<void>(SyntheticHead(kind, c.tokens, c.head_dim));
    checked.push_back(kind);
  }
  std::optional<int64_t> bytes = tensor_bytes(c);
  for (const int64_t factor : {c.values ? int64_t{3} : int64_t{2}, c.layers, c.steps}) {
    if (bytes) bytes = checked_mul(*bytes, factor);
  }
  if (!bytes) throw usage_error("the capture would take more than 2^63 bytes");
  return *bytes;
}

void write_synthetic_capture(const SyntheticCapture& c, const fs::path& out,
                             const SyntheticWriteControl& control) {
  const int64_t bytes = check_synthetic_capture(c, out);
  check_capture_target(out, {.force = control.force, .bytes = bytes});
  if (!is_single_capture_file(out)) return write_folder(c, out, control);
  CallWriter(c, control).write(out, control.force, 0, 0);
}

}  // namespace attnscope
