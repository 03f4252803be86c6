#include "scenarios/report/page_files.h"

namespace trainfare::scenarios {

// The symbols are those of the file that page/embed.cmake writes.
// NOLINTBEGIN(readability-identifier-naming)
#define TRAINFARE_EMBEDDED(Function, name)                                    \
  extern "C" const char trainfare_##name[];                                   \
  extern "C" const char trainfare_##name##_end[];                             \
  extern "C" const char trainfare_##name##_digest[];                          \
  EmbeddedFile Function() {                                                   \
    return {                                                                  \
        trainfare_##name, trainfare_##name##_end, trainfare_##name##_digest}; \
  }                                                                           \
  static_assert(true, "a semicolon follows")

TRAINFARE_EMBEDDED(ChartLibrary, chart_library);
TRAINFARE_EMBEDDED(ChartLicence, chart_licence);
TRAINFARE_EMBEDDED(PageScript, page_script);
TRAINFARE_EMBEDDED(PageStyle, page_style);

#undef TRAINFARE_EMBEDDED
// NOLINTEND(readability-identifier-naming)

}  // namespace trainfare::scenarios
