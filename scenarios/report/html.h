#pragma once

// A report as one HTML file: no script, no network, light and dark, printable.

#include <string>

#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Every name and number is text in it; the whole result stands in it as JSON.
std::string HtmlPage(const Report& report);

}  // namespace trainfare::scenarios
