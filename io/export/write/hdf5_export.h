#pragma once

#include <filesystem>
#include <memory>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// Threads beyond those that compute which may wait for the disk in consume() at once: 0 where what
/// is written goes to the page cache.
int threads_at_disk(const ExportPlan& plan, const ExportWriteOptions& options);

/// A sink that writes the export format as one file. Built as OUT.part: groups, attributes and
/// preallocated datasets are created by the library and the file is closed; tiles then go to their
/// known addresses with pwrite from the workers that computed them, outside the library's lock.
/// Large data that are to be durable go past the page cache, where the file system can. OUT.journal
/// tells which tiles are there: a commit every 64 MiB or 5 s syncs the data, then the journal.
/// end() marks the file complete, renames it to OUT and removes the journal. When the sink is
/// destroyed before that, what has been consumed is committed, OUT.part and OUT.journal stay for
/// `resume` (unless there was nothing yet), and OUT is as it was.
///
/// Throws Error(file) when OUT exists and neither `force` nor `resume` is set, when it or OUT.part
/// has another content than asked for, or the folder is missing or cannot be written;
/// Error(resource) when the disk has too little space. end() throws Error(file) when tiles are
/// missing.
std::unique_ptr<ExportSink> make_hdf5_export(ExportPlan plan, std::filesystem::path out,
                                             const ExportWriteOptions& options);

}  // namespace attnscope
