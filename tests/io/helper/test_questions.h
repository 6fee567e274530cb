#pragma once

#include <span>

#include "io/helper/helper_question.h"

namespace attnscope::test {

// Questions that only the tests' helper answers.
extern const HelperQuestion kEcho;      ///< its arguments
extern const HelperQuestion kProcess;   ///< its number
extern const HelperQuestion kState;     ///< {"files": […], "blocked", "ignored": masks, "group"}
extern const HelperQuestion kFileSize;  ///< of the file that it is asked about
extern const HelperQuestion kRaise;     ///< the signal of that number
extern const HelperQuestion kLeave;     ///< ends the process
extern const HelperQuestion kGarbage;   ///< answers with what is no message
extern const HelperQuestion
    kCompute;  ///< writes its number to the file of that name, computes without an end
extern const HelperQuestion kNap;        ///< {"naps": of 10 ms each}
extern const HelperQuestion kThrow;      ///< {"code": an ErrorCode, or -1: std::length_error}
extern const HelperQuestion kTakeBytes;  ///< as many
extern const HelperQuestion kSpoil;      ///< makes kFragile fail from then on
extern const HelperQuestion
    kFragile;  ///< crashes ("crash"), fails ("throw") or computes where spoilt

std::span<const HelperQuestion* const> test_questions();

}  // namespace attnscope::test
