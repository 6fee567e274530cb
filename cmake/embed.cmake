# Writes a C++ file with the bytes of another file, without a tool beside CMake.
# cmake -DFILE=… -DHEADER=… -DFUNCTION=… -DOUTPUT=… -P embed.cmake
# HEADER (of the project) declares std::span<const unsigned char> attnscope::FUNCTION().
file(READ "${FILE}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
# A string literal compiles in a fraction of the time that a list of numbers takes.
string(REGEX REPLACE "(..)" "\\\\x\\1" literal "${hex}")
string(REPEAT "." 96 line)
string(REGEX REPLACE "(${line})" "\\1\"\n\"" literal "${literal}")
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"

namespace attnscope {
namespace {

const char kBytes[] =
\"${literal}\";

}  // namespace

std::span<const unsigned char> ${FUNCTION}() {
  return {reinterpret_cast<const unsigned char*>(kBytes), ${bytes}};
}

}  // namespace attnscope
")
