# The CUDA module: built where the toolkit and LibTorch's CUDA library are, and
# loaded only by --device cuda, so that the trainer runs where they are not.
set(TRAINFARE_CUDA AUTO CACHE STRING
    "CUDA part of the trainer: ON, OFF, or AUTO (where a CUDA 13 toolkit is)")
set_property(CACHE TRAINFARE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TRAINFARE_CUDA STREQUAL "AUTO" AND NOT TRAINFARE_CUDA)
  return()
endif()

find_package(CUDAToolkit 13 QUIET)
set(missing "")
if(NOT TARGET CUDA::cudart)
  set(missing "no CUDA 13 toolkit")
elseif(NOT EXISTS "${TRAINFARE_LIBTORCH_DIR}/lib/libtorch_cuda.so")
  set(missing "${TRAINFARE_LIBTORCH_DIR} has no libtorch_cuda.so")
endif()
if(missing)
  if(TRAINFARE_CUDA STREQUAL "AUTO")
    message(STATUS "trainfare-trainer: CPU only, ${missing}")
    return()
  endif()
  message(FATAL_ERROR "trainfare-trainer: ${missing}; configure with "
    "-DTRAINFARE_CUDA=OFF for a trainer without CUDA")
endif()

if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
# Machine code for Turing to Hopper, and PTX for what comes later.
set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90 CACHE STRING
    "GPU architectures of the trainer's kernels")
enable_language(CUDA)
# No LibTorch here: its headers would take a minute each in nvcc.
add_library(trainfare_kernels OBJECT kernels/adamw.cu kernels/adan.cu
                                     kernels/fused_layers.cu)
target_include_directories(trainfare_kernels PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(trainfare_kernels PROPERTIES
  CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)

add_library(trainfare_cuda MODULE kernels/cuda_module.cc ranks/cuda_ranks.cc
                                  $<TARGET_OBJECTS:trainfare_kernels>)
# The libraries register themselves when they are loaded; nothing of ours calls
# them by name, so the linker must not drop them.
target_link_options(trainfare_cuda PRIVATE -Wl,--no-as-needed)
target_link_libraries(trainfare_cuda PRIVATE
  trainfare_libtorch
  "${TRAINFARE_LIBTORCH_DIR}/lib/libtorch_cuda.so"
  "${TRAINFARE_LIBTORCH_DIR}/lib/libc10_cuda.so"
  CUDA::cudart
  trainfare_warnings)
target_include_directories(trainfare_cuda PRIVATE ${PROJECT_SOURCE_DIR})
find_path(TRAINFARE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(TRAINFARE_NCCL_INCLUDE)
if(TRAINFARE_NCCL_INCLUDE)
  set(nccl USE_C10D_NCCL)
else()
  message(STATUS "trainfare-trainer: no nccl.h, GPUs cannot share gradients")
endif()
set_source_files_properties(ranks/cuda_ranks.cc PROPERTIES
  COMPILE_DEFINITIONS "${nccl}"
  COMPILE_OPTIONS "${trainfare_c10d_options}")
# cuBLAS, cuDNN, NCCL and the rest: from the wheels beside LibTorch, as its own
# RPATH says, or from the toolkit.
set_target_properties(trainfare_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/trainfare
  BUILD_RPATH "${TRAINFARE_LIBTORCH_RPATH};${CUDAToolkit_LIBRARY_DIR}"
  INSTALL_RPATH "${TRAINFARE_LIBTORCH_RPATH};${CUDAToolkit_LIBRARY_DIR}")
install(TARGETS trainfare_cuda LIBRARY DESTINATION lib/trainfare)
message(STATUS "trainfare-trainer: with CUDA ${CUDAToolkit_VERSION}")
