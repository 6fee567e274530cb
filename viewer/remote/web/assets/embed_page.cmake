# Writes the C++ file that has a page's files in it, gzipped, without a tool beside CMake.
# cmake "-DFILES=a;b" -DOUTPUT=… -P embed_page.cmake
# index.html becomes "/", every other file "/" and its name.
set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_wasm "application/wasm")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ttf "font/ttf")
set(type_data "application/octet-stream")

string(REPEAT "." 96 line)
set(arrays "")
set(table "")
set(index 0)
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  get_filename_component(ending "${file}" LAST_EXT)
  string(REGEX REPLACE "^\\." "" ending "${ending}")
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${file}: no media type is known of files of this name")
  endif()
  set(gzipped "${OUTPUT}.${index}.gz")
  file(ARCHIVE_CREATE OUTPUT "${gzipped}" PATHS "${file}" FORMAT raw COMPRESSION GZip
       COMPRESSION_LEVEL 9)
  file(READ "${gzipped}" hex HEX)
  file(REMOVE "${gzipped}")
  # The same page gives the same program: when it was packed (bytes 4 to 7) is nobody's business.
  string(REGEX REPLACE "^(1f8b....)........" "\\100000000" hex "${hex}")
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  # A string literal compiles in a fraction of the time that a list of numbers takes.
  string(REGEX REPLACE "(..)" "\\\\x\\1" literal "${hex}")
  string(REGEX REPLACE "(${line})" "\\1\"\n\"" literal "${literal}")
  string(APPEND arrays "const char kFile${index}[] =\n\"${literal}\";\n")
  if(name STREQUAL "index.html")
    set(name "")
  endif()
  string(APPEND table "    {\"/${name}\", \"${type_${ending}}\", bytes(kFile${index}, ${bytes})},\n")
  math(EXPR index "${index} + 1")
endforeach()

set(begin "#include \"viewer/remote/web/assets/web_assets.h\"\n\nnamespace attnscope {\n")
if(index EQUAL 0)
  file(WRITE "${OUTPUT}"
       "${begin}\nstd::span<const WebAsset> web_assets() { return {}; }\n\n}  // namespace attnscope\n")
  return()
endif()
file(WRITE "${OUTPUT}" "${begin}namespace {

${arrays}
std::span<const unsigned char> bytes(const char* begin, std::size_t size) {
  return {reinterpret_cast<const unsigned char*>(begin), size};
}

}  // namespace

std::span<const WebAsset> web_assets() {
  static const WebAsset all[] = {
${table}  };
  return all;
}

}  // namespace attnscope
")
