# How a chapter is built: its library, program, checks and bench, and the same with the reader's parts.

# The files of a chapter, each in its room: a word that ends in / is the room of those that follow it.
function(t2t_in_rooms variable folder)
  set(room)
  set(files)
  foreach(word ${ARGN})
    if(word MATCHES "/$")
      set(room ${word})
    else()
      list(APPEND files ${folder}${room}${word})
    endif()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# What a reader wrote, work/NN_name/PART.cpp, takes our part's place: under the chapter's checks in
# mine_NN_name_PART, and, if mine.cmake lists it as NN_name/PART, in the programs and benches of --mine.
# It is built from a copy of its text in the build's folder mine/, for which commands/lib/written.sh cares.
# Cases of a reader's own, work/NN_name/PART_examples.cpp, are built in mine_NN_name_PART_examples.
include(${CMAKE_BINARY_DIR}/mine.cmake OPTIONAL)
function(t2t_written name)
  file(GLOB written CONFIGURE_DEPENDS ${CMAKE_BINARY_DIR}/mine/${name}/*.cpp)
  foreach(file ${written})
    get_filename_component(part ${file} NAME_WE)
    if(part MATCHES "^(.+)_examples$" AND CMAKE_MATCH_1 IN_LIST ARGN)
      t2t_examples(mine_${name}_${part} ${file} ${name} ${CMAKE_MATCH_1})
    endif()
    if(NOT part IN_LIST ARGN)
      continue()
    endif()
    set(mine mine_${name}_${part})
    add_executable(${mine} EXCLUDE_FROM_ALL ${file} $<TARGET_OBJECTS:${name}_checks>)
    target_link_libraries(${mine} doctest_main_of_parts check_support ${name}_shows)
    target_compile_options(${mine} PRIVATE -Wno-unused-parameter)
    t2t_only_for_tests(${mine})
    t2t_watched(${mine} ${file} ${name})
    if(${name}/${part} IN_LIST T2T_MINE)
      add_library(${mine}_object OBJECT EXCLUDE_FROM_ALL ${file})
      target_link_libraries(${mine}_object ${name}_parts)
      target_precompile_headers(${mine}_object REUSE_FROM common)
      set_property(TARGET ${name}_parts APPEND PROPERTY T2T_MINE $<TARGET_OBJECTS:${mine}_object>)
    endif()
  endforeach()
endfunction()

# MINE_races: the checks of chapter NN_name on what a reader wrote, where ThreadSanitizer watches FILE.
# OpenMP of compilers other than GNU's has no stand-in.
if(CMAKE_SYSTEM_NAME STREQUAL Linux AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_library(watched_threads OBJECT EXCLUDE_FROM_ALL tests/support/watched_threads.cpp)
  target_compile_features(watched_threads PRIVATE cxx_std_20)
  target_compile_options(watched_threads PRIVATE -fsanitize=thread)
endif()
function(t2t_watched mine file name)
  if(TARGET watched_threads)
    add_executable(${mine}_races EXCLUDE_FROM_ALL ${file} $<TARGET_OBJECTS:${name}_checks>)
    target_link_libraries(${mine}_races watched_threads doctest_main_of_parts check_support ${name}_shows)
    target_compile_options(${mine}_races PRIVATE -w -O1 -g1 -fsanitize=thread)
    target_link_options(${mine}_races PRIVATE -fsanitize=thread)
  endif()
endfunction()

# PROGRAM_mine: a program or bench of a chapter, linked with the reader's parts of that chapter and of
# those that it builds on before the libraries that hold ours.
function(t2t_with_mine program chapter)
  if(T2T_MINE)
    get_property(objects TARGET ${chapter}_parts PROPERTY T2T_MINE)
    list(REMOVE_DUPLICATES objects)  # a chapter may build on two that build on a third, or on none
    add_executable(${program}_mine EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${program}> ${objects})
    get_target_property(libraries ${program} LINK_LIBRARIES)
    target_link_libraries(${program}_mine ${libraries})
  endif()
endfunction()

# NAME_shows: what a chapter's program shows and does by its flags, for that program and those of later
# chapters. It does no work of its own, so it is compiled with less optimization than the parts.
function(t2t_shows name after)
  if(ARGN)
    add_library(${name}_shows ${ARGN})
    target_compile_options(${name}_shows PRIVATE $<$<CONFIG:Release>:-Og>)
    target_precompile_headers(${name}_shows REUSE_FROM common)
    target_link_libraries(${name}_shows PUBLIC ${after} ${name}_parts)
  else()
    add_library(${name}_shows INTERFACE)
    target_link_libraries(${name}_shows INTERFACE ${after} ${name}_parts)
  endif()
endfunction()

# NAME_parts, from these files, or from the build in the folder T2T_PARTS_FROM if that is set.
function(t2t_parts name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK")
  if(T2T_PARTS_FROM)
    set(built ${T2T_PARTS_FROM}/lib${name}_parts.a)
    if(NOT EXISTS ${built})
      message(FATAL_ERROR "${built} is missing. This preset watches kernels alone and takes the parts "
        "of chapters from the preset release: build that first (./learn test)")
    endif()
    add_library(${name}_parts STATIC IMPORTED)
    set_target_properties(${name}_parts PROPERTIES IMPORTED_LOCATION ${built})
    target_link_libraries(${name}_parts INTERFACE common ${arg_LINK})
  else()
    add_library(${name}_parts ${arg_FILES})
    target_link_libraries(${name}_parts PUBLIC common ${arg_LINK})
    target_precompile_headers(${name}_parts REUSE_FROM common)
  endif()
endfunction()

# Chapter NN_name: its parts become a library that later chapters link, and so do its shows. Its
# main.cpp becomes the program, and answers.cpp, if there is one, computes what it answers to the
# page's problems. AFTER names the chapters that it builds on, LINK other libraries, MORE_TESTS files
# of tests/NN_name.
function(t2t_chapter name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PARTS;SHOWS;AFTER;LINK;MORE_TESTS")
  t2t_in_rooms(parts chapters/${name}/ ${arg_PARTS})
  t2t_in_rooms(shows chapters/${name}/ ${arg_SHOWS})
  list(TRANSFORM arg_AFTER APPEND _parts OUTPUT_VARIABLE after)
  list(TRANSFORM arg_AFTER APPEND _shows OUTPUT_VARIABLE shows_after)
  t2t_parts(${name} FILES ${parts} LINK ${after} ${arg_LINK})
  t2t_shows(${name} "${shows_after}" ${shows})
  file(GLOB answers CONFIGURE_DEPENDS chapters/${name}/answers.cpp)
  add_executable(${name} chapters/${name}/main.cpp ${answers})
  target_link_libraries(${name} ${name}_shows)
  target_precompile_headers(${name} REUSE_FROM common)
  set_property(GLOBAL APPEND PROPERTY T2T_PROGRAMS ${name})
  list(TRANSFORM arg_MORE_TESTS PREPEND ${name}/)
  t2t_test(${name} ${name}_shows MORE ${arg_MORE_TESTS})
  t2t_bench(${name} chapters/${name}/bench.cpp ${name}_parts)
  t2t_wrong_versions(${name} cpp ${name}_checks ${name}_shows)
  foreach(floor ${after})
    get_target_property(objects ${floor} T2T_MINE)
    if(objects)
      set_property(TARGET ${name}_parts APPEND PROPERTY T2T_MINE ${objects})
    endif()
  endforeach()
  list(TRANSFORM parts REPLACE "^.*/(.*)[.]cpp$" "\\1")
  t2t_written(${name} ${parts})
  t2t_with_mine(${name} ${name})
  t2t_with_mine(${name}_bench ${name})
endfunction()

# The kernels of chapter NN_name, with checks of their own: tests/NN_name_kernels_test.cpp runs them
# on the stand-in, and with a CUDA toolkit on a GPU.
# LINK is what t2t_kernels links, MORE_TESTS names files of tests/NN_name.
function(t2t_chapter_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK;MORE_TESTS")
  t2t_in_rooms(files chapters/${name}/ ${arg_FILES})
  list(TRANSFORM arg_MORE_TESTS PREPEND ${name}/)
  t2t_kernels(${name} FILES ${files} LINK ${arg_LINK})
  t2t_test(${name}_kernels ${name}_stand_in AS ${name}/kernels MORE ${arg_MORE_TESTS})
  add_test(NAME ${name}/kernels_shuffled COMMAND ${name}_kernels_test)  # threads in another order
  set_tests_properties(${name}/kernels_shuffled PROPERTIES ENVIRONMENT T2T_ORDER=1)
  t2t_passes(${name}/kernels_shuffled DEPENDS ${name}_kernels_test
    COMMAND ${CMAKE_COMMAND} -E env T2T_ORDER=1 $<TARGET_FILE:${name}_kernels_test>)
  add_dependencies(races ${name}_kernels_test)
  t2t_wrong_versions(${name} cu ${name}_kernels_checks ${name}_stand_in)
  file(GLOB written CONFIGURE_DEPENDS ${CMAKE_BINARY_DIR}/mine/${name}/*.cu)
  foreach(file ${written})
    get_filename_component(part ${file} NAME_WE)
    set(includer ${CMAKE_BINARY_DIR}/stand_in/mine_${name}_${part}.cpp)
    file(CONFIGURE OUTPUT ${includer} CONTENT "#include \"${file}\"\n")
    add_executable(mine_${name}_${part} EXCLUDE_FROM_ALL ${includer}
      $<TARGET_OBJECTS:${name}_kernels_checks>)
    target_link_libraries(mine_${name}_${part} doctest_main_of_parts check_support ${name}_stand_in)
  endforeach()
  t2t_gpu_test(${name} ${name}_kernels_checks)
endfunction()
