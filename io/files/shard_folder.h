#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace attnscope {

/// Removes a folder of shards, and nothing else: a file that is no shard keeps the folder there, as
/// an Error(file), like something of that name that is no folder. Does nothing where there is none.
void remove_shards(const std::filesystem::path& folder);

/// Gives everything in the folder `from` the same name in `to`, which is created where it is
/// missing, and removes `from`; what was not written to its end (.tmp) goes. Files of `to` stay,
/// but for those of a name that comes. A kill leaves each file in one of the folders. With `sync`
/// the new names are durable on return. Throws Error(file).
void move_shards(const std::filesystem::path& from, const std::filesystem::path& to, bool sync);

/// Removes the shards (step….h5) of a folder whose names are not `kept`, and its list of replaced
/// ones; other files stay. Does nothing where there is no such folder. Throws Error(file).
void remove_other_shards(const std::filesystem::path& folder, const std::set<std::string>& kept);

/// Lists in the folder, durably with `sync`, which of its files belong to an export that is about
/// to be replaced by one without shards: a run that is killed after that leaves it to the next one
/// to remove them. Throws Error(file).
void list_replaced_shards(const std::filesystem::path& folder, const std::set<std::string>& names,
                          bool sync);

/// Removes the files of that list but those of `kept`, then the list, and the folder where nothing
/// else stands in it. Gives the names of what does, ascending. Does nothing where there is no list.
/// Throws Error(file).
std::vector<std::string> remove_listed_shards(const std::filesystem::path& folder,
                                              const std::set<std::string>& kept);

}  // namespace attnscope
