#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace attnscope {

/// Folders of shards: OUT.d.part while they are written, OUT.d when they are complete. Both may
/// hold anybody's files, which stay: a shard is known by its name, step….DIGEST.h5 in 16
/// hexadecimal digits. A link to a folder is no folder here. Everything throws Error(file).

/// True of a file name of the form that shards have.
bool has_shard_name(const std::string& name);

/// Throws where the folder holds anything but shards and what becomes one (.tmp).
void require_shards_alone(const std::filesystem::path& folder);

/// Removes a folder of shards alone; another file keeps all of it there, as an error, like
/// something of that name that is no folder. Does nothing where there is none.
void remove_shards(const std::filesystem::path& folder);

/// Gives every shard in the folder `from` the same name in `to`, which is created where it is
/// missing, and removes `from`; what was not written to its end (.tmp) goes. Files of `to` stay,
/// but for those of a name that comes. A kill leaves each file in one of the folders. With `sync`
/// the new names are durable on return.
void move_shards(const std::filesystem::path& from, const std::filesystem::path& to, bool sync);

/// Names of the folder's files, ascending; none where it is no folder.
std::vector<std::string> files_in_folder(const std::filesystem::path& folder);

/// The list of shards in OUT.d that go when the OUT whose structure has the checksum `digest` has
/// taken its name: a run that is killed then leaves it to the next one to remove them. It counts
/// for that OUT alone, and holds names of shards alone, whoever wrote it.
std::set<std::string> read_replaced_list(const std::filesystem::path& folder, uint64_t digest);
/// Writes it, durably with `sync`.
void write_replaced_list(const std::filesystem::path& folder, uint64_t digest,
                         const std::set<std::string>& names, bool sync);
/// True where the folder holds a list for any OUT.
bool holds_replaced_list(const std::filesystem::path& folder);
/// Removes the lists for any OUT.
void remove_replaced_lists(const std::filesystem::path& folder);

/// Removes these files, where they are there, and the folder where nothing else stands in it.
void remove_files(const std::filesystem::path& folder, const std::set<std::string>& names);

}  // namespace attnscope
