#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/export/read/export_verify.h"
#include "io/export/write/make_export.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Address and bytes of each of a dataset's chunks.
std::vector<std::pair<int64_t, int64_t>> chunk_places(const std::string& file,
                                                      const std::string& path) {
  std::vector<std::pair<int64_t, int64_t>> places;
  const hid_t f = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(f, path.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  hsize_t count = 0;
  REQUIRE(H5Dget_num_chunks(dataset, space, &count) >= 0);
  for (hsize_t i = 0; i < count; ++i) {
    hsize_t origin[4] = {}, bytes = 0;
    unsigned mask = 0;
    haddr_t address = 0;
    REQUIRE(H5Dget_chunk_info(dataset, space, i, origin, &mask, &address, &bytes) >= 0);
    places.emplace_back(static_cast<int64_t>(address), static_cast<int64_t>(bytes));
  }
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(f);
  return places;
}

}  // namespace

TEST_CASE("chunks stand at multiples of what they are aligned to") {
  const TemporaryFolder folder;
  FixtureFacts narrow = joint_facts();
  narrow.kind = CallKind::cross;
  narrow.keys = TokenGrid::text_only(20);
  FixtureFacts second = joint_facts();
  second.layer = 5;
  const std::vector calls{make_call(joint_facts()), make_call(narrow), make_call(second)};
  for (const int64_t align : {int64_t{1} << 14, int64_t{1} << 20}) {
    ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
    spec.align = align;
    const std::string out = folder / std::to_string(align);
    feed(*make_export(spec, out, {}), {});
    int64_t aligned = 0;
    for (const StoredGroup& group : read_manifest(out).groups) {
      // Entries of 64 KiB or more are aligned.
      CHECK((group.grid.bytes() < 65536 || group.places.entries % align == 0));
      const bool whole = group.grid.chunk_bytes() % align == 0;
      CHECK((whole || group.grid.cols < 512));
      aligned += whole ? 1 : 0;
      for (const auto& [address, bytes] : chunk_places(out, "/calls/" + group.name + "/weights")) {
        CHECK(bytes == group.grid.chunk_bytes());
        CHECK((!whole || address % align == 0));
      }
    }
    CHECK(aligned >= 2);
    CHECK(verify_export(out, {}, nullptr).good());
  }
  for (const auto& [product, text] : {std::pair(ExportProduct::lse, "have no chunks"),
                                      {ExportProduct::weights, "power of two"}}) {
    ExportSpec spec = make_spec(calls, product, Encoding::f32);
    spec.align = product == ExportProduct::lse ? 4096 : 5000;
    const std::string said =
        thrown_text(ErrorCode::usage, [&] { make_export(spec, folder / "no.h5", {}); });
    CHECK(said.find(text) != std::string::npos);
  }
}
