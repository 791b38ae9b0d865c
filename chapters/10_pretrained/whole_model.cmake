# The whole model in one file, which links nothing; and what needs the real model's file, a test program
# of its own: T2T_WEIGHTS in the environment names the file.
add_executable(10_whole_model EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/whole_model.cpp)
add_executable(10_pretrained_weights_test EXCLUDE_FROM_ALL
  tests/10_pretrained/weights_test.cpp tests/10_pretrained/whole_weights_test.cpp)
target_compile_definitions(10_pretrained_weights_test PRIVATE
  T2T_FIXTURES="${CMAKE_SOURCE_DIR}/tests/fixtures/10_pretrained")
target_include_directories(10_pretrained_weights_test PRIVATE tests)
target_link_libraries(10_pretrained_weights_test doctest_main check_support 10_pretrained_parts)
