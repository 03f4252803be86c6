# Installs into a folder of its own, moves it, and runs the program there. The
# fit that is read must be the moved one: the source tree is there, too.
set(place ${BUILD}/Testing/install)
file(REMOVE_RECURSE ${place})
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${place}/first ${place}/second)
set(data ${place}/second/share/trainfare)
file(WRITE ${data}/calibrate/fits/t4.yaml "device: t4\n")

set(ENV{TRAINFARE_FITS} ${place}/none)
set(program ${place}/second/${BIN}/trainfare)
execute_process(
  COMMAND ${program} predict emotion_bert_base --device l4
  WORKING_DIRECTORY / OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "BERT-base takes ")
  message(FATAL_ERROR "expected a prediction, got: ${said}")
endif()
execute_process(
  COMMAND ${program} predict emotion_bert_base --device t4 --precision fp16
  WORKING_DIRECTORY / ERROR_VARIABLE said RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT said MATCHES "second/share/trainfare/calibrate/fits/t4.yaml:1:1: ")
  message(FATAL_ERROR "expected the fit of the moved folder, got: ${said}")
endif()
if(NOT EXISTS ${place}/second/share/man/man1/trainfare-predict.1)
  message(FATAL_ERROR "the manual is not installed")
endif()
file(GLOB_RECURSE folders LIST_DIRECTORIES true ${data}/*)
foreach(folder IN LISTS folders)
  file(GLOB inside ${folder}/*)
  if(IS_DIRECTORY ${folder} AND NOT inside)
    message(FATAL_ERROR "${folder} is installed empty")
  endif()
endforeach()
if(TRAINER AND NOT EXISTS ${place}/second/${BIN}/trainfare-trainer)
  message(FATAL_ERROR "trainfare-trainer is not installed")
endif()
file(REMOVE_RECURSE ${place})
