// Compressed exports read back: every dtype, chunks that were left out, and damage.
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/read/stored_maps.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const FedValues kWithHoles{.is_empty = [](int64_t task, int64_t row, int64_t col) {
  return task == 1 && row == 0 && col == 1;
}};

/// Writes OUT.h5 with one shard; returns the shard's path.
std::string write_compressed(const std::vector<std::shared_ptr<CallEntry>>& calls,
                             const std::string& out, ExportProduct product, Encoding encoding,
                             const FedValues& values) {
  ExportSpec spec = make_spec(calls, product, encoding);
  spec.gzip = true;
  feed(*make_export(spec, out, {.sync = false}), values);
  return std::filesystem::directory_iterator(out + ".d")->path().string();
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    return error.what();
  }
  return "";
}

/// All chunks of a file, those that cannot be read as nothing.
std::vector<std::optional<std::vector<float>>> chunks_of(const StoredMaps& maps) {
  std::vector<std::optional<std::vector<float>>> chunks;
  for (const StoredHead& head : maps.heads()) {
    for (int64_t i = 0; i < 4; ++i) {
      chunks.emplace_back();
      error_of([&] { chunks.back() = maps.chunk(head, i / 2, i % 2); });
    }
  }
  return chunks;
}

}  // namespace

TEST_CASE("compressed maps give back what was exported, and zeros for what was left out") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  for (const StoredForm& c : kStoredForms) {
    INFO("encoding " << static_cast<int>(c.encoding));
    const std::string out = folder / (std::to_string(static_cast<int>(c.encoding)) + ".h5");
    FedValues values = kWithHoles;
    values.logits = c.product == ExportProduct::logits;
    if (values.logits) values.is_empty = FedValues().is_empty;
    write_compressed(calls, out, c.product, c.encoding, values);
    const StoredMaps maps(out);
    REQUIRE(maps.heads().size() == 2);
    for (int64_t task = 0; task < 2; ++task) {
      const StoredHead& head = maps.heads()[static_cast<size_t>(task)];
      CHECK(maps.buffer_bytes(head) >= head.group->grid.chunk_bytes());
      for (const int64_t row : {0, 383, 384, 699}) {
        const auto got = maps.row(head, row);
        REQUIRE(got);
        REQUIRE(got->size() == 700);
        for (int64_t j = 0; j < 700; ++j) {
          const bool empty = values.is_empty(task, row / 384, j / 512);
          const double expected = empty ? 0 : decoded(values.entry(task, row, j), c.encoding);
          const auto value = static_cast<double>((*got)[static_cast<size_t>(j)]);
          if (value == expected) continue;
          REQUIRE(value == Approx(expected).epsilon(1e-6));
        }
        const double lse = maps.lse(head, row);
        if (values.logits) continue;
        CHECK(lse == static_cast<double>(static_cast<float>(values.norm(task, row).lse())));
      }
    }
  }
}

TEST_CASE("a damaged compressed chunk is named, and the others are read") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const std::string out = folder / "maps.h5";
  const std::string shard =
      write_compressed(calls, out, ExportProduct::weights, Encoding::f16_scaled, kWithHoles);
  const std::string bytes = read_bytes(shard);
  const auto sound = chunks_of(StoredMaps(out));
  // The entries of the index: an address, the bytes stored, and a mask of 4 bytes.
  const size_t index = bytes.find("FADB") + 14;
  REQUIRE(index != std::string::npos + 14);
  const auto entry_bytes = static_cast<size_t>(bytes[bytes.find("FAHD") + 6]);
  const auto entry = [&](size_t chunk) { return index + chunk * entry_bytes; };
  const auto address = [&](size_t chunk) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + entry(chunk), 8);
    return value;
  };
  struct Case {
    std::string what;
    size_t at;
    std::string put;
    std::string says;
  };
  const std::string undefined(8, '\xff');
  const std::vector<Case> cases{
      {"a byte of the chunk",
       address(3) + 40,
       {static_cast<char>(bytes[address(3) + 40] ^ 1)},
       "is not what was written"},
      {"another chunk's place", entry(3), bytes.substr(entry(2), entry_bytes),
       "is not what was written"},
      {"a chunk that is gone", entry(3), undefined, "is not what was written"},
      {"a place beyond the end", entry(3) + 5, std::string(1, '\x01'),
       "a chunk lies beyond the end of the file"},
      {"a size that cannot be", entry(3) + 8, std::string(entry_bytes - 12, '\0'),
       "cannot be stored in 0"},
      {"a filter left out", entry(3) + entry_bytes - 4, std::string(1, '\x02'),
       "is damaged: it does not unpack to its size"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    std::string damaged = bytes;
    damaged.replace(c.at, c.put.size(), c.put);
    REQUIRE(damaged != bytes);
    write_bytes(shard, damaged);
    const StoredMaps maps(out);
    const std::string error = error_of([&] { maps.chunk(maps.heads()[0], 1, 1); });
    INFO(error);
    CHECK(error.starts_with(shard + ": calls/step0010_layer003_cond_joint/weights: batch 0 head 0 "
                                    "rows from 384, columns from 512: "));
    CHECK(error.find(c.says) != std::string::npos);
    auto expected = sound;
    expected[3] = std::nullopt;
    CHECK(chunks_of(maps) == expected);
  }
  // One that was left out must be meant to be.
  std::string filled = bytes;
  filled.replace(entry(5), entry_bytes, bytes.substr(entry(4), entry_bytes));
  write_bytes(shard, filled);
  const StoredMaps maps(out);
  CHECK(error_of([&] { maps.chunk(maps.heads()[1], 0, 1); }).find("is not what was written") !=
        std::string::npos);
}

TEST_CASE("a damaged LSE of a shard is named") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const std::string out = folder / "maps.h5";
  const std::string shard =
      write_compressed(calls, out, ExportProduct::weights, Encoding::f16_scaled, kWithHoles);
  std::string bytes = read_bytes(shard);
  {
    const StoredMaps maps(out);
    bytes[static_cast<size_t>(maps.heads()[1].group->places.lse + (700 + 650) * 4)] ^= 1;
  }
  write_bytes(shard, bytes);
  const StoredMaps maps(out);
  CHECK(maps.lse(maps.heads()[0], 650) ==
        static_cast<double>(static_cast<float>(kWithHoles.norm(0, 650).lse())));
  CHECK(error_of([&] { maps.lse(maps.heads()[1], 3); }) ==
        shard +
            ": lse of step 10 layer 3 cond joint batch 0 head 1: is not what was written "
            "(attnscope verify tells all)");
}

TEST_CASE("no flipped byte of a shard's structure changes an entry unnoticed") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const std::string out = folder / "maps.h5";
  const std::string shard =
      write_compressed(calls, out, ExportProduct::weights, Encoding::f32, kWithHoles);
  const std::string bytes = read_bytes(shard);
  const auto sound = chunks_of(StoredMaps(out));
  int noticed = 0;
  std::vector<size_t> places;
  for (const std::string signature : {"FAHD", "FADB"}) {
    for (size_t i = 0; i < 28; i += 3) places.push_back(bytes.find(signature) + i);
  }
  for (size_t at = bytes.find("OHDR"); at != std::string::npos; at = bytes.find("OHDR", at + 1)) {
    for (const size_t i : {5, 40, 90}) places.push_back(at + i);
  }
  for (const size_t at : places) {
    INFO("byte " << at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    write_bytes(shard, damaged);
    const std::string error = error_of([&] {
      const auto chunks = chunks_of(StoredMaps(out));
      for (size_t i = 0; i < sound.size(); ++i) {
        if (!chunks[i]) ++noticed;
        if (chunks[i]) REQUIRE(chunks[i] == sound[i]);
      }
    });
    if (!error.empty()) ++noticed;
  }
  CHECK(noticed > 10);
}
