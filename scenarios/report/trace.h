#pragma once

// Time as lanes of spans, in the format that Chrome and Perfetto open.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainfare::scenarios {

// From `start_s` to `end_s`; spans of a lane lie beside or within each other.
struct TraceSpan {
  std::string name;
  double start_s = 0;
  double end_s = 0;
  // By keys with their unit: "sent_bytes".
  std::vector<std::pair<std::string, double>> figures;
};

struct TraceLane {
  std::string name;
  std::vector<TraceSpan> spans;  // what holds others stands before them
};

struct TraceProcess {
  std::string name;
  std::vector<TraceLane> lanes;
};

// The JSON object format of Chrome's trace events; `title` says what it is of.
std::string ChromeTrace(const std::string& title,
                        const std::vector<TraceProcess>& processes);
// Whether a text is such a trace of this program.
bool IsChromeTrace(std::string_view text);

}  // namespace trainfare::scenarios
