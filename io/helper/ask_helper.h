#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "io/helper/helper_question.h"

namespace attnscope {

/// The program that this process starts to have files read that may crash or hang who reads them.
struct HelperProgram {
  std::string path;                    ///< of a program that calls serve_helper
  std::vector<std::string> arguments;  ///< with which it does nothing else
  /// Limits for all questions together that end without an answer; every question has a second.
  std::chrono::milliseconds processor_time{8'000};  ///< that the helper computes
  /// In which it does not even compute, because it is given no processor or waits for a disk.
  std::chrono::milliseconds standstill{60'000};
};

/// Names the helper's program; to be called by every host (a command line, a module of another
/// language) before files are read. A helper that was started before is ended. Thread-safe.
void set_helper_program(HelperProgram program);

/// The answer to a question about `file`, from the helper process, which the first question starts
/// and which ends with this process. Whatever becomes of the helper, this process goes on: the next
/// question finds a new one. A helper's failure counts against a file only where it is the first
/// that this helper was asked about, so the same is asked of a new one otherwise. Throws
/// - what the answering function threw, with its code;
/// - Error(file) where the helper crashes or computes without an end: the file is damaged;
/// - Error(resource) where it was killed from outside, or was given no processor or no answer by
///   the disk: nothing is known of the file;
/// - Error(resource) or Error(unavailable) where no helper can be started;
/// - Error(interrupted) after a stop was requested.
/// Thread-safe; threads wait for each other's answers.
Json ask_helper(const HelperQuestion& question, const std::string& file,
                const Json& arguments = Json::object(), const std::stop_token& stop = {});

}  // namespace attnscope
