# How checks are built: a program for each chapter, and one for each wrong version.

# The programs of the checks link many libraries: gold takes a third of the usual linker's time.
find_program(GOLD_LINKER ld.gold)
mark_as_advanced(GOLD_LINKER)

# doctest's main takes 4 s to compile: every test program shares this one. What only tests are made of
# (checks, and wrong versions of parts) is compiled with less optimization than what they check, since
# there is far more of it to compile than to run.
add_library(doctest_main OBJECT EXCLUDE_FROM_ALL tests/support/doctest_main.cpp
  tests/support/all_close.cpp tests/support/guarded_memory.cpp tests/support/refuses.cpp)
target_include_directories(doctest_main PRIVATE tests)
target_link_libraries(doctest_main common)
function(t2t_only_for_tests target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE AND GOLD_LINKER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_link_options(${target} PRIVATE -fuse-ld=gold)
  endif()
  if(target STREQUAL doctest_main)
    target_precompile_headers(doctest_main PRIVATE ${T2T_LONG_HEADERS} <doctest/doctest.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM doctest_main)
  endif()
endfunction()
t2t_only_for_tests(doctest_main)

# The checks of tests/NAME_test.cpp and of each tests/MORE_test.cpp, linked with what they check. ctest
# knows them by their NAME, or as what AS says.
function(t2t_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "AS" "MORE")
  if(NOT test_AS)
    set(test_AS ${name})
  endif()
  set(checks tests/${name}_test.cpp)
  foreach(more ${test_MORE})
    list(APPEND checks tests/${more}_test.cpp)
  endforeach()
  add_library(${name}_checks OBJECT EXCLUDE_FROM_ALL ${checks})
  target_compile_definitions(${name}_checks PRIVATE
    T2T_FIXTURES="${CMAKE_SOURCE_DIR}/tests/fixtures/${name}")
  target_include_directories(${name}_checks PRIVATE tests)
  target_link_libraries(${name}_checks PUBLIC common)
  t2t_only_for_tests(${name}_checks)
  add_executable(${name}_test EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${name}_checks>)
  target_link_libraries(${name}_test doctest_main ${test_UNPARSED_ARGUMENTS})
  add_test(NAME ${test_AS} COMMAND ${name}_test)
  add_custom_target(${name}_tests DEPENDS ${name}_test)  # what ./learn test NN builds
  add_dependencies(tests ${name}_tests)
  add_dependencies(checks ${name}_test)
endfunction()

# Each wrong version: one part of a chapter, a .cpp or .cu as ENDING says, with a mistake patched in
# is compiled and linked before the library, so that it takes the real part's place under the checks.
# Kernels in races/ give right numbers on the stand-in: only the race detector can reject them.
function(t2t_wrong_versions name ending checks library)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/wrong/${name})
  file(GLOB patches CONFIGURE_DEPENDS tests/wrong/${name}/*.patch)
  set(races)
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread")
    file(GLOB races CONFIGURE_DEPENDS tests/wrong/${name}/races/*.patch)
  endif()
  foreach(patch ${patches} ${races})
    get_filename_component(mistake ${patch} NAME_WE)
    file(STRINGS ${patch} header REGEX "^\\+\\+\\+ b/.*[.]${ending}$")
    if(NOT header)
      continue()
    endif()
    string(REPLACE "+++ b/" "" part "${header}")
    set(patched ${CMAKE_BINARY_DIR}/wrong/${name}/${mistake}.cpp)
    add_custom_command(OUTPUT ${patched} DEPENDS ${patch} ${part}
      COMMAND patch --quiet --fuzz=0 --output ${patched} ${CMAKE_SOURCE_DIR}/${part} ${patch})
    add_executable(${name}_${mistake} EXCLUDE_FROM_ALL ${patched} $<TARGET_OBJECTS:${checks}>)
    target_link_libraries(${name}_${mistake} doctest_main ${library})
    if(ending STREQUAL cpp)
      t2t_only_for_tests(${name}_${mistake})
    endif()
    if(patch IN_LIST races)
      add_test(NAME ${name}/races/${mistake} COMMAND ${name}_${mistake})
      set_tests_properties(${name}/races/${mistake} PROPERTIES
        PASS_REGULAR_EXPRESSION "ThreadSanitizer: data race")
      add_dependencies(races ${name}_${mistake})
    else()
      add_test(NAME ${name}/rejects/${mistake}
        COMMAND ${CMAKE_SOURCE_DIR}/tests/wrong/expect_rejected $<TARGET_FILE:${name}_${mistake}>)
    endif()
    add_dependencies(${name}_tests ${name}_${mistake})
  endforeach()
endfunction()
