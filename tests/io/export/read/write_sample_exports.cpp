// Writes exports with known values, and the values, for tests/io/export/read/read_export.py:
// write_sample_exports FOLDER.
#include <cstdio>
#include <fstream>
#include <vector>

#include "io/helper/ask_helper.h"
#include "io/results/volume_hdf5.h"
#include "tests/support/export_fixture.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

void write_floats(const std::filesystem::path& path, const std::vector<float>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
}

/// FOLDER/NAME.h5, and FOLDER/NAME.entries.f32 with the first call's decoded entries,
/// FOLDER/NAME.lse.f32 with its LSEs.
void write_sample(const std::filesystem::path& folder, const std::string& name,
                  const ExportSpec& spec) {
  FedValues values;
  values.logits = spec.product == ExportProduct::logits;
  const auto sink = make_export(spec, folder / (name + ".h5"), {.force = false, .sync = false});
  feed(*sink, values);
  std::vector<float> entries;
  std::vector<float> lse;
  const auto heads = static_cast<int64_t>(spec.calls[0].selected.batch.size() *
                                          spec.calls[0].selected.heads.size());
  for (int64_t task = 0; task < heads; ++task) {
    for (int64_t r = 0; r < sink->tasks()[0].num_rows(); ++r) {
      lse.push_back(static_cast<float>(values.norm(task, r).lse()));
      for (int64_t c = 0; c < columns_of(sink->tasks()[0], sink->request()); ++c) {
        entries.push_back(static_cast<float>(decoded(values.entry(task, r, c), spec.encoding)));
      }
    }
  }
  if (spec.product != ExportProduct::lse) {
    write_floats(folder / (name + ".entries.f32"), entries);
  }
  if (spec.product != ExportProduct::logits) write_floats(folder / (name + ".lse.f32"), lse);
}

void write_samples(const std::filesystem::path& folder) {
  FixtureFacts cross = joint_facts();
  cross.kind = CallKind::cross;
  cross.keys = TokenGrid::text_only(20);
  cross.queries = TokenGrid::video(60, {3, 4, 5}, 0, TextPlace::none);
  FixtureFacts bare;
  bare.kind = CallKind::self;
  bare.branches = {"all"};
  bare.queries = TokenGrid::unknown(33);
  bare.keys = bare.queries;
  bare.step = bare.layer = 0;
  const std::vector calls{make_call(joint_facts()), make_call(cross), make_call(bare)};
  calls[1]->id.place.block = "transformer_blocks.3";
  calls[1]->id.place.slot = "attn2";
  calls[2]->id.place.unrecorded = {true, true, true};
  write_sample(folder, "maps", make_spec(calls));
  write_sample(folder, "f32", make_spec(calls, ExportProduct::weights, Encoding::f32));
  write_sample(folder, "u8", make_spec(calls, ExportProduct::weights, Encoding::u8_log2));
  write_sample(folder, "logits", make_spec(calls, ExportProduct::logits, Encoding::f32));
  write_sample(folder, "lse", make_spec(calls, ExportProduct::lse, Encoding::f32));
  write_sample(folder, "output", make_spec(calls, ExportProduct::output, Encoding::f32));
  ExportSpec packed = make_spec(calls);
  packed.gzip = true;
  write_sample(folder, "gzip", packed);
  ExportSpec largest = make_spec(calls, ExportProduct::topk, Encoding::f32);
  largest.detail = KeepLargest{5};
  write_sample(folder, "topk", largest);
  ExportSpec above = make_spec(calls, ExportProduct::threshold, Encoding::f32);
  above.detail = KeepAbove{0.25};
  write_sample(folder, "threshold", above);
  ExportSpec crop = make_spec(calls);
  crop.calls[0].rows = {100, 523};
  crop.calls[0].keys = {0, 10};
  write_sample(folder, "crop", crop);
  ExportSpec rows = make_spec(calls, ExportProduct::rows);
  rows.calls[0].row_list = {0, 300, 699};
  rows.calls[1].row_list = {7};
  rows.calls[2].row_list = {0, 1, 2};
  write_sample(folder, "rows", rows);
}

void write_volumes(const std::filesystem::path& folder) {
  QueryVolumes volumes;
  volumes.grid = {2, 3, 4};
  volumes.token_lists = {{"a", "dög"}};
  volumes.domain = "all";
  for (int64_t head : {2, 5}) {
    QueryVolume volume;
    volume.head = head;
    volume.branch = "cond";
    volume.kind = "joint";
    for (int i = 0; i < 24; ++i) volume.video.push_back(static_cast<float>(i * head));
    volume.text = {0.5f, 0.25f};
    volumes.volumes.push_back(volume);
  }
  write_volumes_hdf5(volumes, folder / "volumes.h5", false);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  set_helper_program({ATTNSCOPE_TEST_HELPER, {}});
  try {
    write_samples(argv[1]);
    write_volumes(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
