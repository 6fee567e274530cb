#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/read/export_verify.h"
#include "io/files/checksum.h"
#include "io/hdf5/hdf5_handle.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const ExportWriteOptions kQuick{.force = false, .sync = false};

/// Exports and returns the sink's own count of bytes.
int64_t write_export(const ExportSpec& spec, const std::string& out, const FedValues& values,
                     const FeedOrder& order = {}) {
  const auto sink = make_export(spec, out, kQuick);
  feed(*sink, values, order);
  return sink->bytes_written();
}

/// Counts entries of a group's dataset that are not what was fed; `first_task` is the group's.
int64_t count_wrong(const std::string& file, const std::string& path, const ExportSpec& spec,
                    const FedValues& values, int64_t first_task = 0) {
  const DatasetValues data = read_dataset(file, path);
  REQUIRE(data.shape.size() == 4);
  const TileRequest request = make_export_layout(spec).request;
  int64_t wrong = 0;
  size_t at = 0;
  for (int64_t head = 0; head < data.shape[0] * data.shape[1]; ++head) {
    for (int64_t r = 0; r < data.shape[2]; ++r) {
      for (int64_t c = 0; c < data.shape[3]; ++c, ++at) {
        const int64_t task = first_task + head;
        const bool empty = values.is_empty(task, r / request.chunk_rows, c / request.chunk_cols);
        const double expected = empty ? 0 : decoded(values.entry(task, r, c), spec.encoding);
        wrong += data.values[at] != expected;
      }
    }
  }
  return wrong;
}

struct OpenDataset {
  OpenDataset(const std::string& file, const std::string& path)
      : file_(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file, "open"),
        dataset_(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), file, path) {}
  hid_t id() const { return dataset_.id(); }
  hid_t file() const { return file_.id(); }

  Hdf5File file_;
  Hdf5Dataset dataset_;
};

std::string text_attribute(hid_t object, const std::string& name) {
  const Hdf5Attribute attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "", name);
  const Hdf5Type type(H5Aget_type(attribute.id()), "", name);
  char* text = nullptr;
  REQUIRE(H5Aread(attribute.id(), type.id(), &text) >= 0);
  const std::string result = text;
  H5free_memory(text);
  return result;
}

double number_attribute(hid_t object, const std::string& name) {
  const Hdf5Attribute attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "", name);
  double value = 0;
  REQUIRE(H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) >= 0);
  return value;
}

const std::string kJoint = "/calls/step0010_layer003_cond_joint/";

}  // namespace

TEST_CASE("every product and dtype gives back what was fed") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  struct Case {
    ExportProduct product;
    Encoding encoding;
    std::string dataset;
  };
  for (const Case& c : {Case{ExportProduct::weights, Encoding::f16_scaled, "weights"},
                        Case{ExportProduct::weights, Encoding::f32, "weights"},
                        Case{ExportProduct::weights, Encoding::u8_log2, "weights"},
                        Case{ExportProduct::logits, Encoding::f32, "logits"},
                        Case{ExportProduct::logits, Encoding::f16, "logits"}}) {
    INFO(c.dataset << " encoding " << static_cast<int>(c.encoding));
    const std::string out =
        folder / (c.dataset + std::to_string(static_cast<int>(c.encoding)) + ".h5");
    const ExportSpec spec = make_spec(calls, c.product, c.encoding);
    FedValues values;
    values.logits = c.product == ExportProduct::logits;
    const int64_t bytes = write_export(spec, out, values);
    CHECK(count_wrong(out, kJoint + c.dataset, spec, values) == 0);
    CHECK(read_dataset(out, "/complete").values == std::vector<double>{1});
    const auto members = group_members(out, kJoint);
    const bool has_lse = std::count(members.begin(), members.end(), "lse") == 1;
    CHECK(has_lse == (c.product == ExportProduct::weights));
    CHECK(bytes >= 2 * 700 * 700 * encoding_bytes(c.encoding));
    CHECK(bytes <= static_cast<int64_t>(std::filesystem::file_size(out)));
  }
}

TEST_CASE("LSEs stand beside the weights, with minus infinity for masked rows") {
  const TemporaryFolder folder;
  const std::string out = folder / "lse.h5";
  const std::vector calls{make_call(joint_facts())};
  const FedValues values;
  for (ExportProduct product : {ExportProduct::weights, ExportProduct::lse}) {
    std::filesystem::remove(out);
    write_export(make_spec(calls, product,
                           product == ExportProduct::lse ? Encoding::f32 : Encoding::f16_scaled),
                 out, values, {.seed = 3, .threads = 2});
    const DatasetValues lse = read_dataset(out, kJoint + "lse");
    REQUIRE(lse.shape == std::vector<int64_t>{1, 2, 700});
    const DatasetValues sums = read_dataset(out, kJoint + "checksums/lse");
    REQUIRE(sums.shape == std::vector<int64_t>{1, 2});
    int64_t wrong = 0;
    int64_t masked = 0;
    for (int64_t head = 0; head < 2; ++head) {
      std::vector<float> expected;
      for (int64_t r = 0; r < 700; ++r) {
        expected.push_back(static_cast<float>(values.norm(head, r).lse()));
        wrong += lse.values[static_cast<size_t>(head * 700 + r)] != expected.back();
        masked += std::isinf(expected.back());
      }
      CHECK(sums.values[static_cast<size_t>(head)] == checksum(std::as_bytes(std::span(expected))));
    }
    CHECK(wrong == 0);
    CHECK(masked > 5);
    const auto members = group_members(out, kJoint);
    CHECK(std::count(members.begin(), members.end(), "weights") ==
          (product == ExportProduct::weights ? 1 : 0));
  }
}

TEST_CASE("outputs have the channels of V as their last axis") {
  const TemporaryFolder folder;
  const std::string out = folder / "output.h5";
  FixtureFacts wide = joint_facts();
  wide.layer = 4;
  wide.value_width = 600;
  const std::vector calls{make_call(joint_facts()), make_call(wide)};
  ExportSpec spec = make_spec(calls, ExportProduct::output, Encoding::f32);
  spec.calls[0].rows = {100, 523};
  const FedValues values;
  write_export(spec, out, values, {.seed = 5, .threads = 2});
  const DatasetValues narrow = read_dataset(out, kJoint + "output");
  REQUIRE(narrow.shape == std::vector<int64_t>{1, 2, 423, 5});
  CHECK(count_wrong(out, kJoint + "output", spec, values) == 0);
  CHECK(read_dataset(out, kJoint + "lse").shape == std::vector<int64_t>{1, 2, 423});
  CHECK(read_dataset(out, kJoint + "dv").values == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(read_dataset(out, kJoint + "key").shape == std::vector<int64_t>{700});
  const std::string group = "/calls/step0010_layer004_cond_joint/";
  REQUIRE(read_dataset(out, group + "output").shape == std::vector<int64_t>{1, 2, 700, 600});
  CHECK(count_wrong(out, group + "output", spec, values, 2) == 0);
  CHECK(verify_export(out, {}, nullptr).good());
}

TEST_CASE("chunks are padded with zeros and each has its checksum") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  FedValues values;
  // The first chunk of a run, one in the middle of tiles, and whole tiles.
  values.is_empty = [](int64_t task, int64_t row, int64_t col) {
    return task == 1 ? row == 1 : col == row;
  };
  write_export(spec, out, values);
  CHECK(count_wrong(out, kJoint + "weights", spec, values) == 0);
  const DatasetValues sums = read_dataset(out, kJoint + "checksums/weights");
  REQUIRE(sums.shape == std::vector<int64_t>{1, 2, 2, 2});
  const OpenDataset weights(out, kJoint + "weights");
  std::vector<float> chunk(384 * 512);
  size_t n = 0;
  for (hsize_t head = 0; head < 2; ++head) {
    for (hsize_t r = 0; r < 2; ++r) {
      for (hsize_t c = 0; c < 2; ++c, ++n) {
        const hsize_t at[] = {0, head, r * 384, c * 512};
        uint32_t filters = 9;
        REQUIRE(H5Dread_chunk(weights.id(), H5P_DEFAULT, at, &filters, chunk.data()) >= 0);
        CHECK(filters == 0);
        CHECK(sums.values[n] == checksum(std::as_bytes(std::span(chunk))));
        const size_t rows = r == 0 ? 384 : 700 - 384;
        const size_t cols = c == 0 ? 512 : 700 - 512;
        int64_t dirty = 0;
        for (size_t i = 0; i < chunk.size(); ++i) {
          dirty += (i / 512 >= rows || i % 512 >= cols) && chunk[i] != 0;
        }
        CHECK(dirty == 0);
      }
    }
  }
  const OpenDataset checksums(out, kJoint + "checksums/weights");
  CHECK(text_attribute(checksums.id(), "algorithm") == kChecksumAlgorithm);
}

TEST_CASE("axes have scales and coordinates, a crop keeps the capture's indices") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls);
  spec.calls[0].rows = {8, 600};
  spec.calls[0].keys = {5, 545};
  spec.calls[0].selected.heads = {1};
  write_export(spec, out, {});
  CHECK(read_dataset(out, kJoint + "head").values == std::vector<double>{1});
  CHECK(read_dataset(out, kJoint + "batch").values == std::vector<double>{0});
  const DatasetValues query = read_dataset(out, kJoint + "query");
  const DatasetValues key = read_dataset(out, kJoint + "key");
  REQUIRE(query.values.size() == 592);
  REQUIRE(key.values.size() == 540);
  CHECK(query.values.front() == 8);
  CHECK(key.values.back() == 544);
  // Token 8 is text; token 10 + 1·230 + 2·23 + 3 is (1, 2, 3).
  for (const std::string axis : {"query", "key"}) {
    const size_t text = axis == "query" ? 0 : 3;
    const size_t video = 10 + 230 + 46 + 3 - (axis == "query" ? 8u : 5u);
    CHECK(read_dataset(out, kJoint + axis + "_t").values[text] == -1);
    CHECK(read_dataset(out, kJoint + axis + "_segment").values[text] == 0);
    CHECK(read_dataset(out, kJoint + axis + "_t").values[video] == 1);
    CHECK(read_dataset(out, kJoint + axis + "_y").values[video] == 2);
    CHECK(read_dataset(out, kJoint + axis + "_x").values[video] == 3);
    CHECK(read_dataset(out, kJoint + axis + "_segment").values[video] == 1);
  }
  const OpenDataset weights(out, kJoint + "weights");
  const OpenDataset lse(out, kJoint + "lse");
  const char* names[] = {"batch", "head", "query", "key"};
  for (unsigned axis = 0; axis < 4; ++axis) {
    const OpenDataset scale(out, kJoint + names[axis]);
    INFO(names[axis]);
    CHECK(H5DSis_scale(scale.id()) > 0);
    CHECK(H5DSget_num_scales(weights.id(), axis) == 1);
    char name[32] = {};
    H5DSget_scale_name(scale.id(), name, sizeof name);
    CHECK(std::string(name) == names[axis]);
  }
  CHECK(H5DSget_num_scales(lse.id(), 2) == 1);
  const Hdf5Dataset scale(H5Dopen2(weights.file(), (kJoint + "key").c_str(), H5P_DEFAULT), out,
                          "key");
  CHECK(H5DSis_attached(weights.id(), scale.id(), 3) > 0);
  CHECK(H5DSis_attached(weights.id(), scale.id(), 2) == 0);
}

TEST_CASE("attributes tell what the file and its maps are") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  FixtureFacts facts = joint_facts();
  facts.mask = Mask::causal();
  const std::vector calls{make_call(facts)};
  write_export(make_spec(calls), out, {});
  const OpenDataset weights(out, kJoint + "weights");
  const Hdf5Group root(H5Gopen2(weights.file(), "/", H5P_DEFAULT), out, "/");
  CHECK(text_attribute(root.id(), "format") == "attnscope-export/1");
  CHECK(text_attribute(root.id(), "product") == "weights");
  CHECK(text_attribute(root.id(), "capture") == "dump");
  CHECK(text_attribute(root.id(), "capture_hash") == "0123456789abcdef");
  CHECK(text_attribute(root.id(), "options") == R"({"product":"weights","dtype":"f16"})");
  CHECK(text_attribute(root.id(), "Conventions").substr(0, 3) == "CF-");
  CHECK_FALSE(text_attribute(root.id(), "attnscope_version").empty());
  const Hdf5Group group(H5Gopen2(weights.file(), kJoint.c_str(), H5P_DEFAULT), out, kJoint);
  CHECK(number_attribute(group.id(), "step") == 10);
  CHECK(number_attribute(group.id(), "timestep") == 750.5);
  CHECK(number_attribute(group.id(), "layer") == 3);
  CHECK(text_attribute(group.id(), "layer_name") == "transformer_blocks.3.attn1");
  CHECK(text_attribute(group.id(), "branch") == "cond");
  CHECK(text_attribute(group.id(), "kind") == "joint");
  CHECK(text_attribute(group.id(), "score") == "softmax");
  CHECK(text_attribute(group.id(), "mask") == "causal");
  CHECK(number_attribute(group.id(), "scale") == 0.5);
  CHECK(number_attribute(group.id(), "head_dim") == 4);
  CHECK(text_attribute(group.id(), "grid") == "3x10x23");
  CHECK(text_attribute(group.id(), "text") == "10@start");
  CHECK(text_attribute(group.id(), "model") == "tiny-cogvideox");
  CHECK(text_attribute(group.id(), "prompt") == "a dog — “fast”");
  CHECK(text_attribute(group.id(), "q_dtype") == "bf16");
  CHECK(text_attribute(group.id(), "backend") == "cpu-avx512");
  CHECK(number_attribute(weights.id(), "scale_factor") == 1.0 / 16384);
  CHECK(text_attribute(weights.id(), "units") == "1");

  const std::string codes = folder / "u8.h5";
  write_export(make_spec(calls, ExportProduct::weights, Encoding::u8_log2), codes, {});
  const OpenDataset u8(codes, kJoint + "weights");
  CHECK(number_attribute(u8.id(), "code_octaves") == 24);
  CHECK(number_attribute(u8.id(), "code_max") == 255);
  CHECK(text_attribute(u8.id(), "code_formula") == kCodeFormula);
  CHECK(H5Aexists(u8.id(), "scale_factor") == 0);
}

TEST_CASE("a group a branch, smaller calls beside larger ones") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  FixtureFacts joint = joint_facts();
  joint.branches = {"un/cond", "cond", "cond"};
  joint.queries.set_text_valid({10, 6, 8});
  joint.keys = joint.queries;
  joint.tokens.resize(3, {"only", "two"});
  FixtureFacts cross = joint_facts();
  cross.kind = CallKind::cross;
  cross.keys = TokenGrid::text_only(20);
  cross.queries = TokenGrid::video(60, {3, 4, 5}, 0, TextPlace::none);
  const std::vector calls{make_call(joint), make_call(cross)};
  const ExportSpec spec = make_spec(calls);
  const FedValues values;
  write_export(spec, out, values, {.seed = 5, .threads = 3});

  const std::string first = "/calls/step0010_layer003_un_cond_joint/";
  const std::string small = "/calls/step0010_layer003_cond_cross/";
  CHECK(group_members(out, "/calls").size() == 3);
  CHECK(read_dataset(out, first + "batch").values == std::vector<double>{0});
  CHECK(read_dataset(out, kJoint + "batch").values == std::vector<double>{1, 2});
  CHECK(count_wrong(out, first + "weights", spec, values, 0) == 0);
  CHECK(count_wrong(out, kJoint + "weights", spec, values, 2) == 0);
  CHECK(count_wrong(out, small + "weights", spec, values, 6) == 0);
  CHECK(read_dataset(out, small + "checksums/weights").shape == std::vector<int64_t>{1, 2, 1, 1});
  const OpenDataset weights(out, first + "weights");
  const Hdf5Group group(H5Gopen2(weights.file(), first.c_str(), H5P_DEFAULT), out, first);
  CHECK(text_attribute(group.id(), "branch") == "un/cond");
  // Items with different padding have a segment list each.
  CHECK(read_dataset(out, first + "key_segment").shape == std::vector<int64_t>{700});
  const DatasetValues segments = read_dataset(out, kJoint + "key_segment");
  REQUIRE(segments.shape == std::vector<int64_t>{2, 700});
  CHECK(segments.values[6] == 2);
  CHECK(segments.values[700 + 6] == 0);
  CHECK(segments.values[700 + 8] == 2);
  CHECK(segments.values[700 + 10] == 1);
}

TEST_CASE("chosen rows") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls, ExportProduct::rows, Encoding::f16_scaled);
  spec.calls[0].row_list = {3, 17, 699};
  spec.calls[0].rows = {};
  const FedValues values;
  write_export(spec, out, values);
  CHECK(read_dataset(out, kJoint + "query").values == std::vector<double>{3, 17, 699});
  CHECK(read_dataset(out, kJoint + "query_t").values == std::vector<double>{-1, 0, 2});
  CHECK(read_dataset(out, kJoint + "weights").shape == std::vector<int64_t>{1, 2, 3, 700});
  CHECK(count_wrong(out, kJoint + "weights", spec, values) == 0);
  CHECK(read_dataset(out, kJoint + "lse").shape == std::vector<int64_t>{1, 2, 3});
}

TEST_CASE("sigmoid weights have no LSE") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  FixtureFacts facts = joint_facts();
  facts.score = ScoreFunction::sigmoid;
  const std::vector calls{make_call(facts)};
  const FedValues values;
  write_export(make_spec(calls), out, values);
  const auto members = group_members(out, kJoint);
  CHECK(std::count(members.begin(), members.end(), "weights") == 1);
  CHECK(std::count(members.begin(), members.end(), "lse") == 0);
  CHECK(group_members(out, kJoint + "checksums") == std::vector<std::string>{"weights"});
}

TEST_CASE("the same maps give the same bytes in whatever order they come") {
  const TemporaryFolder folder;
  FixtureFacts cross = joint_facts();
  cross.kind = CallKind::cross;
  cross.keys = TokenGrid::text_only(20);
  const std::vector calls{make_call(joint_facts()), make_call(cross)};
  const ExportSpec spec = make_spec(calls);
  FedValues values;
  values.is_empty = [](int64_t task, int64_t row, int64_t col) { return task == row + col; };
  write_export(spec, folder / "a.h5", values);
  const std::string bytes = read_bytes(folder / "a.h5");
  write_export(spec, folder / "another-name.h5", values,
               {.seed = 11, .threads = 3, .segment_chunks = 1});
  CHECK(read_bytes(folder / "another-name.h5") == bytes);
  const auto synced = make_export(spec, folder / "c.h5", {.force = false, .sync = true});
  feed(*synced, values, {.seed = 12, .threads = 2, .segment_chunks = 7});
  CHECK(read_bytes(folder / "c.h5") == bytes);
}

TEST_CASE("sizes are known before") {
  const TemporaryFolder folder;
  FixtureFacts cross = joint_facts();
  cross.kind = CallKind::cross;
  cross.keys = TokenGrid::text_only(20);
  const std::vector calls{make_call(joint_facts()), make_call(cross)};
  const FedValues values;
  for (ExportProduct product : {ExportProduct::weights, ExportProduct::lse}) {
    const ExportSpec spec = make_spec(
        calls, product, product == ExportProduct::lse ? Encoding::f32 : Encoding::u8_log2);
    const std::string out = folder / std::string(export_product_name(product));
    const ExportSize size = estimate_export(spec);
    const int64_t entries = product == ExportProduct::lse ? 0 : 2 * 700 * (700 + 20);
    CHECK(size.payload_bytes == entries + 2 * 2 * 700 * 4);
    write_export(spec, out, values);
    const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(out));
    INFO("estimate " << size.file_bytes << ", file " << file_bytes);
    CHECK(std::abs(size.file_bytes - file_bytes) < 32 * 1024);
  }
}

TEST_CASE("no handle of the HDF5 library stays open, and its messages are on again") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  H5E_auto2_t before = nullptr;
  H5E_auto2_t after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  {
    const auto sink = make_export(make_spec(calls), folder / "out.h5", kQuick);
    CHECK(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) == 0);
    feed(*sink, {});
  }
  CHECK(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) == 0);
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  CHECK(before == after);
}

TEST_CASE("an export that cannot be meant is refused before anything is created") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const std::vector calls{make_call(joint_facts())};
  FixtureFacts sigmoid_facts = joint_facts();
  sigmoid_facts.score = ScoreFunction::sigmoid;
  const std::vector sigmoid{make_call(sigmoid_facts)};
  std::vector<ExportSpec> bad;
  const auto add = [&](auto change, const auto& of) {
    bad.push_back(make_spec(of));
    change(bad.back());
  };
  add([](ExportSpec& s) { s.calls.clear(); }, calls);
  add([](ExportSpec& s) { s.calls[0].row_list = {1, 2}; }, calls);
  add([](ExportSpec& s) { s.product = ExportProduct::pooled; }, calls);
  add([](ExportSpec& s) { s.calls[0].keys = {0, 701}; }, calls);
  add([](ExportSpec& s) { s.calls[0].rows = {5, 5}; }, calls);
  add([](ExportSpec& s) { s.calls[0].selected.heads = {0, 2}; }, calls);
  add([](ExportSpec& s) { s.calls[0].selected.heads = {1, 0}; }, calls);
  add([](ExportSpec& s) { s.calls[0].selected.batch = {}; }, calls);
  add([](ExportSpec& s) { s.product = ExportProduct::rows; }, calls);
  add([](ExportSpec& s) { s.product = ExportProduct::logits; }, calls);
  add([](ExportSpec& s) { s.encoding = Encoding::f16; }, calls);
  add(
      [](ExportSpec& s) {
        s.product = ExportProduct::lse;
        s.encoding = Encoding::f32;
      },
      sigmoid);
  const auto as_output = [](ExportSpec& s) {
    s.product = ExportProduct::output;
    s.encoding = Encoding::f32;
  };
  FixtureFacts without_values = joint_facts();
  without_values.value_width = 0;
  const std::vector no_values{make_call(without_values)};
  add(as_output, no_values);
  add([](ExportSpec& s) { s.product = ExportProduct::output; }, calls);
  add(
      [&](ExportSpec& s) {
        as_output(s);
        s.calls[0].keys = {0, 699};
      },
      calls);
  for (size_t i = 0; i < bad.size(); ++i) {
    INFO("case " << i);
    ErrorCode code = ErrorCode::interrupted;
    try {
      make_export(bad[i], out, kQuick);
    } catch (const Error& error) {
      code = error.code();
    }
    CHECK(code == ErrorCode::usage);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}
