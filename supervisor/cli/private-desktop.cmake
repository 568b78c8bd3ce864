# The desktop of our own that the demo, the doctor and the tests act on.
pkg_check_modules(PRIVATE_DESKTOP REQUIRED IMPORTED_TARGET dbus-1 xcb)
add_library(private_desktop STATIC
  "${CMAKE_CURRENT_LIST_DIR}/private-desktop-linux.cc" "${CMAKE_CURRENT_LIST_DIR}/keeper-linux.cc"
  "${CMAKE_CURRENT_LIST_DIR}/bus-connection-linux.cc")
# libdbus spells its type codes with C casts.
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/private-desktop-linux.cc"
  "${CMAKE_CURRENT_LIST_DIR}/bus-connection-linux.cc"
  PROPERTIES COMPILE_OPTIONS -Wno-old-style-cast)
target_link_libraries(private_desktop
  PUBLIC praefectus::headers CapnProto::kj
  PRIVATE praefectus::options PkgConfig::PRIVATE_DESKTOP)
add_library(praefectus::private_desktop ALIAS private_desktop)
