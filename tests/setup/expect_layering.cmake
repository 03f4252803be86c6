# Runs layering.cmake on a folder of planted includes.
#   cmake -DROOT=<folder> [-DLAYER=<folder> -DUSES=<folders>] [-DROOMS=<rooms>] -DEXPECT=<regex, or nothing where all is allowed> -P ...
cmake_minimum_required(VERSION 3.24)
if(NOT DEFINED LAYER)
  set(LAYER hardware)
  set(USES model)
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -DROOT=${ROOT} -DLAYER=${LAYER} "-DUSES=${USES}" "-DROOMS=${ROOMS}"
          -P ${CMAKE_CURRENT_LIST_DIR}/../layering.cmake
  RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
if(EXPECT STREQUAL "")
  if(NOT result EQUAL 0 OR NOT printed STREQUAL "")
    message(FATAL_ERROR "expected silence, got ${result}:\n${printed}")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "expected a failure, got none:\n${printed}")
elseif(NOT printed MATCHES "\n +${EXPECT}\n")
  message(FATAL_ERROR "expected the line \"${EXPECT}\", got:\n${printed}")
endif()
