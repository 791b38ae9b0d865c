# The checks that belong to no chapter: of the tensor core, of the CUDA stand-in, and of ./learn.

t2t_test(common
  common MORE common/memory common/folder_lock common/named_files common/tasks common/weight)
t2t_bench(common tests/common_bench.cpp common)

# What kernels may use, on the stand-in and on a GPU; and the mistakes that the stand-in catches.
t2t_kernels(cuda FILES tests/kernels/block_features.cu tests/kernels/warp_features.cu)
t2t_test(cuda cuda_stand_in)
t2t_gpu_test(cuda cuda_checks)
t2t_wrong_versions(cuda cpp cuda_checks cuda_stand_in)
t2t_kernels(cuda_faults FILES tests/kernels/faults.cu tests/kernels/twin.cu)
t2t_test(cuda_faults cuda_faults_stand_in)
t2t_wrong_versions(cuda_faults cpp cuda_faults_checks cuda_faults_stand_in)
t2t_reports(address "AddressSanitizer.*NAME" past_dynamic past_global)
t2t_reports(undefined "insufficient space" past_static)
t2t_reports(thread "data race.*NAME" missing_barrier copy_without_barrier copy_over_readers
  shuffle_for_a_fence into_the_neighbour lost_update)

add_dependencies(races cuda_test cuda_faults_test fault)

# What ./learn start, check, hint and example do, also with a part that crashes or never ends; and locate, with
# a model of random numbers.
add_executable(hostile EXCLUDE_FROM_ALL tests/workbook/hostile.cpp)
target_link_libraries(hostile doctest_main_of_parts check_support)
t2t_only_for_tests(hostile)
add_executable(tiny_model EXCLUDE_FROM_ALL tests/workbook/tiny_model.cpp)
target_link_libraries(tiny_model 10_pretrained_parts)
t2t_examples(workbook_examples tests/workbook/rms_norm_examples.cpp 02_normalization rms_norm)
file(GLOB_RECURSE text CONFIGURE_DEPENDS learn commands/* docs/*.* README.md chapters/*.* chapters/*/about
  common/*.* tests/*.cpp tests/*.hpp tests/*.py tests/*.sh tests/*.patch tests/*.json)
list(FILTER text EXCLUDE REGEX __pycache__)
add_dependencies(tests hostile tiny_model trace_texts workbook_examples 02_normalization_wrong_rms_norm
  02_normalization_wrong_layer_norm)

# What precompiled headers hide: a file that does not include what it uses.
t2t_passes(includes DEPENDS ${text} COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/includes_test.py)

# What ./learn and the programs refuse, and whether the pages say what the programs print.
get_property(programs GLOBAL PROPERTY T2T_PROGRAMS)
t2t_passes(learn DEPENDS ${programs} common_bench tiny_model ${text}
  COMMAND ${CMAKE_SOURCE_DIR}/tests/learn_test.sh ${CMAKE_BINARY_DIR})
t2t_passes(pages DEPENDS ${programs} 02_normalization_wrong_rms_norm workbook_examples ${text}
  COMMAND ${CMAKE_SOURCE_DIR}/commands/lib/pages.sh --check)
t2t_passes(10_pretrained/weights DEPENDS 10_pretrained_weights_test
  COMMAND $<TARGET_FILE:10_pretrained_weights_test>)
