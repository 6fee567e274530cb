#include <algorithm>

#include "io/capture/capture.h"
#include "io/capture/named_tensors.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return contains(line, part); });
}

/// A tensor [1, 2, 6, 4] whose elements all are `value`.
void add(CallFile& file, const std::string& name, float value,
         const std::vector<int64_t>& shape = {1, 2, 6, 4}) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  file.tensor(name, "F32", shape, raw(std::vector<float>(static_cast<size_t>(count), value)));
}

float value_of(const HeadTensor& tensor, int64_t head = 0) {
  std::vector<float> row(static_cast<size_t>(tensor.width()));
  tensor.read_rows(0, head, {2, 3}, reinterpret_cast<std::byte*>(row.data()));
  return row.back();
}

/// The pattern by which the tensors of a file of these names are told; empty: by none.
std::string pattern_of(const std::vector<std::string>& names) {
  const TemporaryFolder folder;
  CallFile file;
  file.version(0);
  for (const std::string& name : names) add(file, name, 1);
  file.write(folder / "x.safetensors");
  try {
    const auto named = Capture::open(folder / "x.safetensors").named_folder();
    return named ? named->pattern : "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("several calls in one file are told by the names of their tensors") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "all.safetensors";
  CallFile file;
  file.version(0).fact("prompt", "a dog").fact("blocks.2.attn.timestep", "500");
  for (const int layer : {2, 11}) {
    const std::string block = "blocks." + std::to_string(layer) + ".attn.";
    add(file, block + "q", static_cast<float>(layer));
    add(file, block + "k", static_cast<float>(-layer));
    add(file, block + "out_proj", 0);
  }
  file.tensor("blocks.11.attn.scale", "F32", {}, raw<float>({0.25f}));
  file.tensor("blocks.11.attn.mask", "BOOL", {6, 6}, std::string(36, '\1'));
  file.tensor("freqs", "F32", {2});
  file.write(path);
  const Capture capture = Capture::open(path);
  REQUIRE(capture.calls().size() == 2);
  for (const CallEntry& call : capture.calls()) {
    const bool last = call.id.layer == 11;
    INFO(call.id.layer);
    CHECK(call.file == path);
    CHECK(value_of(call.problem->q()) == static_cast<float>(call.id.layer));
    CHECK(value_of(call.problem->k()) == static_cast<float>(-call.id.layer));
    CHECK(call.prompt == "a dog");
    CHECK(call.problem->scale(0) == (last ? 0.25 : 0.5));
    CHECK((call.mask != nullptr) == last);
    CHECK(call.timestep == (last ? std::nullopt : std::optional(500.0)));
    CHECK(call.facts.at("layer").origin == "from the tensor's name");
    CHECK(call.unknown_keys == std::vector<std::string>{"tensor out_proj"});
  }
  CHECK(
      any_contains(capture.notes(), "tensors told by their names, as blocks.{layer}.attn.{q|k|v}"));
  CHECK(any_contains(capture.notes(), "left out: 1 tensor: freqs"));
  const auto& named = capture.named_folder();
  REQUIRE(named);
  CHECK(named->of_tensors);
  CHECK(named->layers == std::vector<int64_t>{2, 11});
  CHECK(named->files == 4);
  // Stamps differ, so that results kept of one call are never taken for the other's.
  const std::vector<std::string> stamps = capture.call_stamps();
  CHECK(stamps[0] != stamps[1]);

  FactOverrides overrides;
  for (const char* pattern : {"blocks.{layer}.attn", "{name}.{layer}.attn.{q|k}"}) {
    overrides.pattern = pattern;
    const Capture told = Capture::open(path, overrides);
    REQUIRE(told.calls().size() == 2);
    CHECK(told.named_folder()->pattern_given);
    CHECK(value_of(told.calls()[1].problem->k()) == -11);
    CHECK(told.calls()[1].problem->scale(0) == 0.25);
  }
  overrides.pattern = "blocks.{layer}.self.{q|k}";
  CHECK(contains(
      thrown_text(ErrorCode::file, [&] { Capture::open(path, overrides); }),
      "no tensor has a name like --pattern blocks.{layer}.self.{q|k} (it has 9 tensors: "));
}

TEST_CASE("names of tensors and the patterns that they make") {
  const auto layers = [](const std::string& before, const std::string& after = "") {
    std::vector<std::string> names;
    for (const char* layer : {"0", "1", "12"}) {
      for (const char* role : {"q", "k"}) {
        std::string name = before + after;
        name.replace(name.find('#'), 1, layer);
        name.replace(name.find('*'), 1, role);
        names.push_back(name);
      }
    }
    return names;
  };
  CHECK(pattern_of(layers("layer_#.*")) == "layer_{layer}.{q|k|v}");
  CHECK(pattern_of(layers("layer#/*")) == "layer{layer}/{q|k|v}");
  CHECK(pattern_of(layers("transformer_blocks.#.attn1.*")) ==
        "transformer_blocks.{layer}.attn1.{q|k|v}");
  CHECK(pattern_of(layers("#.*")) == "{layer}.{q|k|v}");
  CHECK(pattern_of(layers("*.#")) == "{q|k|v}.{layer}");
  CHECK(pattern_of(layers("*_#")) == "{q|k|v}_{layer}");
  CHECK(pattern_of(layers("*#")) == "{q|k|v}{layer}");
  CHECK(pattern_of(layers("layer#_*")) == "layer{layer}_{q|k|v}");
  CHECK(pattern_of(layers("my_attn_It5_L#_*")) == "my_attn_It{step}_L{layer}_{q|k|v}");
  CHECK(pattern_of(layers("h.#.attn.*")) == "h.{layer}.attn.{q|k|v}");
  CHECK(pattern_of(layers("L#.*_states")) == "L{layer}.{q|k|v}_states");
  CHECK(pattern_of({"a.0.qkv_no.q", "a.0.k", "a.1.q"}).find("which tensor") != std::string::npos);
  // Weights are nobody's q and k, and which of two numbers is the layer is not told.
  for (const std::string shape : {"blocks.#.attn.to_*.weight", "blocks.#.*.weight",
                                  "blocks.#.attn.to_*", "blocks.#.*_norm", "5.#.*"}) {
    INFO(shape);
    CHECK(contains(pattern_of(layers(shape)), "which tensor is q?"));
  }
}

TEST_CASE("of several patterns the one with the most calls is taken, and the others are told") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "all.safetensors";
  CallFile file;
  file.version(0);
  for (const char* block : {"double.0.", "single.0.", "single.1."}) {
    add(file, block + std::string("q"), 1);
    add(file, block + std::string("k"), 1);
  }
  file.write(path);
  const Capture capture = Capture::open(path);
  CHECK(capture.calls().size() == 2);
  CHECK(any_contains(capture.notes(), "left out: 2 tensors: double.0.q, double.0.k"));
}

TEST_CASE("heads that are tensors of their own, fused ones, and a mask for all") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "all.safetensors";
  {
    CallFile file;
    file.version(0);
    for (const char* head : {"0", "1"}) {
      for (const char* layer : {"3", "4"}) {
        const std::string stem = std::string("layer") + layer + "_head" + head + "_";
        add(file, stem + "q", static_cast<float>(10 * (layer[0] - '0') + head[0] - '0'), {6, 4});
        add(file, stem + "k", 1, {6, 4});
      }
    }
    file.write(path);
    const Capture capture = Capture::open(path);
    REQUIRE(capture.calls().size() == 2);
    CHECK(capture.calls()[1].problem->num_heads() == 2);
    CHECK(value_of(capture.calls()[1].problem->q(), 1) == 41);
    CHECK(capture.calls()[1].facts.at("layout").origin == "one tensor a head");
  }
  CallFile file;
  file.version(0);
  add(file, "blocks.0.qkv", 5, {1, 6, 3, 2, 4});
  add(file, "blocks.1.qkv", 6, {1, 6, 3, 2, 4});
  file.tensor("mask", "BOOL", {6, 6}, std::string(36, '\1'));
  file.tensor("blocks.1.attn_mask", "BOOL", {1, 6}, std::string(6, '\1'));
  file.write(path);
  const Capture capture = Capture::open(path);
  REQUIRE(capture.calls().size() == 2);
  CHECK(value_of(capture.calls()[1].problem->k(), 1) == 6);
  for (const auto& [call, name] : {std::pair(0, "tensor mask"), {1, "tensor blocks.1.attn_mask"}}) {
    REQUIRE(capture.calls()[static_cast<size_t>(call)].mask != nullptr);
    CHECK(contains(capture.calls()[static_cast<size_t>(call)].mask->name(), name));
  }
  CHECK(capture.named_folder()->pattern == "blocks.{layer}");

  // Two tensors with one place.
  CallFile twice;
  twice.version(0);
  for (const char* name : {"layer_0.q", "layer_0.k", "layer_00.q", "layer_00.k"})
    add(twice, name, 1);
  twice.write(path);
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "is the same tensor as layer_0.k by the pattern layer_{layer}.{q|k|v}"));
}
