#pragma once

// A chart as the configuration of Chart.js, which draws it in a page.

#include <string>
#include <vector>

#include "scenarios/report/chart.h"

namespace trainfare::scenarios {

// A JSON list with an object for each. What needs the browser, such as colours
// and lines of text, page/page.js adds. Values that an axis cannot show are
// left out.
std::string ChartConfigurations(const std::vector<Chart>& charts);

}  // namespace trainfare::scenarios
