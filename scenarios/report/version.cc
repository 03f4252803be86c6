#include "scenarios/report/version.h"

namespace trainfare::scenarios {

std::string_view Version() { return TRAINFARE_VERSION; }

}  // namespace trainfare::scenarios
