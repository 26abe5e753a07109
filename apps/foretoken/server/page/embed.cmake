# cmake -D OUTPUT=page_files.cc -P embed.cmake: writes C++ that defines PageFiles() (page.h) from the
# files beside this script and in its folders. index.html becomes "/", any other file "/page/PATH".
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB_RECURSE files RELATIVE ${CMAKE_CURRENT_LIST_DIR}
     ${CMAKE_CURRENT_LIST_DIR}/*.html ${CMAKE_CURRENT_LIST_DIR}/*.css
     ${CMAKE_CURRENT_LIST_DIR}/*.js ${CMAKE_CURRENT_LIST_DIR}/*.svg)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  set(path "/page/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} body)
  string(APPEND entries
         "    {\"${path}\", \"${type_${extension}}\", R\"FT_PAGE(${body})FT_PAGE\"},\n")
endforeach()

file(WRITE ${OUTPUT} "// Written by embed.cmake.
#include \"apps/foretoken/server/page/page.h\"

namespace foretoken::server {
namespace {

constexpr PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace foretoken::server
")
