# How checks are built: a program for each chapter, and one for each wrong version.

# The programs of the checks link many libraries: gold takes a third of the usual linker's time.
find_program(GOLD_LINKER ld.gold)
mark_as_advanced(GOLD_LINKER)

# doctest's main takes 4 s to compile: every test program shares this one. What only tests are made of
# (checks, and wrong versions of parts) is compiled with less optimization than what they check, since
# there is far more of it to compile than to run.
add_library(doctest_main OBJECT EXCLUDE_FROM_ALL tests/support/doctest_main.cpp)
add_library(check_support OBJECT EXCLUDE_FROM_ALL tests/support/all_close.cpp
  tests/support/every_assertion.cpp tests/support/guarded_memory.cpp tests/support/refuses.cpp
  tests/support/wrong_version.cpp)
# The same for programs in which a reader's part is linked: doctest's signal handlers call malloc, and
# would wait for ever if the part has spoilt malloc's memory.
add_library(doctest_main_of_parts OBJECT EXCLUDE_FROM_ALL tests/support/doctest_main.cpp)
target_compile_definitions(doctest_main_of_parts PRIVATE T2T_OF_PARTS DOCTEST_CONFIG_NO_POSIX_SIGNALS)
foreach(support doctest_main check_support doctest_main_of_parts)
  target_include_directories(${support} PRIVATE tests)
  target_link_libraries(${support} common)
endforeach()
function(t2t_only_for_tests target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=[a-z,]*undefined")
    # Undefined behaviour in a check ends it by a trap, without a report: that compiles in less time.
    target_compile_options(${target} PRIVATE -fsanitize-undefined-trap-on-error)
  endif()
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
t2t_only_for_tests(check_support)

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
  target_link_libraries(${name}_test doctest_main check_support ${test_UNPARSED_ARGUMENTS})
  add_test(NAME ${test_AS} COMMAND ${name}_test)
  file(GLOB fixtures CONFIGURE_DEPENDS tests/fixtures/${name}/*)
  t2t_passes(${test_AS} COMMAND $<TARGET_FILE:${name}_test> DEPENDS ${name}_test ${fixtures})
  add_dependencies(checks ${name}_test)
endfunction()

# What tests/wrong/switches.py finds in the patches: which of them can be compiled together.
file(GLOB_RECURSE patches CONFIGURE_DEPENDS tests/wrong/*.patch)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patches})
execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/wrong/switches.py plan
  OUTPUT_FILE ${CMAKE_BINARY_DIR}/wrong_versions.cmake COMMAND_ERROR_IS_FATAL ANY)
include(${CMAKE_BINARY_DIR}/wrong_versions.cmake)

# The wrong versions of tests/wrong/NAME: parts of a chapter with mistakes patched in. NAME_wrong_PART
# has all mistakes of a part that change nothing but bodies of functions; NAME_MISTAKE has one of the
# others. Both are linked before the library, so that they take the real part's place under the checks.
# ENDING says which: .cpp, or .cu for kernels.
function(t2t_wrong_versions name ending checks library)
  foreach(part ${T2T_PARTS_${name}})
    if(part MATCHES "[.]${ending}$")
      string(REPLACE / _ variable ${part})
      get_filename_component(stem ${part} NAME_WE)
      set(mistakes ${T2T_MISTAKES_${name}_${variable}})
      list(TRANSFORM mistakes REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/tests/wrong/${name}/\\1.patch"
        OUTPUT_VARIABLE patches)
      set(made ${CMAKE_BINARY_DIR}/wrong/${name}/${stem}.cpp)
      add_custom_command(OUTPUT ${made} VERBATIM
        DEPENDS ${part} ${patches} tests/wrong/switches.py commands/lib/workbook/source.py
        COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/wrong/switches.py write ${part} ${made} ${patches})
      t2t_wrong_program(${name}_wrong_${stem} ${made} ${checks} ${library} ${ending})
      foreach(mistake ${mistakes})
        t2t_rejects(${name} ${mistake} ${name}_wrong_${stem})
      endforeach()
    endif()
  endforeach()
  foreach(mistake ${T2T_ALONE_${name}})
    t2t_patched(${name} ${mistake} ${CMAKE_SOURCE_DIR}/tests/wrong/${name}/${mistake}.patch)
    if(part MATCHES "[.]${ending}$")
      t2t_wrong_program(${name}_${mistake} ${made} ${checks} ${library} ${ending})
      t2t_rejects(${name} ${mistake} ${name}_${mistake})
    endif()
  endforeach()
  # Kernels in races/ give right numbers on the stand-in: only the race detector can reject them.
  if(ending STREQUAL cu AND CMAKE_CXX_FLAGS MATCHES "fsanitize=thread")
    file(GLOB races CONFIGURE_DEPENDS tests/wrong/${name}/races/*.patch)
    foreach(patch ${races})
      get_filename_component(mistake ${patch} NAME_WE)
      t2t_patched(${name} ${mistake} ${patch})
      t2t_wrong_program(${name}_${mistake} ${made} ${checks} ${library} cu)
      add_test(NAME ${name}/races/${mistake} COMMAND ${name}_${mistake})
      set_tests_properties(${name}/races/${mistake} PROPERTIES
        PASS_REGULAR_EXPRESSION "ThreadSanitizer: data race")
      add_dependencies(races ${name}_${mistake})
    endforeach()
  endif()
endfunction()

# Sets `part`, the source that PATCH is for, and `made`, where it is patched.
function(t2t_patched name mistake patch)
  file(STRINGS ${patch} header REGEX "^\\+\\+\\+ b/")
  string(REPLACE "+++ b/" "" part "${header}")
  set(made ${CMAKE_BINARY_DIR}/wrong/${name}/${mistake}.cpp)
  add_custom_command(OUTPUT ${made} VERBATIM DEPENDS ${patch} ${part}
    COMMAND patch --quiet --fuzz=0 --output ${made} ${CMAKE_SOURCE_DIR}/${part} ${patch})
  set(part ${part} PARENT_SCOPE)
  set(made ${made} PARENT_SCOPE)
endfunction()

function(t2t_wrong_program target made checks library ending)
  get_filename_component(folder ${made} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_library(${target}_object OBJECT EXCLUDE_FROM_ALL ${made})
  target_link_libraries(${target}_object ${library})
  target_include_directories(${target}_object PRIVATE tests)
  add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}_object>
    $<TARGET_OBJECTS:${checks}>)
  target_link_libraries(${target} doctest_main check_support ${library})
  if(ending STREQUAL cpp)
    t2t_only_for_tests(${target}_object)
    t2t_only_for_tests(${target})
  endif()
endfunction()

# A reader's cases of a part, from FILE: TARGET makes the part's mistakes as NAME_wrong_PART does, and
# TARGET_MISTAKE makes one of the chapter's others.
function(t2t_examples target file name part)
  add_library(${target}_object OBJECT EXCLUDE_FROM_ALL ${file})
  target_include_directories(${target}_object PRIVATE tests)
  target_link_libraries(${target}_object ${name}_parts)
  t2t_only_for_tests(${target}_object)
  t2t_examples_program(${target} ${name} ${target}_object ${name}_wrong_${part}_object)
  foreach(mistake ${T2T_ALONE_${name}})
    t2t_examples_program(${target}_${mistake} ${name} ${target}_object ${name}_${mistake}_object)
  endforeach()
endfunction()

function(t2t_examples_program target name cases wrong)
  add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${cases}>)
  if(TARGET ${wrong})  # a part may have no mistakes that are compiled together
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${wrong}>)
  endif()
  target_link_libraries(${target} doctest_main_of_parts check_support ${name}_parts)
endfunction()

# NAME_rejects_MISTAKE: the checks of NAME have rejected the mistake that PROGRAM can make.
function(t2t_rejects name mistake program)
  set(stamp ${CMAKE_BINARY_DIR}/rejected/${name}/${mistake})
  file(GLOB record CONFIGURE_DEPENDS tests/wrong/${name}/failing_checks.json)
  set(reject ${CMAKE_SOURCE_DIR}/tests/wrong/expect_rejected.py)
  add_custom_command(OUTPUT ${stamp} VERBATIM JOB_POOL runs DEPENDS ${program} ${reject} ${record}
    COMMAND python3 ${reject} ${CMAKE_SOURCE_DIR}/tests/wrong/${name} ${mistake} $<TARGET_FILE:${program}> ${stamp})
  add_custom_target(${name}_rejects_${mistake} DEPENDS ${stamp})
endfunction()

# NAME_passes: COMMAND has ended well since its programs and whatever else it DEPENDS on have changed.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
set_property(GLOBAL PROPERTY JOB_POOLS runs=${cores})
function(t2t_passes name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;DEPENDS")
  string(REPLACE / _ target ${name}_passes)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/passed)
  set(stamp ${CMAKE_BINARY_DIR}/passed/${target})
  add_custom_command(OUTPUT ${stamp} VERBATIM JOB_POOL runs
    DEPENDS ${arg_DEPENDS} ${CMAKE_SOURCE_DIR}/tests/expect_passed
    COMMAND ${CMAKE_SOURCE_DIR}/tests/expect_passed ${name} ${stamp} ${arg_COMMAND})
  add_custom_target(${target} DEPENDS ${stamp})
  add_dependencies(tests ${target})
endfunction()
