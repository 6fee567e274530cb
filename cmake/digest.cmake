# Writes the files of FOLDER that FILES names (a list with commas), one after the other and without their lines of
# comment, as SCRIPT, and a C++ file with its SHA-256 in base64, by which a page names the script that it allows.
# cmake -DFOLDER=… -DFILES=… -DSCRIPT=… -DOUTPUT=… -DHEADER=… -DFUNCTION=… -P digest.cmake
# HEADER (of the project) declares std::string_view attnscope::FUNCTION().
set(script "${SCRIPT}")
string(REPLACE "," ";" files "${FILES}")
file(WRITE "${script}" "")
foreach(name IN LISTS files)
  file(READ "${FOLDER}/${name}" text)
  string(REGEX REPLACE "(^|\n)[ ]*//[^\n]*" "" text "${text}")
  file(APPEND "${script}" "${text}")
endforeach()
file(SHA256 "${script}" hex)
set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
string(APPEND hex "00")  # 33 bytes: 44 digits, the last of which stands for the byte too many
set(text "")
foreach(at RANGE 0 60 6)
  string(SUBSTRING "${hex}" ${at} 6 triple)
  math(EXPR bits "0x${triple}")
  foreach(shift 18 12 6 0)
    math(EXPR digit "(${bits} >> ${shift}) & 63")
    string(SUBSTRING "${digits}" ${digit} 1 letter)
    string(APPEND text "${letter}")
  endforeach()
endforeach()
string(SUBSTRING "${text}" 0 43 text)
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"

namespace attnscope {

std::string_view ${FUNCTION}() { return \"${text}=\"; }

}  // namespace attnscope
")
