#pragma once

// A recorded step as a Chrome trace (chrome://tracing, ui.perfetto.dev).

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace trainfare::trainer {

struct TraceOptions {
  std::string records;          // measurement records
  std::string out;              // the trace; "-": standard output
  std::optional<int64_t> line;  // of the record; else the last with a step
  std::optional<int64_t> step;  // of its steps; else the last
};

// The trace of step `step` of a record that was made with --layers; `where` is
// its file and line in messages. Throws InputError where it has no such step.
nlohmann::ordered_json ChromeTrace(const nlohmann::json& record,
                                   const std::string& where,
                                   std::optional<int64_t> step);

// Written whole or not at all.
void WriteTrace(const TraceOptions& options);

}  // namespace trainfare::trainer
