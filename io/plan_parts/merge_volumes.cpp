#include "io/plan_parts/merge_volumes.h"

#include <string>
#include <utility>

#include "core/base/error.h"
#include "io/files/input_set.h"
#include "io/files/output_file.h"
#include "io/plan_parts/part_volumes.h"
#include "io/results/volume_output.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

void require_same_query(const PartVolumes& part, const PartVolumes& first) {
  const QueryVolumes &a = part.volumes, &b = first.volumes;
  // A part without heads has no grid.
  const bool fits = a.volumes.empty() || b.volumes.empty() || a.grid == b.grid;
  if (fits && a.model == b.model && a.capture == b.capture && a.query_text == b.query_text &&
      a.domain == b.domain && a.weighting == b.weighting && a.mean == b.mean &&
      a.reverse == b.reverse) {
    return;
  }
  throw file_error(part.facts.path.string(), "",
                   "is of another query than " + first.facts.path.string());
}

void append(QueryVolumes& whole, QueryVolumes part) {
  if (part.volumes.empty()) return;
  if (whole.volumes.empty()) {
    whole = std::move(part);
    return;
  }
  const size_t lists = whole.token_lists.size();
  for (auto& list : part.token_lists) whole.token_lists.push_back(std::move(list));
  for (QueryVolume& volume : part.volumes) {
    volume.tokens += lists;
    volume.chosen = whole.list_chosen(part.chosen_lists[volume.chosen]);
    whole.volumes.push_back(std::move(volume));
  }
}

}  // namespace

QueryVolumes join_volumes(const std::vector<fs::path>& parts, const TableMerge& how,
                          MemoryBudget& budget, MemoryReservation& held) {
  int64_t bytes = 0;
  for (const fs::path& path : parts) bytes += InputFile(path).size();
  held = budget.reserve(bytes, "the volumes of all parts");
  InputSet inputs;
  std::vector<PartVolumes> read;
  std::vector<PartFacts> facts;
  for (const fs::path& path : parts) {
    read.push_back(read_part_volumes(path, inputs));
    facts.push_back(read.back().facts);
  }
  const std::vector<size_t> order = order_of_parts(facts, how.mixed);
  for (const PartVolumes& part : read) require_same_query(part, read.front());
  QueryVolumes whole;
  for (const size_t i : order) append(whole, std::move(read[i].volumes));
  inputs.require_unchanged();
  return whole;
}

MergeResult merge_volumes(const std::vector<fs::path>& parts, const fs::path& out,
                          const TableMerge& how, bool force, MemoryBudget& budget) {
  constexpr VolumeFormat kFormats[] = {VolumeFormat::npy, VolumeFormat::hdf5, VolumeFormat::csv};
  const VolumeFormat format = volume_format_of(out, kFormats);
  OutputFile::check_target(out, {.force = force, .inputs = parts});
  MemoryReservation held;
  const QueryVolumes whole = join_volumes(parts, how, budget, held);
  if (how.dry_run) return {};
  write_volumes(format, whole, {}, out, force);
  MergeResult result;
  result.bytes_written = InputFile(out).size();
  return result;
}

}  // namespace attnscope
