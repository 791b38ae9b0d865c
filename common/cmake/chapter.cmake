# What the CMakeLists.txt of a chapter calls besides CMake's own commands.

# To read these takes longer than the rest of most files' compilation: it is done once, for all.
set(T2T_LONG_HEADERS ${PROJECT_SOURCE_DIR}/common/tensor.hpp <xsimd/xsimd.hpp> <fmt/format.h>
  <filesystem> <functional> <optional> <string> <variant> <vector>)
# Lets all targets of a folder use what was read for common.
function(t2t_precompiled_headers folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(own ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$" AND NOT own)
      target_precompile_headers(${target} REUSE_FROM common)
    endif()
  endforeach()
endfunction()

# t2t_test(NAME FILES a_test.cpp … LINK …): NAME_test runs the checks of these files of tests/. ctest knows them as
# NAME, or as what AS says. They find fixtures in tests/fixtures/NAME.
function(t2t_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "AS" "FILES;LINK")
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT arg_AS)
    set(arg_AS ${name})
  endif()
  list(TRANSFORM arg_FILES PREPEND ${PROJECT_SOURCE_DIR}/tests/)
  add_executable(${name}_test ${arg_FILES})
  target_compile_definitions(${name}_test PRIVATE
    T2T_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures/${name}")
  target_link_libraries(${name}_test PRIVATE doctest_main check_support ${arg_LINK})
  t2t_only_for_tests(${name}_test)
  add_test(NAME ${arg_AS} COMMAND ${name}_test)
  add_dependencies(checks ${name}_test)
endfunction()

# For a target that only shows, reads or tests something: little is optimized, and five of its files at a time are
# compiled as one. Most of a file's time goes to what its headers instantiate, which is then done once for the five.
function(t2t_little_work target)
  target_compile_options(${target} PRIVATE ${T2T_LITTLE_WORK})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
endfunction()

# t2t_bench(NAME FILES bench.cpp LINK …): NAME_bench times the chapter's work beside its limits.
function(t2t_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK")
  if(TARGET bench_main)
    add_executable(${name}_bench EXCLUDE_FROM_ALL ${arg_FILES})
    target_link_libraries(${name}_bench PRIVATE bench_main ${arg_LINK})
    add_dependencies(benches ${name}_bench)
  endif()
endfunction()

# t2t_kernels(NAME FILES a.cu … LINK …): CUDA kernels, built in two ways from the same sources: NAME_stand_in with the
# C++ compiler, for any CPU; and NAME_gpu with nvcc, where there is a toolkit. Both define the same functions, and a
# program is linked with one of them. LINK names host libraries, and OTHER_kernels for those of OTHER.
function(t2t_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK")
  # The C++ compiler compiles each .cu by way of a source of one line that includes it.
  set(includers)
  foreach(file ${arg_FILES})
    set(includer ${CMAKE_CURRENT_BINARY_DIR}/stand_in/${file}.cpp)
    file(CONFIGURE OUTPUT ${includer} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
    list(APPEND includers ${includer})
  endforeach()
  add_library(${name}_stand_in EXCLUDE_FROM_ALL ${includers})
  # For a misaligned or null access, the compiled code calls the function in misaligned.cpp.
  target_compile_options(${name}_stand_in PRIVATE -fsanitize=alignment,null
    -fsanitize-recover=alignment,null)
  target_link_libraries(${name}_stand_in PUBLIC cpu)
  set_target_properties(${name}_stand_in PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  set(ways stand_in)
  if(TARGET gpu)
    list(APPEND ways gpu)
    add_library(${name}_gpu EXCLUDE_FROM_ALL ${arg_FILES})
    target_link_libraries(${name}_gpu PUBLIC gpu)
    set_target_properties(${name}_gpu PROPERTIES CUDA_RUNTIME_LIBRARY Static
      DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  foreach(way ${ways})
    foreach(library ${arg_LINK})
      string(REGEX REPLACE "_kernels$" "_${way}" built "${library}")
      target_link_libraries(${name}_${way} PUBLIC ${built})
    endforeach()
  endforeach()
endfunction()

# t2t_kernel_test(NAME FILES …): the checks of NAME's kernels on the stand-in, NAME_kernels_test, also with its threads in
# another order; and on a GPU, NAME_gpu_test. Without a GPU the latter is skipped, unless T2T_REQUIRE_GPU=1.
function(t2t_kernel_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES")
  if(NOT BUILD_TESTING)
    return()
  endif()
  t2t_test(${name}_kernels AS ${name}/kernels FILES ${arg_FILES} LINK ${name}_stand_in)
  add_test(NAME ${name}/kernels_shuffled COMMAND ${name}_kernels_test)
  set_tests_properties(${name}/kernels_shuffled PROPERTIES ENVIRONMENT T2T_ORDER=1)
  t2t_gpu_test(${name} FILES ${arg_FILES})
endfunction()
function(t2t_gpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES")
  if(TARGET gpu)
    list(TRANSFORM arg_FILES PREPEND ${PROJECT_SOURCE_DIR}/tests/)
    add_executable(${name}_gpu_test ${arg_FILES})
    target_link_libraries(${name}_gpu_test PRIVATE doctest_main check_support ${name}_gpu)
    t2t_only_for_tests(${name}_gpu_test)
    add_test(NAME ${name}/gpu COMMAND on_gpu $<TARGET_FILE:${name}_gpu_test>)
    set_tests_properties(${name}/gpu PROPERTIES SKIP_RETURN_CODE 77 LABELS gpu)
    add_dependencies(checks ${name}_gpu_test)
  endif()
endfunction()

# t2t_gpu_bench(NAME FILES …): NAME_gpu_bench times NAME's kernels on a GPU.
function(t2t_gpu_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES")
  if(TARGET gpu)
    add_executable(${name}_gpu_bench EXCLUDE_FROM_ALL ${arg_FILES})
    target_link_libraries(${name}_gpu_bench PRIVATE ${name}_gpu gpu_timing)
    set_target_properties(${name}_gpu_bench PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    add_dependencies(benches ${name}_gpu_bench)
  endif()
endfunction()

# Only for tests: little optimization; and undefined behaviour in a check ends it by a trap, without a report, which
# compiles in less time.
find_program(GOLD_LINKER ld.gold)
mark_as_advanced(GOLD_LINKER)
function(t2t_only_for_tests target)
  t2t_little_work(${target})
  if(T2T_SANITIZE MATCHES undefined)
    target_compile_options(${target} PRIVATE -fsanitize-undefined-trap-on-error)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE AND GOLD_LINKER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_link_options(${target} PRIVATE -fuse-ld=gold)  # a third of the usual linker's time
  endif()
  target_precompile_headers(${target} REUSE_FROM doctest_main)
endfunction()
