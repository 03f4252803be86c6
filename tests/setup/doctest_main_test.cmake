# Exit codes of tests/doctest_main.cc.
#   cmake -DPROGRAM=<doctest_cases> -P doctest_main_test.cmake
cmake_minimum_required(VERSION 3.24)
function(expect code said)
  execute_process(COMMAND ${PROGRAM} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE ignored ERROR_VARIABLE error)
  if(NOT result EQUAL code OR NOT error MATCHES "^${said}$")
    message(SEND_ERROR "${ARGN}: expected ${code} and \"${said}\", got ${result}:\n${error}")
  endif()
endfunction()
expect(0 "" --test-suite=asserts)
expect(1 "" --test-suite=fails)
expect(1 "[^\n]*doctest_cases.cc:[0-9]+: \"asserts nothing\" asserts nothing; [^\n]*\n"
  --test-suite=nothing)
expect(1 "[^\n]*\"asserts nothing\" asserts nothing; [^\n]*\n" --test-suite=asserts,nothing)
set(skipped "skipped: what these cases need is not here\n")
expect(77 ${skipped} --test-suite=absent)
expect(0 "" --test-suite=absent,asserts)
expect(0 "" --test-suite=absent --no-skip)
expect(0 "" --test-suite=absent --count)
