// Exports read back: entries, what is missing, and what is damaged.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/read/stored_maps.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const ExportWriteOptions kQuick{.force = false, .sync = false};

void write_export(const ExportSpec& spec, const std::string& out, const FedValues& values,
                  const FeedOrder& order = {}) {
  const auto sink = make_export(spec, out, kQuick);
  feed(*sink, values, order);
  sink->suspend();
}

std::string error_of(const std::string& path) {
  try {
    const StoredMaps maps(path);
  } catch (const Error& error) {
    return (error.code() == ErrorCode::usage ? "usage: " : "file: ") + std::string(error.what());
  }
  return "";
}

}  // namespace

TEST_CASE("stored maps give back what was exported, in every dtype") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  for (const StoredForm& c : kStoredForms) {
    INFO("encoding " << static_cast<int>(c.encoding));
    ExportSpec spec = make_spec(calls, c.product, c.encoding);
    spec.calls[0].rows = {100, 623};
    const FedValues values{.logits = c.product == ExportProduct::logits};
    const std::string out = folder / (std::to_string(static_cast<int>(c.encoding)) + ".h5");
    write_export(spec, out, values);
    const StoredMaps maps(out);
    REQUIRE(maps.heads().size() == 2);
    const StoredHead& head = maps.heads()[1];
    CHECK(head.head == 1);
    CHECK(head.facts->step == 10);
    CHECK(head.facts->layer == 3);
    CHECK(head.facts->branch == "cond");
    CHECK(head.facts->queries.front() == 100);
    CHECK(head.facts->queries.back() == 622);
    CHECK(head.facts->keys == IndexRange{0, 700});
    CHECK(head.facts->key_tokens == joint_facts().keys);
    for (const int64_t row : {0, 383, 384, 522}) {
      const auto got = maps.row(head, row);
      REQUIRE(got);
      REQUIRE(got->size() == 700);
      double worst = 0;
      for (int64_t j = 0; j < 700; ++j) {
        const double expected = decoded(values.entry(1, row, j), c.encoding);
        const auto value = static_cast<double>((*got)[static_cast<size_t>(j)]);
        if (value == expected) continue;
        worst = std::max(worst, std::fabs(value - expected) / std::fabs(expected));
      }
      CHECK(worst <= 1e-6);
      const double lse = maps.lse(head, row);
      if (c.product == ExportProduct::logits) {
        CHECK(std::isnan(lse));
      } else {
        CHECK(lse == static_cast<double>(static_cast<float>(values.norm(1, row).lse())));
      }
    }
  }
}

TEST_CASE("pooled stored maps are maxima and means, and say which cells lack a tile") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  const FedValues values;
  for (const int64_t stop : {-1, 3}) {
    INFO("stopped after " << stop);
    const std::string name = stop < 0 ? "whole.h5" : "part.h5";
    // Three tiles of one chunk each: rows 0 to 383 and the first columns of the rows below.
    write_export(spec, folder / name, values, {.segment_chunks = 1, .stop_after = stop});
    const StoredMaps maps(folder / (stop < 0 ? name : name + ".part"));
    const IndexRange rows{5, 690}, cols{3, 700};
    const StoredPooledMap pooled = pool_stored(maps, maps.heads()[0], rows, cols, 50);
    REQUIRE(pooled.map.rows == 14);
    REQUIRE(pooled.map.cols == 14);
    CHECK(pooled.map.first_row == 5);
    CHECK(pooled.map.first_col == 3);
    int64_t missing = 0;
    for (int64_t r = 0; r < 14; ++r) {
      for (int64_t c = 0; c < 14; ++c) {
        double sum = 0, largest = 0, count = 0;
        bool lacks = false;
        for (int64_t i = rows.begin + r * 50; i < std::min(rows.begin + r * 50 + 50, rows.end);
             ++i) {
          for (int64_t j = cols.begin + c * 50; j < std::min(cols.begin + c * 50 + 50, cols.end);
               ++j) {
            const auto entry = static_cast<double>(values.entry(0, i, j));
            sum += entry;
            largest = std::max(largest, entry);
            ++count;
            lacks = lacks || (stop == 3 && i >= 384 && j >= 512);
          }
        }
        const auto at = static_cast<size_t>(r * 14 + c);
        missing += lacks;
        CHECK((pooled.missing[at] != 0) == lacks);
        if (lacks) {
          CHECK(std::isnan(pooled.map.max[at]));
          CHECK(std::isnan(pooled.map.mean[at]));
        } else {
          CHECK(static_cast<double>(pooled.map.max[at]) == largest);
          CHECK(static_cast<double>(pooled.map.mean[at]) == Approx(sum / count).epsilon(1e-6));
        }
      }
    }
    CHECK(pooled.missing_cells == missing);
    CHECK((missing > 0) == (stop == 3));
    if (stop == 3) {
      CHECK(maps.row(maps.heads()[0], 383));
      CHECK_FALSE(maps.row(maps.heads()[0], 384));
      CHECK_FALSE(maps.row(maps.heads()[1], 0));
    }
  }
}

TEST_CASE("rows of an export keep the indices of the capture") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls, ExportProduct::rows, Encoding::f32);
  spec.calls[0].row_list = {0, 300, 301, 699};
  const FedValues values;
  write_export(spec, folder / "rows.h5", values);
  const StoredMaps maps(folder / "rows.h5");
  CHECK(maps.heads()[0].facts->queries == std::vector<int64_t>{0, 300, 301, 699});
  const auto row = maps.row(maps.heads()[1], 3);
  REQUIRE(row);
  CHECK((*row)[17] == values.entry(1, 3, 17));
}

TEST_CASE("a damaged chunk is named by its call, head, rows and columns") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f16_scaled);
  spec.calls[0].rows = {100, 623};
  const std::string out = folder / "maps.h5";
  write_export(spec, out, {});
  const StoredMaps maps(out);
  const StoredHead& head = maps.heads()[1];
  const ChunkGrid& grid = head.group->grid;
  REQUIRE(grid.row_chunks() > 1);
  const int64_t place =
      head.group->places.entries + grid.chunk_number(1, 1, 0) * grid.chunk_bytes();
  std::fstream file(out, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(place);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(place);
  file.put(byte);
  file.close();
  const auto row_chunk_begin = 100 + grid.chunk_rows;
  const auto row_chunk_end = std::min<int64_t>(100 + 2 * grid.chunk_rows, 623);
  std::string said;
  try {
    maps.chunk(head, 1, 0);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said == out + ": weights of step 10 layer 3 cond joint batch 0 head 1, rows " +
                    std::to_string(row_chunk_begin) + " to " + std::to_string(row_chunk_end - 1) +
                    ", columns 0 to " +
                    std::to_string(std::min<int64_t>(grid.chunk_cols, 700) - 1) +
                    ": is not what was written (attnscope verify tells all)");
  CHECK(maps.chunk(maps.heads()[0], 1, 0).has_value());
}

TEST_CASE("a damaged LSE is named by its call and head, and the other heads' are told") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f16_scaled);
  const FedValues values;
  const auto told = [&](int64_t task, int64_t row) {
    return static_cast<double>(static_cast<float>(values.norm(task, row).lse()));
  };
  const auto flip = [](const std::string& path, int64_t place) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(place);
    file.put(byte);
  };
  const auto error = [](const StoredMaps& maps, const StoredHead& head, int64_t row) {
    try {
      maps.lse(head, row);
    } catch (const Error& found) {
      CHECK(found.code() == ErrorCode::file);
      return std::string(found.what());
    }
    return std::string();
  };
  const std::string says =
      ": lse of step 10 layer 3 cond joint batch 0 head 1: is not what was written (attnscope "
      "verify tells all)";

  const std::string whole = folder / "whole.h5";
  write_export(spec, whole, values);
  {
    const StoredMaps maps(whole);
    flip(whole, maps.heads()[1].group->places.lse + (700 + 650) * 4);
  }
  const StoredMaps maps(whole);
  CHECK(maps.lse(maps.heads()[0], 699) == told(0, 699));
  // Whichever row of the head is asked for.
  CHECK(error(maps, maps.heads()[1], 0) == whole + says);
  CHECK(error(maps, maps.heads()[1], 650) == whole + says);

  // Of an interrupted export the tiles that are there tell theirs.
  const std::string left = folder / "left.h5", part = left + ".part";
  write_export(spec, left, values, {.segment_chunks = 1, .stop_after = 7});
  {
    const StoredMaps there(part);
    CHECK(there.lse(there.heads()[0], 699) == told(0, 699));
    CHECK(there.lse(there.heads()[1], 383) == told(1, 383));
    flip(part, there.heads()[1].group->places.lse + (700 + 20) * 4);
  }
  const StoredMaps there(part);
  CHECK(there.lse(there.heads()[0], 10) == told(0, 10));
  CHECK(error(there, there.heads()[1], 0) == part + says);
  // The tile with the rows from 384 on is there.
  CHECK(there.lse(there.heads()[1], 384) == told(1, 384));
  const std::string begun = folder / "begun.h5";
  write_export(spec, begun, values, {.segment_chunks = 1, .stop_after = 2});
  const StoredMaps few(begun + ".part");
  CHECK(few.lse(few.heads()[0], 0) == told(0, 0));
  CHECK(std::isnan(few.lse(few.heads()[0], 384)));
  CHECK(std::isnan(few.lse(few.heads()[1], 0)));
}

TEST_CASE("exports without maps are named, damaged ones too") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const FedValues values;
  write_export(make_spec(calls, ExportProduct::lse, Encoding::f32), folder / "lse.h5", values);
  CHECK(error_of(folder / "lse.h5").find("usage: ") == 0);
  CHECK(error_of(folder / "lse.h5").find("is an export of lse, which has no maps") !=
        std::string::npos);
  const std::string out = folder / "map.h5";
  write_export(make_spec(calls, ExportProduct::weights, Encoding::f32), out, values);
  const StoredMaps maps(out);
  const StoredHead& head = maps.heads()[0];
  const int64_t chunk = head.group->grid.chunk_bytes();
  const auto flip = [&](int64_t offset) {
    std::fstream file(out, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const int old = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(old ^ 1));
  };
  // A byte of the second chunk, which holds row 0's keys from 512 on.
  flip(head.group->places.entries + chunk + 100);
  CHECK(maps.chunk(head, 0, 0));
  CHECK_THROWS_AS(maps.chunk(head, 0, 1), Error);
  CHECK_THROWS_AS(maps.row(head, 0), Error);
  // A coordinate: within the structure, before the first tile.
  std::string bytes;
  {
    std::ifstream file(out, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = bytes.find("attnscope-export/1");
  REQUIRE(at != std::string::npos);
  const size_t model = bytes.find("tiny-cogvideox");
  REQUIRE(model != std::string::npos);
  flip(static_cast<int64_t>(model));
  CHECK(error_of(out).find("file: ") == 0);
}
