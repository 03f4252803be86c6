#include "trainer/measure/trace.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <vector>

#include "hardware/files/json_text.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using nlohmann::json;
using Trace = nlohmann::ordered_json;

// What a viewer shows below each other.
enum class Track { kDevice = 1, kGradients = 2 };

// Complete events ("ph": "X") in microseconds; a viewer nests those of a track
// by their times. Source: Trace Event Format, Google, 2016.
class EventList {
 public:
  void Add(const std::string& name,
           const char* category,
           double from_s,
           double to_s,
           Track track = Track::kDevice) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", from_s * 1e6},
                       {"dur", (to_s - from_s) * 1e6},
                       {"pid", 1},
                       {"tid", static_cast<int>(track)}});
  }
  void Name(const char* what,
            const std::string& name,
            Track track = Track::kDevice) {
    events_.push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", 1},
                       {"tid", static_cast<int>(track)},
                       {"args", {{"name", name}}}});
  }
  Trace Take() { return std::move(events_); }

 private:
  Trace events_ = Trace::array();
};

// One pass and the parts in it; `reversed` for the backward pass.
void AddPass(EventList& events,
             const char* phase,
             const std::vector<double>& at_s,
             std::vector<std::string> parts,
             bool reversed) {
  ENSURE(at_s.size() == parts.size() + 1, "parts follow without a gap");
  events.Add(phase, "phase", at_s.front(), at_s.back());
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t part = reversed ? parts.size() - 1 - i : i;
    events.Add(parts[part], phase, at_s[i], at_s[i + 1]);
  }
}

// `path`: that of the object in its record, with a dot behind it.
std::vector<double> InstantsOf(const json& object,
                               const char* path,
                               const char* key,
                               size_t count,
                               const std::string& where) {
  auto instants = object.at(key).get<std::vector<double>>();
  if (instants.size() != count) {
    throw InputError(fmt::format("{}: {}{}: expected {} instants, got {}",
                                 where,
                                 path,
                                 key,
                                 count,
                                 instants.size()));
  }
  return instants;
}

// Buckets of gradients on their way between ranks; `begin_s` is when the
// backward pass began that they belong to.
void AddBuckets(EventList& events,
                const json& sample,
                const std::string& where,
                double begin_s) {
  if (!sample.contains("bucket_start_s")) return;
  const auto start = sample.at("bucket_start_s").get<std::vector<double>>();
  const auto end =
      InstantsOf(sample, "samples.", "bucket_end_s", start.size(), where);
  events.Name("thread_name", "gradients between ranks", Track::kGradients);
  for (size_t i = 0; i < start.size(); ++i) {
    events.Add(fmt::format("bucket {}", i),
               "gradients",
               begin_s + start[i],
               begin_s + end[i],
               Track::kGradients);
  }
}

std::string Title(const json& record) {
  const json& workload = record.at("workload");
  return fmt::format("{}, {}, batch {}, length {}, {}",
                     record.at("device").at("name").get<std::string>(),
                     workload.at("model").at("name").get<std::string>(),
                     workload.at("batch").get<int64_t>(),
                     workload.at("sequence_length").get<int64_t>(),
                     workload.at("precision").get<std::string>());
}

const json& SampleOfStep(const json& record,
                         const std::string& where,
                         std::optional<int64_t> step) {
  const json& samples = record.at("samples");
  if (samples.empty()) throw InputError(where + ": samples: empty");
  if (!step) return samples.back();
  for (const json& sample : samples) {
    if (sample.at("step").get<int64_t>() == *step) return sample;
  }
  throw InputError(fmt::format("{}: no step {}; it has {} to {}",
                               where,
                               *step,
                               samples.front().at("step").get<int64_t>(),
                               samples.back().at("step").get<int64_t>()));
}

Trace TraceOf(const json& record,
              const std::string& where,
              std::optional<int64_t> step) {
  const json& sample = SampleOfStep(record, where, step);
  if (!sample.contains("timeline") || !record.contains("parts")) {
    throw InputError(where +
                     ": timeline: missing; measure or train with --layers");
  }
  const auto parts = record.at("parts").get<std::vector<std::string>>();
  const json& timeline = sample.at("timeline");
  constexpr const char* kTimeline = "timeline.";
  const auto number = sample.at("step").get<int64_t>();
  EventList events;
  events.Name("process_name", Title(record));
  events.Name("thread_name", record.at("device").at("kind").get<std::string>());
  events.Add(fmt::format("step {}", number),
             "step",
             0,
             sample.at("step_s").get<double>());
  const json& passes = timeline.at("passes");
  if (passes.empty()) throw InputError(where + ": timeline.passes: empty");
  for (const json& pass : passes) {
    AddPass(
        events,
        "forward",
        InstantsOf(pass, kTimeline, "forward_at_s", parts.size() + 1, where),
        parts,
        /*reversed=*/false);
    AddPass(
        events,
        "backward",
        InstantsOf(pass, kTimeline, "backward_at_s", parts.size() + 1, where),
        parts,
        /*reversed=*/true);
  }
  // Only the last micro-batch sends; accumulation keeps the others' gradients.
  const double last_backward_s =
      passes.back().at("backward_at_s").front().get<double>();
  AddBuckets(events, sample, where, last_backward_s);
  const auto optimizer =
      InstantsOf(timeline, kTimeline, "optimizer_at_s", 2, where);
  events.Add("optimizer", "phase", optimizer[0], optimizer[1]);
  return {{"traceEvents", events.Take()},
          {"displayTimeUnit", "ms"},
          {"otherData",
           {{"record", record.value("id", "")},
            {"step", number},
            {"loss", sample.at("loss")}}}};
}

json ParseLine(const std::string& text, const std::string& file, int line) {
  json value = hardware::ParseJson(text, file, line);
  if (!value.is_object()) {
    throw InputError(file, line, 0, "expected one JSON object a line");
  }
  return value;
}

// Whether the record of a line is of a step.
bool IsStep(const json& value,
            const std::string& text,
            const std::string& file,
            int line) {
  const auto kind = value.find("kind");
  if (kind == value.end() || kind->is_null()) return false;
  if (kind->is_string()) return *kind == "step";
  const auto place = hardware::FindInJson(text, "kind");
  throw InputError(
      file,
      line,
      place ? place->column : 0,
      fmt::format("kind: expected a text, got {}", hardware::ShownJson(*kind)));
}

struct Found {
  json record;
  int64_t line = 0;
};

Found FindRecord(const TraceOptions& options) {
  std::ifstream file(options.records);
  if (!file) {
    throw InputError(fmt::format("{}: cannot read", options.records));
  }
  Found found;
  int64_t line = 0;
  for (std::string text; std::getline(file, text);) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (options.line && line != *options.line) continue;
    const int number = static_cast<int>(line);
    json value = ParseLine(text, options.records, number);
    if (IsStep(value, text, options.records, number)) {
      found = {std::move(value), line};
    }
  }
  if (found.line == 0) {
    throw InputError(
        options.line
            ? fmt::format(
                  "{}:{}: no record of a step", options.records, *options.line)
            : fmt::format("{}: no record of a step", options.records));
  }
  return found;
}

}  // namespace

nlohmann::ordered_json ChromeTrace(const json& record,
                                   const std::string& where,
                                   std::optional<int64_t> step) {
  try {
    return TraceOf(record, where, step);
  } catch (const json::exception& error) {
    throw InputError(
        fmt::format("{}: not a record of a step: {}", where, error.what()));
  }
}

void WriteTrace(const TraceOptions& options) {
  const Found found = FindRecord(options);
  const std::string text =
      ChromeTrace(found.record,
                  fmt::format("{}:{}", options.records, found.line),
                  options.step)
          .dump() +
      "\n";
  if (options.out == "-") {
    std::cout << text << std::flush;
    if (!std::cout) throw InputError("standard output: cannot write");
    return;
  }
  hardware::WriteWholeFile(options.out, text);
}

}  // namespace trainfare::trainer
