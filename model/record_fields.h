#pragma once

// The keys of a measurement record (docs/guide/measurements.md), once: the
// trainer and the import of nccl-tests write them, calibrate/ reads them. What
// no fit reads is written only. `Json`, the library's type, is what stands
// there as whoever writes it has it: its header is not needed here.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fields.h"
#include "model/kernel_fields.h"
#include "model/limits.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::model {

inline constexpr std::string_view kRecordSchema = "trainfare.measurement/1";

template <class Archive, class T>
void VisitWritten(Archive& archive, std::string_view name, const T& value) {
  if constexpr (!ReadingArchive<Archive>) {
    archive(Field{.name = name, .required = true}, value);
  }
}

struct RecordedDevice {
  std::string name;  // of a CPU the `model name` of /proc/cpuinfo
  std::string kind;  // cpu or cuda
  int64_t count = 1;
  std::optional<int64_t> threads = {};     // of the host, that compute
  std::optional<std::string> bus_id = {};  // of a GPU, "0000:3B:00.0"
  std::optional<double> time_s = {};  // in which it worked on what was timed
};

template <class Archive, Of<RecordedDevice> D>
void VisitFields(Archive& archive, D& device) {
  archive(Field{.name = "name", .required = true}, device.name);
  archive(Field{.name = "kind"}, device.kind);
  archive(Field{.name = "count", .least = 1, .most = kMostDevices},
          device.count);
  archive(Field{.name = "threads", .most = kLargestCount}, device.threads);
  VisitWritten(archive, "bus_id", device.bus_id);
  VisitWritten(archive, "time_s", device.time_s);
}

// What tells one record from the next, and records from other files.
struct RecordKind {
  std::string schema{kRecordSchema};
  std::string kind;
};

template <class Archive, Of<RecordKind> K>
void VisitFields(Archive& archive, K& record) {
  archive(Field{.name = "schema", .required = true}, record.schema);
  archive(Field{.name = "kind", .required = true}, record.kind);
}

// What records of all kinds begin with.
template <class Json>
struct RecordHead {
  RecordKind kind;
  std::optional<std::string> id;
  std::optional<std::string> time;
  std::optional<RecordedDevice> device;
  Json host;  // texts and numbers of the machine
  Json software;
};

template <class Archive, class Head>
void VisitHead(Archive& archive, Head& head) {
  VisitFields(archive, head.kind);
  archive(Field{.name = "id"}, head.id);
  archive(Field{.name = "time"}, head.time);
  archive(Field{.name = "device"}, head.device);
  archive(Field{.name = "host"}, head.host);
  archive(Field{.name = "software"}, head.software);
}

// How the ranks of a run are joined, and what they share.
struct RecordedRanks {
  std::string launcher;
  std::string backend;                        // gloo, nccl; none for one rank
  std::optional<std::string> transport = {};  // between them; may be empty
  // Of a step: the sizes of the buckets of gradients, and the layers of
  // StepSample::layer_ready.
  std::optional<std::vector<int64_t>> bucket_bytes = {};
  std::optional<std::vector<std::string>> layers = {};
};

template <class Archive, Of<RecordedRanks> R>
void VisitFields(Archive& archive, R& ranks) {
  VisitWritten(archive, "launcher", ranks.launcher);
  archive(Field{.name = "backend"}, ranks.backend);
  archive(Field{.name = "transport"}, ranks.transport);
  archive(Field{.name = "bucket_bytes",
                .required = !ReadingArchive<Archive>,
                .least = 1,
                .most = kLargestCount},
          ranks.bucket_bytes);
  VisitWritten(archive, "layers", ranks.layers);
}

// The load of the process that was timed.
struct RecordedLoad {
  std::optional<Seconds<>> wall;
  double cpu_s = 0;
  int64_t involuntary_switches = 0;
  // In which threads were ready to run and had no processor.
  std::optional<Seconds<>> waited;
};

template <class Archive, Of<RecordedLoad> L>
void VisitFields(Archive& archive, L& load) {
  archive(Field{.name = "wall_s",
                .least_base = kShortestTime,
                .most_base = kLongestTime},
          load.wall);
  VisitWritten(archive, "cpu_s", load.cpu_s);
  VisitWritten(archive, "involuntary_switches", load.involuntary_switches);
  archive(
      Field{.name = "waited_s", .most_base = kLongestTime, .may_be_zero = true},
      load.waited);
}

// Energy of the device over the timed steps, or why it is not known.
struct RecordedEnergy {
  std::optional<std::string> missing;
  std::optional<std::string> source;  // rapl, nvml
  std::vector<std::string> domains;   // of rapl
  std::optional<double> joules;
  std::optional<Seconds<>> wall;
};

template <class Archive, Of<RecordedEnergy> E>
void VisitFields(Archive& archive, E& energy) {
  VisitWritten(archive, "missing", energy.missing);
  archive(Field{.name = "source"}, energy.source);
  if (!energy.domains.empty()) {
    VisitWritten(archive, "domains", energy.domains);
  }
  archive(Field{.name = "energy_j", .high = kLongestTime}, energy.joules);
  archive(
      Field{.name = "wall_s", .most_base = kLongestTime, .may_be_zero = true},
      energy.wall);
}

// What disturbed the timed calls.
struct RecordedDisturbance {
  std::optional<bool> disturbed;
  std::optional<RecordedLoad> load;
};

template <class Archive, Of<RecordedDisturbance> D>
void VisitFields(Archive& archive, D& disturbance) {
  archive(Field{.name = "disturbed"}, disturbance.disturbed);
  archive(Field{.name = "host_load"}, disturbance.load);
}

// A record of training steps. `Sample`: model::StepSample, or what has more.
template <class Json, class Sample>
struct StepRecord {
  RecordHead<Json> head;
  Workload workload;
  // What nobody states of the run, by its key, and why it is taken to be so.
  std::optional<Json> assumed;
  std::optional<int64_t> world_size;
  uint64_t seed = 0;
  int64_t parameters = 0;
  int64_t peak_memory_bytes = 0;     // held; 0: not said
  int64_t peak_allocated_bytes = 0;  // in tensors
  std::optional<int64_t> rank;       // whose record this is
  std::optional<RecordedRanks> ranks;
  std::optional<double> evaluation_accuracy;  // after training
  std::optional<int64_t> skipped_steps;       // of fp16: gradients overflowed
  std::optional<int64_t> optimizer_launches;  // kernels of one optimizer step
  RecordedDisturbance disturbance;
  std::optional<RecordedEnergy> energy;
  std::optional<Json> gpu;         // its clocks, temperature and power
  std::vector<std::string> parts;  // of the timelines of the samples
  std::vector<Sample> samples;
};

template <class Archive, class Record>
void VisitStep(Archive& archive, Record& record) {
  VisitHead(archive, record.head);
  archive(Field{.name = "workload", .required = true}, record.workload);
  archive(Field{.name = "assumed"}, record.assumed);
  archive(Field{.name = "world_size", .least = 1, .most = kMostDevices},
          record.world_size);
  VisitWritten(archive, "seed", record.seed);
  VisitWritten(archive, "parameters", record.parameters);
  archive(Field{.name = "peak_memory_bytes", .most = kLargestCount},
          record.peak_memory_bytes);
  VisitWritten(archive, "peak_allocated_bytes", record.peak_allocated_bytes);
  VisitWritten(archive, "rank", record.rank);
  archive(Field{.name = "ranks"}, record.ranks);
  VisitWritten(archive, "evaluation_accuracy", record.evaluation_accuracy);
  VisitWritten(archive, "skipped_steps", record.skipped_steps);
  VisitWritten(archive, "launches_optimizer", record.optimizer_launches);
  VisitFields(archive, record.disturbance);
  archive(Field{.name = "energy"}, record.energy);
  VisitWritten(archive, "gpu", record.gpu);
  if (!record.parts.empty()) VisitWritten(archive, "parts", record.parts);
  archive(Field{.name = "samples", .required = true}, record.samples);
}

// A call that was timed by itself.
struct RecordedCall {
  Seconds<> time;
};

template <class Archive, Of<RecordedCall> C>
void VisitFields(Archive& archive, C& call) {
  archive(Field{.name = "time_s",
                .required = true,
                .least_base = kShortestTime,
                .most_base = kLongestTime},
          call.time);
}

struct RecordedCalls {
  RecordedDisturbance disturbance;
  int64_t iterations = 0;  // of a sample, whose time is that of one of them
  std::vector<RecordedCall> samples;
};

template <class Archive, Of<RecordedCalls> C>
void VisitFields(Archive& archive, C& calls) {
  VisitFields(archive, calls.disturbance);
  VisitWritten(archive, "iterations", calls.iterations);
  archive(Field{.name = "samples", .required = true}, calls.samples);
}

// What a device did of one call.
struct RecordedActivity {
  int64_t launches = 0;
  double active_s = 0;
};

template <class Archive, Of<RecordedActivity> A>
void VisitFields(Archive& archive, A& activity) {
  archive(Field{.name = "launches"}, activity.launches);
  archive(Field{.name = "active_s"}, activity.active_s);
}

// A record of one operation of a step.
template <class Json>
struct KernelRecord {
  RecordHead<Json> head;
  Workload workload;  // whose step asks for it
  std::string operation;
  KernelKind kind = KernelKind::kGemm;
  Phase phase = Phase::kForward;
  int64_t per_step = 1;
  std::vector<Kernel> kernels;  // that the model counts for it
  std::optional<RecordedActivity> activity;
  RecordedCalls calls;
};

template <class Archive, class Record>
void VisitKernel(Archive& archive, Record& record) {
  VisitHead(archive, record.head);
  archive(Field{.name = "workload", .required = true}, record.workload);
  archive(Field{.name = "operation", .required = true}, record.operation);
  archive(Field{.name = "kernel_kind", .required = true}, record.kind);
  archive(Field{.name = "phase", .required = true}, record.phase);
  archive(Field{.name = "per_step",
                .required = true,
                .least = 1,
                .most = kLargestCount},
          record.per_step);
  archive(Field{.name = "kernels", .required = true}, record.kernels);
  VisitWritten(archive, "activity", record.activity);
  VisitFields(archive, record.calls);
}

// Speed of what the ranks computed while they sent, and without messages.
struct RecordedComputation {
  double rounds_per_s = 0;
  double rounds_alone_per_s = 0;
};

template <class Archive, Of<RecordedComputation> C>
void VisitFields(Archive& archive, C& computation) {
  const auto rate = [&](std::string_view name, auto& value) {
    archive(Field{.name = name,
                  .required = true,
                  .low = kShortestTime,
                  .high = kLongestTime},
            value);
  };
  rate("rounds_per_s", computation.rounds_per_s);
  rate("rounds_alone_per_s", computation.rounds_alone_per_s);
}

// A record of one size of a collective over ranks.
template <class Json>
struct CollectiveRecord {
  RecordHead<Json> head;
  std::string operation;  // a word of Collective, or one that no model has
  int64_t world_size = 2;
  int64_t rank = 0;
  std::optional<RecordedRanks> ranks;
  int64_t bytes = 1;  // on each rank, of all shares together
  int64_t iterations = 0;
  std::optional<RecordedComputation> computation;
  std::vector<RecordedCall> samples;
};

// Which one tells whether the rest is read.
template <class Archive, class Record>
void VisitOperation(Archive& archive, Record& record) {
  archive(Field{.name = "operation"}, record.operation);
}
template <class Archive, class Record>
void VisitCollective(Archive& archive, Record& record) {
  VisitHead(archive, record.head);
  VisitOperation(archive, record);
  archive(Field{.name = "world_size",
                .required = true,
                .least = 2,
                .most = kLargestCount},
          record.world_size);
  VisitWritten(archive, "rank", record.rank);
  archive(Field{.name = "ranks"}, record.ranks);
  archive(
      Field{
          .name = "bytes", .required = true, .least = 1, .most = kLargestCount},
      record.bytes);
  VisitWritten(archive, "iterations", record.iterations);
  archive(Field{.name = "computation"}, record.computation);
  archive(Field{.name = "samples", .required = true}, record.samples);
}

// A record of a copy within the memory of a device, which no fit reads.
template <class Json>
struct CopyRecord {
  RecordHead<Json> head;
  int64_t bytes = 0;  // read once and written once
  RecordedCalls calls;
};

template <class Archive, class Record>
void VisitCopy(Archive& archive, Record& record) {
  VisitHead(archive, record.head);
  archive(Field{.name = "bytes"}, record.bytes);
  VisitFields(archive, record.calls);
}

// A request that could not be run, as it was written.
template <class Json>
struct RefusedRecord {
  RecordKind kind{.kind = "error"};
  std::optional<Json> request;
  std::string message;
};

template <class Archive, class Record>
void VisitRefused(Archive& archive, Record& record) {
  VisitFields(archive, record.kind);
  archive(Field{.name = "request"}, record.request);
  archive(Field{.name = "message", .required = true}, record.message);
}

}  // namespace trainfare::model
