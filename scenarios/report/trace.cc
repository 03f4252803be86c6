#include "scenarios/report/trace.h"

#include <cmath>
#include <utility>

#include "hardware/files/json_text.h"
#include "scenarios/report/json.h"
#include "scenarios/report/version.h"

namespace trainfare::scenarios {
namespace {

// Whole nanoseconds, so that what ends together does so to the last digit.
double Nanoseconds(double seconds) { return std::round(1e9 * seconds); }

Json NameEvent(const char* what,
               int process,
               int lane,
               const std::string& name) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", process},
          {"tid", lane},
          {"args", {{"name", name}}}};
}

// The format counts in microseconds.
Json SpanEvent(const TraceSpan& span, int process, int lane) {
  const double start = Nanoseconds(span.start_s);
  Json event = {{"name", span.name},
                {"ph", "X"},
                {"pid", process},
                {"tid", lane},
                {"ts", start / 1e3},
                {"dur", (Nanoseconds(span.end_s) - start) / 1e3}};
  for (const auto& [key, value] : span.figures) event["args"][key] = value;
  return event;
}

// What a trace of this program begins with, by which it is known again.
Json TraceHead() {
  return {{"displayTimeUnit", "ms"}, {"otherData", {{"tool", "trainfare"}}}};
}

std::string Written(const Json& trace) {
  return hardware::WriteJson(trace, hardware::JsonLayout::kIndented);
}

}  // namespace

std::string ChromeTrace(const std::string& title,
                        const std::vector<TraceProcess>& processes) {
  Json events = Json::array();
  int process_id = 0;
  for (const TraceProcess& process : processes) {
    events.push_back(NameEvent("process_name", ++process_id, 0, process.name));
    int lane_id = 0;
    for (const TraceLane& lane : process.lanes) {
      events.push_back(
          NameEvent("thread_name", process_id, ++lane_id, lane.name));
      for (const TraceSpan& span : lane.spans) {
        events.push_back(SpanEvent(span, process_id, lane_id));
      }
    }
  }
  Json trace = TraceHead();
  trace["otherData"]["tool_version"] = Version();
  trace["otherData"]["title"] = title;
  trace["traceEvents"] = std::move(events);
  return Written(trace);
}

bool IsChromeTrace(std::string_view text) {
  // Without the brackets that close it.
  std::string head = Written(TraceHead());
  head.resize(head.rfind('"') + 1);
  return text.starts_with(head);
}

}  // namespace trainfare::scenarios
