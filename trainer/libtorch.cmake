# LibTorch as imported targets of our own. Torch's package file would search
# for the whole CUDA toolkit, since the one LibTorch 2.11 that the package index
# carries for Linux is the CUDA build; its CPU part needs of CUDA only the two
# small libraries that are looked for below.
set(trainfare_cache "$ENV{TRAINFARE_CACHE}")
if(NOT trainfare_cache AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(trainfare_cache "$ENV{XDG_CACHE_HOME}/trainfare")
elseif(NOT trainfare_cache)
  set(trainfare_cache "$ENV{HOME}/.cache/trainfare")
endif()
set(TRAINFARE_LIBTORCH_DIR
    "${trainfare_cache}/libtorch-${TRAINFARE_LIBTORCH_VERSION}/torch" CACHE PATH
    "Folder `torch` of the unpacked LibTorch wheel (lib, include)")

if(NOT EXISTS "${TRAINFARE_LIBTORCH_DIR}/lib/libtorch_cpu.so" OR
   NOT EXISTS "${TRAINFARE_LIBTORCH_DIR}/include/ATen/ATen.h")
  message(FATAL_ERROR "trainfare-trainer: no LibTorch ${TRAINFARE_LIBTORCH_VERSION} in "
    "${TRAINFARE_LIBTORCH_DIR}; run ./setup, set TRAINFARE_LIBTORCH_DIR, or "
    "configure with -DTRAINFARE_TRAINER=OFF")
endif()

# libtorch_cpu.so itself looks in $ORIGIN/../../nvidia/cu13/lib; a toolkit
# serves where the wheels are not unpacked beside it.
get_filename_component(trainfare_libtorch_parent "${TRAINFARE_LIBTORCH_DIR}"
                       DIRECTORY)
set(TRAINFARE_LIBTORCH_RPATH "${TRAINFARE_LIBTORCH_DIR}/lib")
foreach(needed libcudart.so.13 libcupti.so.13)
  string(MAKE_C_IDENTIFIER "TRAINFARE_${needed}" variable)
  find_file(${variable} ${needed}
    PATHS "${trainfare_libtorch_parent}/nvidia/cu13/lib"
          "$ENV{CUDA_HOME}/lib64" /usr/local/cuda/lib64
          /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda-13/lib64
    NO_DEFAULT_PATH)
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "trainfare-trainer: LibTorch needs ${needed}, which is "
      "neither in ${trainfare_libtorch_parent}/nvidia/cu13/lib nor in a CUDA "
      "13 toolkit; run ./setup or configure with -DTRAINFARE_TRAINER=OFF")
  endif()
  get_filename_component(folder "${${variable}}" DIRECTORY)
  list(APPEND TRAINFARE_LIBTORCH_RPATH "${folder}")
endforeach()
list(REMOVE_DUPLICATES TRAINFARE_LIBTORCH_RPATH)

# c10d's headers include those of the C++ front end, which nothing else needs.
set(trainfare_c10d_options
  "-idirafter${TRAINFARE_LIBTORCH_DIR}/include/torch/csrc/api/include")
# c10d's Gloo header includes Gloo's own, which the wheel leaves out; names are
# all it needs of them (trainer/ranks/gloo_names.h).
set(trainfare_gloo ${CMAKE_CURRENT_BINARY_DIR}/gloo_names)
foreach(header algorithm common/error context rendezvous/store transport/device)
  file(CONFIGURE OUTPUT "${trainfare_gloo}/gloo/${header}.h"
       CONTENT "#pragma once\n#include \"trainer/ranks/gloo_names.h\"\n")
endforeach()

add_library(trainfare_libtorch INTERFACE)
# -idirafter, not -isystem: LibTorch carries its own fmt, which must not shadow
# the system's.
target_compile_options(trainfare_libtorch INTERFACE
  "SHELL:-idirafter ${TRAINFARE_LIBTORCH_DIR}/include")
# Old-style RPATH, so that the libraries that LibTorch loads are found by it too.
target_link_options(trainfare_libtorch INTERFACE
  -Wl,--disable-new-dtags -Wl,--unresolved-symbols=ignore-in-shared-libs)
foreach(folder IN LISTS TRAINFARE_LIBTORCH_RPATH)
  target_link_options(trainfare_libtorch INTERFACE "-Wl,-rpath-link,${folder}")
endforeach()
target_link_libraries(trainfare_libtorch INTERFACE
  "${TRAINFARE_LIBTORCH_DIR}/lib/libtorch_cpu.so"
  "${TRAINFARE_LIBTORCH_DIR}/lib/libc10.so"
  "${TRAINFARE_LIBTORCH_DIR}/lib/libgomp.so.1")
