#pragma once

// A report as one HTML file: no network, light and dark, printable; charts are
// drawn by a library inside it, and are tables where scripts are off.

#include <string>
#include <string_view>

#include "scenarios/report/report.h"

namespace trainfare::scenarios {

// The text of HTML: & < > " ' stand for themselves, what would do something to
// a terminal is gone.
std::string Escaped(std::string_view text);

// Every name and number is text in it; the whole result stands in it as JSON.
std::string HtmlPage(const Report& report);
// Whether a text is such a page, of this version or an earlier one.
bool IsHtmlPage(std::string_view text);

}  // namespace trainfare::scenarios
