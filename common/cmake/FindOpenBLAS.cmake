# OpenBLAS::OpenBLAS. Where there are several builds of it, the OpenMP one is taken: it shares its threads with our
# loops, and other builds fight them for cores.
find_library(OpenBLAS_LIBRARY NAMES openblas blas PATH_SUFFIXES openblas-openmp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES IMPORTED_LOCATION ${OpenBLAS_LIBRARY})
endif()
