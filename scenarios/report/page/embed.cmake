# embed(<target> <name> <file> [<name> <file>..])
#
# A library whose bytes are those of the files: trainfare_<name> up to
# trainfare_<name>_end, and as trainfare_<name>_digest what names the file in a
# Content-Security-Policy.
function(embed target)
  set(assembly "/* Made by ${CMAKE_CURRENT_FUNCTION_LIST_FILE}. */\n  .section .rodata\n")
  set(files "")
  while(ARGN)
    list(POP_FRONT ARGN name file)
    list(APPEND files ${file})
    file(SHA256 ${file} hash)
    base64_of(${hash} digest)
    string(APPEND assembly
      "  .global trainfare_${name}, trainfare_${name}_end, trainfare_${name}_digest\n"
      "trainfare_${name}:\n  .incbin \"${file}\"\n"
      "trainfare_${name}_end:\n  .byte 0\n"
      "trainfare_${name}_digest:\n  .asciz \"sha256-${digest}\"\n")
  endwhile()
  # Without it the linker makes the program's stack executable.
  string(APPEND assembly "  .section .note.GNU-stack, \"\", %progbits\n")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.S)
  file(CONFIGURE OUTPUT ${source} CONTENT "${assembly}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  # No source that clang-tidy could read.
  add_library(${target} STATIC ${source})
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
endfunction()

# base64_of(<hex digits> <variable>)
function(base64_of hex result)
  set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(LENGTH ${hex} digits)
  math(EXPR bytes "${digits} / 2")
  math(EXPR missing "(3 - ${bytes} % 3) % 3")
  string(REPEAT 00 ${missing} zeros)
  string(APPEND hex ${zeros})
  string(REGEX MATCHALL "......" triples ${hex})
  set(text "")
  foreach(triple IN LISTS triples)
    foreach(shift 18 12 6 0)
      math(EXPR place "(0x${triple} >> ${shift}) & 63")
      string(SUBSTRING ${letters} ${place} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  string(LENGTH ${text} length)
  math(EXPR length "${length} - ${missing}")
  string(SUBSTRING ${text} 0 ${length} text)
  string(REPEAT = ${missing} padding)
  set(${result} ${text}${padding} PARENT_SCOPE)
endfunction()
