#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/files/output_file.h"

namespace attnscope {

/// Removes the shards of an older OUT when an export, in shards or not, takes its name: those that
/// the older OUT names go from OUT.d, and nothing else. A run that is killed in between leaves a
/// list of them to remove() of the next one.
class ReplacedShards {
 public:
  /// To be called before OUT gets its new name. `digest`: the checksum of the new one's structure,
  /// by which the list is known to be its own. Throws Error(file).
  void note(const OutputFile& file, uint64_t digest, bool sync);

  /// To be called when OUT has it, also by a run that finds it complete. Removes what was noted but
  /// for what OUT names, and OUT.d, where nothing stands in it any more. Gives a line for people
  /// where OUT has no shards and others' files stay; else an empty one. Throws Error(file) that
  /// says that OUT is complete.
  std::string remove(const OutputFile& file);

 private:
  std::set<std::string> names_;
};

/// A line for people where OUT.d holds more than these shards of OUT, which nothing removes: what
/// no OUT names may be anybody's. Else an empty one. Throws Error(file).
std::string note_beside_shards(const OutputFile& file, const std::vector<Shard>& shards);

/// Of a run in shards that is given up: removes those of its shards that it had moved to OUT.d
/// already, as its master in OUT.part tells, but for what OUT names. For
/// OutputFileOptions::give_up.
void remove_given_up_shards(const OutputFile& file);

}  // namespace attnscope
