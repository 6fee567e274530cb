#include "io/export/read/stored_blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/read/stored_attributes.h"
#include "io/files/json_types.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

/// Sides of a map in blocks are never longer.
constexpr int64_t kMostBlocks = int64_t{1} << 26;

/// The blocks' first tokens: the first and the last, and the step between them.
Json starts_of(const Hdf5Reader& reader, hid_t parent, const std::string& name, int64_t block) {
  const std::vector<int64_t> starts = reader.integers(parent, name, kMostBlocks);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] != starts[0] + static_cast<int64_t>(i) * block || starts[0] < 0) {
      reader.bad(name, "is no list of blocks");
    }
  }
  return {starts.front(), starts.size()};
}

/// The name of the level with the smallest blocks, with a slash; empty where there is one only.
std::string finest_level(const Hdf5Reader& reader, hid_t group) {
  if (H5Lexists(group, "weights_max", H5P_DEFAULT) > 0) return "";
  H5G_info_t info{};
  reader.check(H5Gget_info(group, &info), "its levels");
  int64_t finest = 0;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[64] = "";
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                              sizeof name, H5P_DEFAULT);
    const std::string text(name);
    if (length <= 6 || length > 18 || text.rfind("level_", 0) != 0) continue;
    if (text.find_first_not_of("0123456789", 6) != std::string::npos) continue;
    const int64_t block = std::stoll(text.substr(6));
    if (finest == 0 || block < finest) finest = block;
  }
  if (finest == 0) reader.bad("weights_max", "is missing");
  return "level_" + std::to_string(finest) + "/";
}

Json read_block_group(const Hdf5Reader& reader, const std::string& name) {
  const std::string where = "calls/" + name;
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), reader.path(), where);
  Json json = read_call_attributes(reader, group.id());
  const std::string level = finest_level(reader, group.id());
  const Hdf5Dataset max = reader.dataset(group.id(), level + "weights_max");
  const Hdf5Dataset mean = reader.dataset(group.id(), level + "weights_mean");
  for (const Hdf5Dataset* d : {&max, &mean}) {
    const Hdf5Type type(H5Dget_type(d->id()), reader.path(), where);
    if (H5Tequal(type.id(), H5T_IEEE_F32LE) <= 0) reader.bad(where, "its blocks are no float32");
  }
  json["block"] = reader.integer(max.id(), "block");
  const auto block = json["block"].get<int64_t>();
  if (block < 1 || block > kMostBlocks) reader.bad(where, "has blocks of no possible size");
  json["shape"] = reader.shape(max, "weights_max");
  if (reader.shape(mean, "weights_mean") != reader.shape(max, "weights_max")) {
    reader.bad("weights_mean", "has another shape than weights_max");
  }
  json["max"] = reader.address(max, "weights_max");
  json["mean"] = reader.address(mean, "weights_mean");
  json["batch"] = reader.integers(group.id(), "batch", kMostIndices);
  json["heads"] = reader.integers(group.id(), "head", kMostIndices);
  json["rows"] = starts_of(reader, group.id(), level + "query_block", block);
  json["cols"] = starts_of(reader, group.id(), level + "key_block", block);
  return json;
}

/// Tokens under blocks that begin at `starts` [first, count]; the last block ends with the sequence
/// or, in a crop, where the options say.
IndexRange tokens_under(const Json& starts, int64_t block, const Json& options, const char* crop,
                        const TokenGrid& tokens, bool known) {
  const auto first = starts[0].get<int64_t>();
  const auto count = starts[1].get<int64_t>();
  int64_t end = first + count * block;
  if (known) end = std::min(end, tokens.tokens());
  const std::string text = options.value(crop, std::string());
  const size_t colon = text.find(':');
  if (colon != std::string::npos && colon + 1 < text.size()) {
    const int64_t wanted = std::strtoll(text.c_str() + colon + 1, nullptr, 10);
    if (wanted > first + (count - 1) * block) end = std::min(end, wanted);
  }
  return {first, end};
}

StoredBlockGroup parse(const Json& json, const Json& options, int64_t file_bytes,
                       const std::string& path, const std::string& name) {
  StoredBlockGroup group;
  group.facts = call_attributes(json);
  group.batch = json["batch"].get<std::vector<int64_t>>();
  group.heads = json["heads"].get<std::vector<int64_t>>();
  group.block = json["block"].get<int64_t>();
  group.block_rows = json["rows"][1].get<int64_t>();
  group.block_cols = json["cols"][1].get<int64_t>();
  group.max_place = json["max"].get<int64_t>();
  group.mean_place = json["mean"].get<int64_t>();
  const auto shape = json["shape"].get<std::vector<int64_t>>();
  const int64_t counts[] = {group.num_heads(), group.block_rows, group.block_cols, 4};
  const auto bytes = checked_count(counts);
  const auto fits = [&](int64_t place) { return place >= 0 && place <= file_bytes - *bytes; };
  const bool good = shape.size() == 4 && shape[0] == static_cast<int64_t>(group.batch.size()) &&
                    shape[1] == static_cast<int64_t>(group.heads.size()) &&
                    shape[2] == group.block_rows && shape[3] == group.block_cols && bytes &&
                    *bytes <= file_bytes && fits(group.max_place) && fits(group.mean_place);
  if (!good) throw file_error(path, name, "its coordinates do not fit its datasets");
  const auto past = [&](const Json& starts) {
    return starts[0].get<int64_t>() + starts[1].get<int64_t>() * group.block;
  };
  const bool grid = json["grid"] != "none";
  const bool cross = group.facts.kind == "cross";
  set_sequences(group.facts, json, past(json["rows"]), past(json["cols"]));
  group.rows =
      tokens_under(json["rows"], group.block, options, "rows", group.facts.query_tokens, grid);
  group.cols = tokens_under(json["cols"], group.block, options, "cols", group.facts.key_tokens,
                            grid && !cross);
  if (!grid) set_sequences(group.facts, json, group.rows.end, group.cols.end);
  group.facts.keys = group.cols;
  const bool within = group.rows.end <= group.facts.query_tokens.tokens() &&
                      group.cols.end <= group.facts.key_tokens.tokens() &&
                      group.rows.size() > (group.block_rows - 1) * group.block &&
                      group.cols.size() > (group.block_cols - 1) * group.block;
  if (!within) throw file_error(path, name, "its blocks lie beyond its sequences");
  return group;
}

ExportManifest read_pooled(const std::filesystem::path& path) {
  ExportManifest stored = read_manifest(path);
  if (stored.product == "pooled") return stored;
  throw usage_error(path.string() + ": is an export of " + stored.product +
                    ", not of blocks (expected pooled)");
}

}  // namespace

const HelperQuestion kBlocksQuestion{"the blocks of an export's calls",
                                     [](const std::string& path, const Json& groups) {
                                       return read_groups(path, groups, read_block_group);
                                     }};

StoredBlocks::StoredBlocks(const std::filesystem::path& path)
    : path_(path), stored_(read_pooled(path)), file_(path, PosixFile::Mode::read_only) {
  const std::string name = path.string();
  require_sound_structure(stored_, file_);
  if (!is_marked_complete(stored_, file_)) throw file_error(name, "", "is not complete");
  const Json all = ask_helper(kBlocksQuestion, name, stored_.plain_groups);
  const Json options = Json::parse(stored_.options, nullptr, false);
  for (size_t g = 0; g < stored_.plain_groups.size(); ++g) {
    const std::string& group = stored_.plain_groups[g];
    try {
      groups_.push_back(parse(all[g], options.is_object() ? options : Json::object(),
                              stored_.file_bytes, name, group));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      // It is the file that is wrong, not what was asked for.
      throw file_error(name, group, error.what());
    }
  }
  if (groups_.empty()) throw file_error(name, "calls", "has no groups");
}

void StoredBlocks::read_numbers(int64_t place, const StoredBlockGroup& group, int64_t head,
                                IndexRange rows, IndexRange cols,
                                std::vector<float>& numbers) const {
  numbers.resize(static_cast<size_t>(rows.size() * cols.size()));
  float* to = numbers.data();
  for (int64_t row = rows.begin; row < rows.end; ++row, to += cols.size()) {
    const int64_t at = (head * group.block_rows + row) * group.block_cols + cols.begin;
    file_.read_at(std::as_writable_bytes(std::span(to, static_cast<size_t>(cols.size()))),
                  place + at * 4);
  }
}

PooledMap StoredBlocks::read(const StoredBlockGroup& group, int64_t head, IndexRange block_rows,
                             IndexRange block_cols) const {
  PooledMap map;
  map.block_rows = map.block_cols = group.block;
  map.first_row = group.rows.begin + block_rows.begin * group.block;
  map.first_col = group.cols.begin + block_cols.begin * group.block;
  map.rows = block_rows.size();
  map.cols = block_cols.size();
  read_numbers(group.max_place, group, head, block_rows, block_cols, map.max);
  read_numbers(group.mean_place, group, head, block_rows, block_cols, map.mean);
  return map;
}

PooledMap StoredBlocks::pooled(const StoredBlockGroup& group, int64_t head, IndexRange rows,
                               IndexRange cols, int64_t block) const {
  const auto blocks_of = [&](IndexRange tokens, IndexRange all) {
    return IndexRange{(tokens.begin - all.begin) / group.block,
                      ceil_div(tokens.end - all.begin, group.block)};
  };
  const IndexRange block_rows = blocks_of(rows, group.rows);
  const IndexRange block_cols = blocks_of(cols, group.cols);
  const int64_t factor = block / group.block;
  PooledMap map;
  map.block_rows = map.block_cols = block;
  map.first_row = rows.begin;
  map.first_col = cols.begin;
  map.rows = ceil_div(block_rows.size(), factor);
  map.cols = ceil_div(block_cols.size(), factor);
  const auto cells = static_cast<size_t>(map.rows * map.cols);
  map.max.assign(cells, 0.0f);
  map.mean.assign(cells, 0.0f);
  std::vector<double> sums(cells, 0.0), counts(cells, 0.0);
  const auto extent = [&](int64_t number, IndexRange all) {
    return std::min(group.block, all.size() - number * group.block);
  };
  for (int64_t row = block_rows.begin; row < block_rows.end; ++row) {
    const PooledMap line = read(group, head, {row, row + 1}, block_cols);
    for (int64_t col = block_cols.begin; col < block_cols.end; ++col) {
      const auto from = static_cast<size_t>(col - block_cols.begin);
      const auto to = static_cast<size_t>((row - block_rows.begin) / factor * map.cols +
                                          (col - block_cols.begin) / factor);
      const auto entries = static_cast<double>(extent(row, group.rows) * extent(col, group.cols));
      map.max[to] = std::max(map.max[to], line.max[from]);
      sums[to] += static_cast<double>(line.mean[from]) * entries;
      counts[to] += entries;
    }
  }
  for (size_t i = 0; i < cells; ++i) map.mean[i] = static_cast<float>(sums[i] / counts[i]);
  return map;
}

}  // namespace attnscope
