#pragma once

#include <filesystem>
#include <memory>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"
#include "io/export/write/shared_export.h"

namespace attnscope {

/// A sink that writes compressed and reduced exports: a shard file a group in OUT.d/, and a master
/// OUT that links them. Workers compress or reduce their tiles; the library takes them one at a
/// time in the order of the stream, so that the same export gives the same bytes: consume() waits
/// until all tiles before its own were taken. While it runs, shards stand in OUT.d.part/, each
/// under its final name once it is complete and synced, and OUT.journal tells which are. end()
/// moves them to OUT.d/, where their names are no other export's, and renames the master: until
/// then an older OUT is complete, from then on the new one, whose predecessor's shards go last.
/// `resume` goes on with the first shard that is not complete.
/// A tile, for progress, is a chunk (or a panel of rows), as elsewhere.
///
/// Throws what make_hdf5_export() throws; OUT.d counts like OUT.
std::unique_ptr<ExportSink> make_sharded_export(ExportPlan plan, std::filesystem::path out,
                                                const ExportWriteOptions& options);

/// Make and join a sharded export of several processes, each of which writes whole shards
/// (SharedExport). Whoever wrote a shard tells it to OUT.journal.K.
std::unique_ptr<SharedExport> make_shared_shards(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options);
std::unique_ptr<SharedExport> join_shared_shards(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options,
                                                 const ExportInvitation& invitation, int rank);

}  // namespace attnscope
