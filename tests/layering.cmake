# Fails when a file of ROOT/LAYER includes a folder it may not use, or one of its
# rooms (sub-folders, named from the ground up; with a comma between them, those
# of one floor, which include each other) includes one above it.
#   cmake -DROOT=<repo> -DLAYER=<folder> "-DUSES=<folder;..>" "-DROOMS=<room;..>"
#         -P layering.cmake
cmake_minimum_required(VERSION 3.24)
set(layers model hardware calibrate trainer scenarios)
set(allowed ${LAYER} ${USES})
# model/ stays free of the heavy libraries; calibrate/ never sees LibTorch.
set(banned_model "yaml-cpp/|ceres/|torch/|ATen/|c10/|cuda|nccl|CLI/|nlohmann/")
set(banned_hardware "ceres/|torch/|ATen/|c10/|cuda|nccl|CLI/")
set(banned_calibrate "torch/|ATen/|c10/|cuda|nccl")
set(banned_scenarios "ceres/|torch/|ATen/|c10/|cuda|nccl")
# Heavy headers stay out of our headers everywhere but in trainer/.
set(banned_in_headers "ceres/|CLI/|yaml-cpp/")

list(JOIN ROOMS " " shown_rooms)
# The place of a file's room in ROOMS, the innermost that is named; files of the
# folder itself stand above all of its rooms.
function(room_of file result)
  list(LENGTH ROOMS place)
  set(longest 0)
  foreach(floor IN LISTS ROOMS)
    string(REPLACE "," ";" rooms "${floor}")
    foreach(room IN LISTS rooms)
      string(LENGTH ${room} length)
      string(FIND ${file} "${LAYER}/${room}/" at)
      if(at EQUAL 0 AND length GREATER longest)
        set(longest ${length})
        list(FIND ROOMS ${floor} place)
      endif()
    endforeach()
  endforeach()
  set(${result} ${place} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE sources RELATIVE ${ROOT}
  ${ROOT}/${LAYER}/*.h ${ROOT}/${LAYER}/*.cc ${ROOT}/${LAYER}/*.cu ${ROOT}/${LAYER}/*.cuh)
if(NOT sources)
  message(FATAL_ERROR "layering: no source in ${ROOT}/${LAYER}")
endif()
list(JOIN allowed " " shown)
# Above hardware/ nobody asks which kind a device is (hardware/models/kind.h).
# The folder of published documents is to go, and is left out until then.
set(kind_layers calibrate trainer scenarios)
set(bad "")
foreach(source IN LISTS sources)
  file(READ ${ROOT}/${source} text)
  if(LAYER IN_LIST kind_layers AND NOT source MATCHES "/published" AND
     text MATCHES "DeviceKind::k[A-Za-z]+")
    string(APPEND bad "  ${source}: ${CMAKE_MATCH_0}: ask hardware::KindOf(device) instead\n")
  endif()
  # Only the directive itself: what follows it on the line (a bracket, a
  # semicolon) would not survive as an element of a CMake list.
  string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]*[>\"]" includes "${text}")
  foreach(line IN LISTS includes)
    string(STRIP "${line}" line)
    if(line MATCHES "\\.\\./")
      string(APPEND bad "  ${source}: ${line}: write the path from the root of the repository\n")
    elseif(line MATCHES "[<\"]([a-z_]+)/([^>\"]*)")
      set(folder ${CMAKE_MATCH_1})
      set(rest ${CMAKE_MATCH_2})
      if(folder IN_LIST layers AND NOT folder IN_LIST allowed)
        string(APPEND bad "  ${source}: ${line}: ${LAYER}/ may include only: ${shown}\n")
      elseif(rest MATCHES "(^|/)internal/" AND NOT folder STREQUAL LAYER)
        string(APPEND bad "  ${source}: ${line}: internal to ${folder}/\n")
      endif()
      if(folder STREQUAL LAYER)
        room_of(${source} from)
        room_of(${folder}/${rest} to)
        if(to GREATER from)
          string(APPEND bad "  ${source}: ${line}: runs up; rooms from the ground: ${shown_rooms}\n")
        endif()
      endif()
    endif()
    if(DEFINED banned_${LAYER} AND line MATCHES "[<\"](${banned_${LAYER}})")
      string(APPEND bad "  ${source}: ${line}: not allowed in ${LAYER}/\n")
    endif()
    if(source MATCHES "\\.h$" AND line MATCHES "[<\"](${banned_in_headers})")
      string(APPEND bad "  ${source}: ${line}: heavy header in a header of ours\n")
    endif()
  endforeach()
endforeach()
if(bad)
  # Indented, since message() would reflow the lines otherwise.
  message(FATAL_ERROR "layering:\n${bad}")
endif()
