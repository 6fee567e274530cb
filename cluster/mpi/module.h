#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/version.h"

/// Where the MPI module (attnscope_mpi.so) and the program meet. The program looks the functions
/// below up by name after it has loaded the module; nothing else of the module is visible.
namespace attnscope {

/// The processes of a job, from one of them. Every call may be made from any thread; those that all
/// processes make together, from one at a time and in the same order everywhere.
class TeamLink {
 public:
  virtual ~TeamLink() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Among the processes of this host.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;

  /// Everybody's `mine`, by rank; all call it together. Waits for all for `seconds` at most (0: for
  /// ever); false when that was too long, and then nothing but stop_all() may follow.
  virtual bool gather_numbers(int64_t mine, int64_t* all, double seconds) = 0;
  /// `bytes` of rank `from` to everybody; all call it together with the same count.
  virtual bool send(int from, char* bytes, int64_t count, double seconds) = 0;
  /// `bytes` of rank `from`, which is not 0, to rank 0; these two call it, with the same count.
  virtual bool pass(int from, char* bytes, int64_t count, double seconds) = 0;
  /// Every number becomes the sum of all ranks' at its place; all call it together.
  virtual bool add_up(int64_t* numbers, int64_t count, double seconds) = 0;
  /// Adds to one of the job's two numbers, which begin as 0, and returns what it was.
  virtual int64_t add(int number, int64_t value) = 0;
  /// The last call of a process that ends in order; waits for the others.
  virtual void leave() = 0;
  /// Ends all processes of the job, this one too.
  virtual void stop_all(int code) = 0;
};

constexpr const char* kMpiModuleFile = "attnscope_mpi.so";
constexpr const char* kMpiModuleAbiName = "attnscope_mpi_abi";
constexpr const char* kMpiModuleJoinName = "attnscope_mpi_join";

/// Equal in a program and a module that fit together. The number is raised with TeamLink.
inline std::string mpi_module_abi() {
  return "attnscope " + std::string(version()) + ", MPI module 2";
}

}  // namespace attnscope

extern "C" {

#define ATTNSCOPE_MPI_ENTRY __attribute__((visibility("default")))

/// mpi_module_abi() of the module's build; the text lives as long as the module.
ATTNSCOPE_MPI_ENTRY const char* attnscope_mpi_abi();

/// Starts MPI and joins the job. The caller deletes what it returns; null where MPI cannot be used,
/// and then `reason` has one line that says why, cut to fit. To be called once.
ATTNSCOPE_MPI_ENTRY attnscope::TeamLink* attnscope_mpi_join(char* reason, size_t reason_bytes);

}  // extern "C"
