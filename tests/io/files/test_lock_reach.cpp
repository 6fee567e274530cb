#include <fstream>
#include <string>

#include "io/files/lock_reach.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// As the kernel says it, of mounts 31 to 40.
const std::string kMounts =
    "31 27 0:40 / /a rw,relatime shared:5 - nfs4 host:/x "
    "rw,vers=4.2,local_lock=none,addr=10.0.0.1\n"
    "32 27 0:41 / /b rw,relatime - nfs host:/x rw,vers=3,nolock,local_lock=all,addr=10.0.0.1\n"
    "33 27 0:42 / /c rw shared:7 master:2 - nfs4 host:/x rw,local_lock=posix\n"
    "34 27 0:43 / /d rw - lustre 10.0.0.1@tcp:/x rw,flock,lazystatfs\n"
    "35 27 0:44 / /e rw - lustre 10.0.0.1@tcp:/x rw,localflock\n"
    "36 27 0:45 / /f rw - fuse.sshfs me@host: rw,user_id=0\n"
    "37 27 0:46 / /g rw - fuse.glusterfs host:/x rw,user_id=0\n"
    "38 27 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "39 27 0:47 / /h rw - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/beegfs-client.conf\n"
    "40 27 0:48 / /nolock rw - cifs //host/x rw,vers=3.0,nobrl\n";

}  // namespace

TEST_CASE("a mount tells whether its locks reach other hosts") {
  CHECK(locks_of_one_host(kMounts, 31).empty());
  CHECK(locks_of_one_host(kMounts, 32) == "nfs, nolock");
  CHECK(locks_of_one_host(kMounts, 33) == "nfs4, local_lock=posix");
  CHECK(locks_of_one_host(kMounts, 34).empty());
  CHECK(locks_of_one_host(kMounts, 35) == "lustre, localflock");
  CHECK(locks_of_one_host(kMounts, 36) == "fuse.sshfs");
  CHECK(locks_of_one_host(kMounts, 37).empty());
  CHECK(locks_of_one_host(kMounts, 38).empty());
  CHECK(locks_of_one_host(kMounts, 39) == "beegfs, unless tuneUseGlobalFileLocks is on");
  CHECK(locks_of_one_host(kMounts, 40) == "cifs, nobrl");
  CHECK(locks_of_one_host(kMounts, 41).empty());
  CHECK(locks_of_one_host("32", 32).empty());
  CHECK(locks_of_one_host("", 1).empty());
}

TEST_CASE("a file of this host has locks that reach all that there is") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "here";
  CHECK(locks_of_one_host(folder / "file").empty());
  CHECK(locks_of_one_host(folder / "none").empty());
}
