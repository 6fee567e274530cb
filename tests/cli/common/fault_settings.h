#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace attnscope::test {

/// The program with what fault.cpp reads from the environment, NAME=VALUE each.
ProgramSettings with_faults(std::vector<std::string> variables);

/// The program with its `number`-th call of `kind` ("pwrite", "fsync", "stop-read" …) failing or
/// ending it; −1: none, and `count` gets how many there were.
ProgramSettings with_fault(const std::string& kind, long number, const std::string& count = "");

/// How many calls of `kind` a run has. Throws where it does not end well.
long calls_of(const std::vector<std::string>& arguments, const std::string& kind);

/// Runs `arguments` and `-o out` and sends it the signal before the middle one of its reads; with
/// the reference backend, which reads row after row, that is in the midst of what it computes.
ProgramResult stop_in_the_midst(std::vector<std::string> arguments, const std::string& out,
                                int signal = SIGTERM);

}  // namespace attnscope::test
